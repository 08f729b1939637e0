//! Style of comments in source files: the openings of documentation comments, plain words, and a readable width.

use super::words;

/// Most columns of a line of a comment, with its indentation.
const WIDTH: usize = 120;

/// Words that must not open a documentation comment, separated by spaces: free relatives, pronouns and prepositions.
///
/// A comment opens with a noun phrase ("The …", "Number of …") or a verb ("Returns …"), which names its subject.
const OPENERS: &str = "What Whatever Whether How However Who Whoever Whom Whose Which Whichever Where Wherever \
    When Whenever Why It Its They Their Them He She This These That Those Such Of As If \
    With Without For So But And Or Lest Unless Because Since While Nothing None Nobody \
    Everything Everybody Everyone Something Somebody Someone Anything Anybody";

/// Archaisms, and words that hide who acts, separated by commas.
const ARCHAISMS: &str = "albeit, anew, aught, be it, but for, ere, henceforth, heretofore, hitherto, lest, \
    likewise, mend, mended, mending, mends, nobody, nobody's, nought, of late, so long, \
    so-manieth, somebody, somebody's, thence, thereof, thrice, whence, whereof, whoever, \
    whosoever";

/// The first words of a generated file.
const GENERATED: &str = "// This file is @generated";

/// A place where a comment breaks a rule.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Finding {
    /// The line of the source, from 1.
    pub(crate) line: usize,
    pub(crate) rule: Rule,
    /// The word that breaks the rule, or the number of columns.
    pub(crate) text: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Rule {
    Opener,
    Archaism,
    Width,
}

impl Rule {
    /// All rules, in the order of the columns of the data file.
    pub(crate) const ALL: [Self; 3] = [Self::Opener, Self::Archaism, Self::Width];

    /// The rule in words, for messages.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Opener => "documentation comments that open without a noun or a verb",
            Self::Archaism => "archaisms in comments",
            Self::Width => "lines of comments of more than 120 columns",
        }
    }
}

/// The comments of one source file that stand on lines of their own.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Comments {
    /// The number of documentation comments.
    pub(crate) documentation: usize,
    /// The number of lines of comments that are no documentation and stand inside an item.
    pub(crate) inside: u32,
    /// The number of lines of code.
    pub(crate) code: u32,
    pub(crate) findings: Vec<Finding>,
}

/// Reads the comments of a source file. Generated files have none to read.
pub(crate) fn read(text: &str) -> Comments {
    let mut comments = Comments::default();
    if text.starts_with(GENERATED) {
        return comments;
    }
    let mut block = Block::default();
    for (number, line) in (1..).zip(text.lines()) {
        let Some((kind, content)) = comment(line) else {
            block.end(&mut comments);
            comments.code += u32::from(!line.trim().is_empty());
            continue;
        };
        if block.kind != Some(kind) {
            block.end(&mut comments);
        }
        let columns = line.chars().count();
        if columns > WIDTH {
            comments.findings.push(Finding {
                line: number,
                rule: Rule::Width,
                text: columns.to_string(),
            });
        }
        comments.inside += u32::from(kind == Kind::Plain && line.starts_with(' '));
        if block.lines.is_empty() {
            block.first = number;
        }
        block.kind = Some(kind);
        block.lines.push(content);
    }
    block.end(&mut comments);
    comments
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Outer,
    Inner,
    Plain,
}

/// The comment that is all of a line, without its marker.
fn comment(line: &str) -> Option<(Kind, &str)> {
    let line = line.trim();
    // Four slashes and more are a ruler, not documentation.
    if line.starts_with("////") {
        return Some((Kind::Plain, ""));
    }
    let markers = [
        ("///", Kind::Outer),
        ("//!", Kind::Inner),
        ("//", Kind::Plain),
    ];
    let mut found = markers
        .iter()
        .filter_map(|(marker, kind)| Some((*kind, line.strip_prefix(marker)?.trim())));
    found.next()
}

/// Lines of comments of one kind that follow each other.
#[derive(Default)]
struct Block<'a> {
    first: usize,
    kind: Option<Kind>,
    lines: Vec<&'a str>,
}

impl Block<'_> {
    fn end(&mut self, comments: &mut Comments) {
        let Some(kind) = self.kind.take() else {
            return;
        };
        let is_documentation = matches!(kind, Kind::Outer | Kind::Inner);
        comments.documentation += usize::from(is_documentation);
        let mut add = |rule, text: &str| {
            comments.findings.push(Finding {
                line: self.first,
                rule,
                text: text.to_owned(),
            });
        };
        let opening = self.lines.iter().find(|line| !line.is_empty());
        if let Some(word) = opening.and_then(|line| opener(line))
            && is_documentation
        {
            add(Rule::Opener, word);
        }
        let plain = words::plain(self.lines.iter().copied());
        for phrase in ARCHAISMS.split(", ") {
            for _ in 0..words::count(&plain, phrase) {
                add(Rule::Archaism, phrase);
            }
        }
        self.lines.clear();
    }
}

/// The banned word that opens a text.
fn opener(text: &str) -> Option<&'static str> {
    let text = text.trim_start_matches(['*', '_', '"', '(', '[']);
    let end = text.find(|c: char| !c.is_alphanumeric());
    let word = &text[..end.unwrap_or(text.len())];
    OPENERS.split(' ').find(|opener| *opener == word)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<(usize, Rule, String)> {
        let findings = read(text).findings.into_iter();
        findings.map(|f| (f.line, f.rule, f.text)).collect()
    }

    #[test]
    fn the_opening_of_a_documentation_comment_is_checked() {
        for (text, opener) in [
            ("/// Whether it runs.\nfn f() {}", Some((1, "Whether"))),
            ("//! What is here.", Some((1, "What"))),
            ("x\n    /// It is.\n", Some((2, "It"))),
            ("///\n/// *Who* runs.", Some((1, "Who"))),
            ("/// Of\n/// which.", Some((1, "Of"))),
            ("/// Runs.\nx\n/// How it runs.", Some((3, "How"))),
            ("//! Runs.\n/// Why it runs.", Some((2, "Why"))),
            ("// Note.\n/// If it runs.", Some((2, "If"))),
            ("/// Runs.\n/// What runs is said here.", None),
            ("/// Runs.\n///\n/// What runs.", None),
            ("/// Itself.", None),
            ("/// whether", None),
            ("/// `What`", None),
            ("// Whether it runs.", None),
            ("//// Whether it runs.", None),
            ("let a = \"/// What\";", None),
        ] {
            let expected = opener.map(|(line, word)| (line, Rule::Opener, word.to_owned()));
            assert_eq!(found(text), Vec::from_iter(expected), "{text:?}");
        }
    }

    #[test]
    fn every_opener_and_archaism_of_the_lists_is_found() {
        for opener in OPENERS.split(' ') {
            let found = found(&format!("/// {opener} runs.\n"));
            assert!(
                found.contains(&(1, Rule::Opener, opener.to_owned())),
                "{opener}"
            );
        }
        for phrase in ARCHAISMS.split(", ") {
            let expected = [(1, Rule::Archaism, phrase.to_owned())];
            for marker in ["///", "//!", "//"] {
                assert_eq!(found(&format!("{marker} Runs {phrase}, it.")), expected);
            }
        }
    }

    #[test]
    fn archaisms_are_found_in_every_comment_and_over_the_end_of_a_line() {
        let word = |line, word: &str| (line, Rule::Archaism, word.to_owned());
        for (text, expected) in [
            ("// Lest, and\n// lest.", vec![word(1, "lest"); 2]),
            ("x\n/// All but\n/// for one.", vec![word(2, "but for")]),
            ("/// All but\n\n/// Number for one.", vec![]),
            ("let lest = 1;", vec![]),
        ] {
            assert_eq!(found(text), expected, "{text:?}");
        }
    }

    #[test]
    fn a_line_of_a_comment_has_a_width() {
        let fits = format!("    // {}", "é".repeat(WIDTH - 7));
        assert_eq!(found(&fits), []);
        let text = format!("a\n{fits}x\n");
        assert_eq!(found(&text), [(2, Rule::Width, (WIDTH + 1).to_string())]);
        assert_eq!(found(&"x".repeat(WIDTH + 1)), [], "code is rustfmt's");
        let rule = Rule::Width.name();
        assert!(rule.contains(&WIDTH.to_string()), "{rule}");
    }

    #[test]
    fn comments_and_code_are_counted() {
        let text = "//! Module.\n\n// Note.\n/// Runs.\n///\n/// Twice.\nfn f() {\n    // Why.\n    // More.\n    g();\n}\n";
        let read = read(text);
        let counted = (read.documentation, read.inside, read.code);
        assert_eq!(counted, (2, 2, 3));
    }

    #[test]
    fn a_generated_file_is_not_read() {
        let text = format!("{GENERATED} by a tool.\n/// What is here.\n");
        assert_eq!(read(&text), Comments::default());
    }
}
