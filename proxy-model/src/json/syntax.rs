//! Errors of texts that are not JSON, with a guess of their format.

use crate::problem::Problem;

/// A text that is no document.
pub(super) struct Rejected {
    pub(super) problem: Problem,
    /// The line that the problem is in, counted from 1.
    pub(super) line: Option<usize>,
}

/// Returns the problem of a text that the parser rejects with `error`. Comments of the text are blanked.
pub(super) fn rejected(text: &str, error: &serde_json::Error) -> Rejected {
    const CODE: &str = "invalid_json";
    if text.trim().is_empty() {
        let problem = Problem::error("", CODE, "not JSON: the document is empty");
        return Rejected {
            problem: problem.with_suggestion("an empty configuration is written `{}`"),
            line: None,
        };
    }
    let mut problem = Problem::error("", CODE, format!("not JSON: {error}"));
    let line = text.lines().nth(error.line().saturating_sub(1));
    problem.suggestion = other_format(text)
        .or_else(|| of_line(line?, error.column()))
        .map(str::to_owned);
    Rejected {
        problem,
        line: Some(error.line()).filter(|line| *line > 0),
    }
}

/// The correction that the line with the error shows.
fn of_line(line: &str, column: usize) -> Option<&'static str> {
    let at = line.as_bytes().get(column.saturating_sub(1))?;
    match at {
        b'#' => Some("comments begin with `//` or are between `/*` and `*/`"),
        b'\'' => Some("texts and keys are written between double quotes"),
        _ => None,
    }
}

/// The format that the first line of a text shows, if it is another one.
fn other_format(text: &str) -> Option<&'static str> {
    let is_comment = |line: &&str| line.starts_with('#');
    let mut lines = text.lines().map(str::trim);
    let first = lines.find(|line| !line.is_empty() && !is_comment(line))?;
    let is_word = |word: &str| {
        let mut letters = word.bytes();
        !word.is_empty() && letters.all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(&b))
    };
    if first.starts_with(['{', '"']) {
        return None;
    }
    if first.starts_with('[') {
        let name = first
            .strip_prefix('[')
            .and_then(|rest| rest.strip_suffix(']'));
        return name.is_some_and(is_word).then_some(TOML);
    }
    if first.starts_with("---") || first.starts_with("- ") {
        return Some(YAML);
    }
    let word_before = |sign: char| {
        let (word, _) = first.split_once(sign)?;
        is_word(word.trim()).then_some(())
    };
    if word_before(':').is_some() {
        return Some(YAML);
    }
    if word_before('=').is_some() {
        return Some(TOML);
    }
    first.ends_with(['{', ';']).then_some(NGINX)
}

const NGINX: &str =
    "this looks like a configuration of nginx or Caddy: write JSON, `{ \"ReverseProxy\": { … } }`";

const TOML: &str = "this looks like TOML: write JSON, `{ \"ReverseProxy\": { … } }`";

const YAML: &str = "this looks like YAML: write JSON, `{ \"ReverseProxy\": { … } }`";

#[cfg(test)]
mod tests {
    use crate::json::{Layer, Layered};

    fn rejected(text: &str) -> String {
        let file = Layer::File {
            name: "a.json".to_owned(),
            text: text.to_owned(),
        };
        Layered::new(vec![file]).unwrap_err().to_string()
    }

    #[test]
    fn syntax_errors_have_their_line_and_a_correction() {
        for (text, expected) in [
            (
                "",
                "error at / (a.json): not JSON: the document is empty (an empty configuration is written `{}`)",
            ),
            (
                "\u{feff} // nothing\n",
                "error at / (a.json): not JSON: the document is empty (an empty configuration is written `{}`)",
            ),
            (
                "{\n  \"a\": 1\n  \"b\": 2\n}",
                "error at / (a.json:3): not JSON: expected `,` or `}` at line 3 column 3",
            ),
            (
                "{\n  # a\n  \"b\": 2\n}",
                "error at / (a.json:2): not JSON: key must be a string at line 2 column 3 (comments begin with `//` or are between `/*` and `*/`)",
            ),
            (
                "{ 'a': 1 }",
                "error at / (a.json:1): not JSON: key must be a string at line 1 column 3 (texts and keys are written between double quotes)",
            ),
            (
                "# routes\nReverseProxy:\n  Routes: {}\n",
                "error at / (a.json:1): not JSON: expected value at line 1 column 1 (this looks like YAML: write JSON, `{ \"ReverseProxy\": { … } }`)",
            ),
            (
                "# routes\n{}",
                "error at / (a.json:1): not JSON: expected value at line 1 column 1 (comments begin with `//` or are between `/*` and `*/`)",
            ),
            (
                "ReverseProxy:\n  Routes: {}\n",
                "error at / (a.json:1): not JSON: expected value at line 1 column 1 (this looks like YAML: write JSON, `{ \"ReverseProxy\": { … } }`)",
            ),
            (
                "---\na: 1",
                "error at / (a.json:1): not JSON: invalid number at line 1 column 2 (this looks like YAML: write JSON, `{ \"ReverseProxy\": { … } }`)",
            ),
            (
                "[http.routers]\n",
                "error at / (a.json:1): not JSON: expected value at line 1 column 2 (this looks like TOML: write JSON, `{ \"ReverseProxy\": { … } }`)",
            ),
            (
                "port = 1",
                "error at / (a.json:1): not JSON: expected value at line 1 column 1 (this looks like TOML: write JSON, `{ \"ReverseProxy\": { … } }`)",
            ),
            (
                "server {\n  listen 80;\n}",
                "error at / (a.json:1): not JSON: expected value at line 1 column 1 (this looks like a configuration of nginx or Caddy: write JSON, `{ \"ReverseProxy\": { … } }`)",
            ),
            (
                "{ \"a\": ",
                "error at / (a.json:1): not JSON: EOF while parsing a value at line 1 column 7",
            ),
        ] {
            assert_eq!(rejected(text), expected, "{text}");
        }
    }

    #[test]
    fn keys_that_are_written_twice_have_both_lines() {
        use crate::json::read_config;
        let text = "{ \"ReverseProxy\": { \"Routes\": {\n\"r\": {},\n\"s\": {},\n\"R\": {} } } }";
        for (layers, origin) in [
            (vec![("a.json", text)], "a.json:4"),
            // Another file has the key, too, but once.
            (
                vec![
                    ("a.json", text),
                    ("b.json", "{ \"ReverseProxy:Routes:r:Order\": 1 }"),
                ],
                "a.json:4",
            ),
        ] {
            let file = |(name, text): (&str, &str)| Layer::File {
                name: name.to_owned(),
                text: text.to_owned(),
            };
            let layered = Layered::new(layers.into_iter().map(file).collect()).unwrap();
            let mut problems = crate::Problems::new();
            let section = layered.node.get("ReverseProxy").unwrap();
            read_config(section, "/ReverseProxy", &mut problems);
            layered.origins.place(&mut problems);
            let problem = problems.iter().next().unwrap();
            assert_eq!(problem.code, "duplicate_key");
            assert_eq!(problem.origin.as_deref(), Some(origin));
            assert_eq!(
                problem.suggestion.as_deref(),
                Some("keep one of them; the first is at a.json:2")
            );
        }
    }
}
