//! The data file with the most findings that the comments of each crate may have.
//!
//! A number may only fall. Numbers above the file fail; numbers below it are reported, and written by `UPDATE_WORDS=1`.

use std::collections::BTreeMap;

use super::comments::{Finding, Rule};

/// Findings, by crate and by rule: the places of each, as `path:line text`.
#[derive(Default)]
pub(crate) struct Found(BTreeMap<String, [Vec<String>; 3]>);

impl Found {
    /// Adds the findings of the file at `path`.
    pub(crate) fn add(&mut self, path: &str, findings: &[Finding]) {
        let row = self.0.entry(crate_of(path).to_owned()).or_default();
        for finding in findings {
            let place = format!("{path}:{} {}", finding.line, finding.text);
            row[finding.rule as usize].push(place);
        }
    }
}

/// The folder of the crate that has the file at `path`: the first one.
fn crate_of(path: &str) -> &str {
    path.split('/').next().expect("a split has a first part")
}

/// The most findings, by crate and by rule.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Maxima(BTreeMap<String, [usize; 3]>);

impl Maxima {
    /// Reads the data file: one line per crate with its name and a number per rule. Empty lines and `#` are skipped.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let mut maxima = BTreeMap::new();
        for (number, line) in (1..).zip(text.lines()) {
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let mut columns = line.split_whitespace();
            let name = columns.next().unwrap_or_default();
            let counts: Result<Vec<usize>, _> = columns.map(str::parse).collect();
            let counts = counts.ok().and_then(|counts| counts.try_into().ok());
            let counts = counts.ok_or_else(|| {
                format!("line {number}: `{line}` is not a crate and three numbers")
            })?;
            if maxima.insert(name.to_owned(), counts).is_some() {
                return Err(format!("line {number}: {name} is there twice"));
            }
        }
        Ok(Self(maxima))
    }

    /// Returns a message for each number of `found` above its maximum. A crate without a row may have no findings.
    pub(crate) fn exceeded(&self, found: &Found) -> Vec<String> {
        let mut messages = Vec::new();
        for (name, row) in &found.0 {
            for rule in Rule::ALL {
                let (places, most) = (&row[rule as usize], self.most(name, rule));
                if places.len() > most {
                    messages.push(format!(
                        "{name} has {} {}, and may have {most}:\n  {}",
                        places.len(),
                        rule.name(),
                        places.join("\n  ")
                    ));
                }
            }
        }
        messages
    }

    /// Returns a line for each maximum that is higher than what was found. A row without a crate is one, too.
    pub(crate) fn slack(&self, found: &Found) -> Vec<String> {
        let mut lines = Vec::new();
        for name in self.0.keys() {
            for rule in Rule::ALL {
                let count = found.0.get(name).map_or(0, |row| row[rule as usize].len());
                let most = self.most(name, rule);
                if count < most {
                    lines.push(format!(
                        "{name} has {count} {}, down from {most}",
                        rule.name()
                    ));
                }
            }
        }
        lines
    }

    /// The maxima lowered to what was found. A number above its maximum stays an error.
    pub(crate) fn lowered(&self, found: &Found) -> Self {
        let lower = |(name, row): (&String, &[Vec<String>; 3])| {
            let least = Rule::ALL.map(|rule| row[rule as usize].len().min(self.most(name, rule)));
            (name.clone(), least)
        };
        Self(found.0.iter().map(lower).collect())
    }

    fn most(&self, name: &str, rule: Rule) -> usize {
        self.0.get(name).map_or(0, |row| row[rule as usize])
    }

    /// The text of the data file. An empty line between two crates lets changes to both be merged.
    pub(crate) fn text(&self) -> String {
        let mut text = String::from(
            "# Most findings in the comments of each crate: openings of documentation, archaisms, long lines.\n\
             # The numbers may only fall. UPDATE_WORDS=1 cargo test -p xtask --test it comments_use_plain_words\n",
        );
        for (name, [openers, archaisms, long]) in &self.0 {
            text.push_str(&format!("\n{name} {openers} {archaisms} {long}\n"));
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finding(rule: Rule, line: usize) -> Finding {
        Finding {
            line,
            rule,
            text: "x".to_owned(),
        }
    }

    /// Two openers and one long line in crate `a`, none in crate `b`.
    fn found() -> Found {
        let mut found = Found::default();
        found.add("a/src/lib.rs", &[finding(Rule::Opener, 3)]);
        let more = [finding(Rule::Opener, 1), finding(Rule::Width, 9)];
        found.add("a/tests/it.rs", &more);
        found.add("b/src/lib.rs", &[]);
        found
    }

    #[test]
    fn numbers_above_the_maximum_fail_and_numbers_below_are_slack() {
        for (text, exceeded, slack) in [
            ("a 2 0 1", 0, 0),
            ("a 1 0 1", 1, 0),
            ("a 2 0 0", 1, 0),
            ("a 3 4 5", 0, 3),
            ("a 1 4 0\nb 1 0 0", 2, 2),
            ("b 9 9 9", 2, 3),
            ("a 2 0 1\ngone 1 0 0", 0, 1),
            ("", 2, 0),
        ] {
            let maxima = Maxima::parse(text).expect("it is well-formed");
            assert_eq!(maxima.exceeded(&found()).len(), exceeded, "{text}");
            assert_eq!(maxima.slack(&found()).len(), slack, "{text}");
        }
        let maxima = Maxima::parse("a 1 0 1").expect("it is well-formed");
        let opener = Rule::Opener.name();
        assert_eq!(
            maxima.exceeded(&found()),
            [format!(
                "a has 2 {opener}, and may have 1:\n  a/src/lib.rs:3 x\n  a/tests/it.rs:1 x"
            )]
        );
    }

    #[test]
    fn lowering_never_raises() {
        for (before, after) in [
            ("a 5 5 5\nb 1 1 1", "a 2 0 1\nb 0 0 0"),
            ("a 1 0 0", "a 1 0 0\nb 0 0 0"),
            ("gone 1 1 1", "a 0 0 0\nb 0 0 0"),
        ] {
            let parse = |text| Maxima::parse(text).expect("it is well-formed");
            assert_eq!(parse(before).lowered(&found()), parse(after), "{before}");
        }
    }

    #[test]
    fn the_data_file_is_read_as_written() {
        let maxima = Maxima::parse("# c\n\nb 1 2 3\na 0 0 7\n").expect("it is well-formed");
        let text = maxima.text();
        assert!(text.ends_with("\na 0 0 7\n\nb 1 2 3\n"), "{text}");
        assert_eq!(Maxima::parse(&text), Ok(maxima));
        for (bad, error) in [
            ("a 1 2", "line 1: `a 1 2` is not a crate and three numbers"),
            (
                "a 1 2 x",
                "line 1: `a 1 2 x` is not a crate and three numbers",
            ),
            (
                "a 1 2 3 4",
                "line 1: `a 1 2 3 4` is not a crate and three numbers",
            ),
            ("a 1 2 3\n\na 1 2 3", "line 3: a is there twice"),
        ] {
            assert_eq!(Maxima::parse(bad), Err(error.to_owned()));
        }
    }
}
