//! The list of what is kept.

use crate::Result;

/// A file of the API, and what is kept of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Root {
    /// The path by which files import it.
    pub(crate) file: String,
    /// Names of messages and services, without the package.
    pub(crate) names: Vec<String>,
}

/// Reads the list: on each line a file and its names. A line that starts with `#` is a comment.
pub(crate) fn parse(text: &str) -> Result<Vec<Root>> {
    let lines = text.lines().map(str::trim);
    lines
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .map(|line| {
            let mut words = line.split_whitespace().map(str::to_owned);
            let file = words.next().unwrap_or_default();
            let names: Vec<_> = words.collect();
            if names.is_empty() {
                return Err(format!("roots.txt names nothing of {file}").into());
            }
            Ok(Root { file, names })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_a_file_and_its_names() {
        let parsed = parse("# Comment.\n\na/b.proto C  D\n").unwrap();
        let root = Root {
            file: "a/b.proto".to_owned(),
            names: vec!["C".to_owned(), "D".to_owned()],
        };
        assert_eq!(parsed, [root]);
    }

    #[test]
    fn a_file_without_names_is_rejected() {
        let error = parse("a/b.proto\n").unwrap_err();
        assert_eq!(error.to_string(), "roots.txt names nothing of a/b.proto");
    }
}
