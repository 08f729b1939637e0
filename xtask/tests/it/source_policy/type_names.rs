//! One name, one meaning: no two modules of a crate define a type of the same name.

use std::collections::{BTreeMap, BTreeSet};

/// Names that may have several definitions in one crate: the crate's source folder, the name, the reason.
const JUSTIFIED: &[(&str, &str, &str)] = &[
    ("benches/peers/src", "Options", ONE_PER_COMMAND),
    (
        "benches/peers/src",
        "Result",
        "a shorter `Result`, with the error of its file",
    ),
    ("proxy-gateway/src", "HotRestartError", OTHER_SYSTEMS),
    ("proxy-gateway/src", "Offer", OTHER_SYSTEMS),
    ("proxy-gateway/src", "Predecessor", OTHER_SYSTEMS),
    (
        "proxy-runtime/src",
        "Forwarded",
        "the request that a health policy sees, and the end of its exchange",
    ),
    (
        "proxy-runtime/src",
        "OwnCredentials",
        "an empty type stands in for it without TLS",
    ),
    (
        "servicefabric-emulator/src",
        "CodePackageDescription",
        TWO_VIEWS,
    ),
    (
        "servicefabric-emulator/src",
        "DeployedApplication",
        TWO_VIEWS,
    ),
    ("servicefabric-emulator/src", "DeployedReplica", TWO_VIEWS),
    ("servicefabric-emulator/src", "HealthReport", TWO_VIEWS),
    ("servicefabric-emulator/src", "Node", TWO_VIEWS),
    (
        "servicefabric-emulator/src",
        "Problem",
        "an error of a timeline, and one of a topology",
    ),
    (
        "servicefabric-emulator/src",
        "Role",
        "the vendor's word for the access of a client and the kind of a code package",
    ),
    (
        "servicefabric-emulator/src",
        "ServiceTypeDescription",
        "the vendor's schema, and the emulator's file",
    ),
    (
        "servicefabric-emulator/src",
        "Tls",
        "the same settings with and without the feature `tls`",
    ),
    ("xtask/src", "Options", ONE_PER_COMMAND),
];

const ONE_PER_COMMAND: &str = "the options of each command, named with its module";
const OTHER_SYSTEMS: &str = "the same interface on systems without hot restart";
const TWO_VIEWS: &str = "the cluster's view, and the machine of one node, which knows no cluster";

/// The types that each crate defines, and the files that define them.
#[derive(Debug, Default)]
pub(crate) struct Types(BTreeMap<(String, String), BTreeSet<String>>);

impl Types {
    /// Adds the types at the top level of a file. Files of tests and generated files do not count, and
    /// neither do types inside functions.
    pub(crate) fn add(&mut self, path: &str, text: &str) {
        let Some((folder, file)) = source(path) else {
            return;
        };
        for name in text.lines().filter_map(defined) {
            let key = (folder.to_owned(), name.to_owned());
            self.0.entry(key).or_default().insert(file.to_owned());
        }
    }

    /// The number of types.
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// The complaints: names with several meanings, and exceptions that nothing needs.
    pub(crate) fn complaints(&self) -> Vec<String> {
        self.complaints_but(JUSTIFIED)
    }

    fn complaints_but(&self, justified: &[(&str, &str, &str)]) -> Vec<String> {
        let is_justified = |crate_: &str, name: &str| {
            (justified.iter()).any(|(folder, type_, _)| (*folder, *type_) == (crate_, name))
        };
        let several = self.0.iter().filter(|(_, files)| files.len() > 1);
        let several: BTreeMap<_, _> = several.collect();
        let mut complaints = Vec::new();
        for ((folder, name), files) in &several {
            if !is_justified(folder, name) {
                let files: Vec<_> = files.iter().map(String::as_str).collect();
                complaints.push(format!(
                    "{folder}: `{name}` is defined in {}; give each a name of its own",
                    files.join(", ")
                ));
            }
        }
        for (folder, name, _) in justified {
            if !several.contains_key(&((*folder).to_owned(), (*name).to_owned())) {
                complaints.push(format!("{folder}: `{name}` needs no exception any more"));
            }
        }
        complaints
    }
}

/// Splits the path of a source file into its crate's `src` folder and the rest.
fn source(path: &str) -> Option<(&str, &str)> {
    let at = path.find("/src/")? + "/src".len();
    let (folder, file) = (&path[..at], &path[at + 1..]);
    let is_test = path.contains("/tests/") || file.ends_with("tests.rs") || file.starts_with("pb/");
    (path.ends_with(".rs") && !is_test).then_some((folder, file))
}

/// Returns the name of the type that a line at the left margin defines.
fn defined(line: &str) -> Option<&str> {
    let line = match line.strip_prefix("pub") {
        Some(rest) if rest.starts_with('(') => rest.split_once(") ")?.1,
        Some(rest) => rest.strip_prefix(' ')?,
        None => line,
    };
    let rest = ["struct ", "enum ", "trait ", "union ", "type "]
        .iter()
        .find_map(|keyword| line.strip_prefix(keyword))?;
    let end = rest
        .find(|c: char| !c.is_alphanumeric() && c != '_')
        .unwrap_or(rest.len());
    Some(&rest[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_defines_a_type() {
        for (line, name) in [
            ("struct Part;", Some("Part")),
            ("pub enum Part<T> {", Some("Part")),
            ("pub(crate) trait Part: Send {", Some("Part")),
            ("pub(in crate::server) struct Part {", Some("Part")),
            ("type Part = u8;", Some("Part")),
            ("    struct Inside;", None),
            ("impl Part {", None),
            ("public struct Part;", None),
            ("// struct Part;", None),
        ] {
            assert_eq!(defined(line), name, "{line}");
        }
    }

    #[test]
    fn two_files_give_one_name_two_meanings() {
        let mut types = Types::default();
        // The second definition in one file is for other features or systems.
        types.add(
            "a/src/one.rs",
            "pub struct Part;\nstruct Part;\nstruct Alone;\n",
        );
        types.add("a/src/two/mod.rs", "enum Part {}\n");
        types.add("a/src/two/tests.rs", "struct Alone;\n");
        types.add("a/tests/it/main.rs", "struct Alone;\n");
        types.add("b/src/lib.rs", "struct Alone;\n");
        assert_eq!(
            types.complaints_but(&[]),
            ["a/src: `Part` is defined in one.rs, two/mod.rs; give each a name of its own"]
        );
        assert!(
            types
                .complaints_but(&[("a/src", "Part", "both")])
                .is_empty()
        );
        assert_eq!(
            types.complaints_but(&[("a/src", "Part", "both"), ("b/src", "Alone", "once")]),
            ["b/src: `Alone` needs no exception any more"]
        );
    }
}
