//! The rule that DESIGN.md gives a reason for each dependency.

use std::collections::BTreeSet;

use toml::{Table, Value};

/// The external dependencies of the workspace.
pub(crate) fn declared(manifest: &str) -> BTreeSet<String> {
    let manifest: Table = manifest.parse().expect("cargo reads it as well");
    let workspace = manifest.get("workspace").and_then(Value::as_table);
    let dependencies = workspace.and_then(|workspace| workspace.get("dependencies"));
    let dependencies = dependencies
        .and_then(Value::as_table)
        .expect("the workspace has some");
    dependencies
        .iter()
        .filter(|(_, value)| value.get("path").is_none())
        .map(|(name, _)| name.clone())
        .collect()
}

/// The names in the first column of the table below the heading "Dependencies".
pub(crate) fn explained(design: &str) -> BTreeSet<String> {
    let heading = "\n## Dependencies\n";
    let section = design
        .split_once(heading)
        .map_or("", |(_, section)| section);
    let section = section.split("\n## ").next().unwrap_or_default();
    section
        .lines()
        .filter_map(|line| line.strip_prefix("| ")?.split(" |").next())
        // Every second piece is between backticks.
        .flat_map(|names| names.split('`').skip(1).step_by(2))
        .map(str::to_owned)
        .collect()
}

/// Returns dependencies without a reason, and reasons without a dependency.
pub(crate) fn complaints(manifest: &str, design: &str) -> Vec<String> {
    let declared = declared(manifest);
    let explained = explained(design);
    let without = declared
        .difference(&explained)
        .map(|name| format!("DESIGN.md, section Dependencies, does not say what `{name}` is for"));
    let gone = explained.difference(&declared).map(|name| {
        format!("DESIGN.md, section Dependencies, explains `{name}`, which is not there")
    });
    without.chain(gone).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const MANIFEST: &str = r#"
        [workspace.dependencies]
        proxy-model = { path = "proxy-model" }
        http = "1"
        url = { version = "2" }
    "#;

    #[test]
    fn each_dependency_is_explained_and_nothing_else() {
        let design = "# D\n## Dependencies\nTypes of `serde` may appear.\n\n| crate | for |\n|---|---|\n\
                      | `http`, `url` | types, not `hyper` | – |\n\n## Next\n| `axum` | – |\n";
        assert_eq!(complaints(MANIFEST, design), <[String; 0]>::default());
    }

    #[test]
    fn one_without_a_reason_and_one_that_is_gone_are_named() {
        let design = "\n## Dependencies\n| `http` | types |\n| `rand` | luck |\n";
        assert_eq!(
            complaints(MANIFEST, design),
            [
                "DESIGN.md, section Dependencies, does not say what `url` is for",
                "DESIGN.md, section Dependencies, explains `rand`, which is not there",
            ]
        );
    }
}
