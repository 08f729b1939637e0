//! Rules for the text of a manifest: the declaration of versions and lints.

use toml::{Table, Value};

/// The dependency tables of a manifest.
const DEPENDENCIES: [&str; 3] = ["dependencies", "dev-dependencies", "build-dependencies"];

/// Packages generated from the work of others, with their licence.
const GENERATED: [&str; 1] = ["xds-types"];

/// Returns the violations in the manifest of a member.
pub(crate) fn complaints(package: &str, manifest: &str) -> Vec<String> {
    let manifest: Table = match manifest.parse() {
        Ok(manifest) => manifest,
        Err(error) => return vec![format!("{package}: {error}")],
    };
    let mut wrong = own_versions(package, &manifest);
    for target in tables(manifest.get("target")) {
        wrong.extend(own_versions(package, target));
    }
    if !inherits(manifest.get("lints")) {
        wrong.push(format!("{package} needs `[lints] workspace = true`"));
    }
    for field in ["edition", "rust-version", "license"] {
        let value = manifest
            .get("package")
            .and_then(|package| package.get(field));
        let has_its_own = field == "license" && GENERATED.contains(&package) && value.is_some();
        if !inherits(value) && !has_its_own {
            wrong.push(format!("{package} needs `{field}.workspace = true`"));
        }
    }
    wrong
}

/// Dependencies without the version of `[workspace.dependencies]`.
fn own_versions(package: &str, holder: &Table) -> Vec<String> {
    let mut wrong = Vec::new();
    for kind in DEPENDENCIES {
        let dependencies = holder.get(kind).and_then(Value::as_table);
        for (name, value) in dependencies.into_iter().flatten() {
            if !inherits(Some(value)) {
                wrong.push(format!(
                    "{package}: `{name}` in [{kind}] needs `workspace = true`"
                ));
            }
        }
    }
    wrong
}

fn inherits(value: Option<&Value>) -> bool {
    let flag = value.and_then(|value| value.get("workspace"));
    flag.and_then(Value::as_bool) == Some(true)
}

fn tables(value: Option<&Value>) -> impl Iterator<Item = &Table> {
    let holder = value.and_then(Value::as_table);
    holder
        .into_iter()
        .flatten()
        .filter_map(|(_, value)| value.as_table())
}

#[cfg(test)]
mod tests {
    use super::*;

    const IN_ORDER: &str = r#"
        [package]
        name = "proxy-model"
        edition.workspace = true
        rust-version.workspace = true
        license.workspace = true
        [dependencies]
        http.workspace = true
        serde = { workspace = true, features = [
            "derive",
        ] }
        [dependencies.url]
        workspace = true
        [target.'cfg(unix)'.dependencies]
        socket2.workspace = true
        [lints]
        workspace = true
    "#;

    #[test]
    fn a_manifest_in_order_draws_no_complaint() {
        assert_eq!(
            complaints("proxy-model", IN_ORDER),
            <[String; 0]>::default()
        );
    }

    #[test]
    fn versions_of_its_own_are_found_in_every_table() {
        let manifest = format!(
            "{IN_ORDER}\n[dev-dependencies]\nproptest = \"1\"\n[build-dependencies]\ncc = {{ version = \"1\" }}\n\
             [target.'cfg(windows)'.dependencies]\nwinapi = {{ path = \"../winapi\" }}\n"
        );
        assert_eq!(
            complaints("proxy-model", &manifest),
            [
                "proxy-model: `proptest` in [dev-dependencies] needs `workspace = true`",
                "proxy-model: `cc` in [build-dependencies] needs `workspace = true`",
                "proxy-model: `winapi` in [dependencies] needs `workspace = true`",
            ]
        );
    }

    #[test]
    fn lints_and_the_common_fields_are_inherited() {
        let manifest =
            "[package]\nname = \"a\"\nedition = \"2024\"\nlicense = \"MIT\"\n[lints.rust]\n";
        assert_eq!(
            complaints("a", manifest),
            [
                "a needs `[lints] workspace = true`",
                "a needs `edition.workspace = true`",
                "a needs `rust-version.workspace = true`",
                "a needs `license.workspace = true`",
            ]
        );
    }

    #[test]
    fn only_generated_packages_have_a_licence_of_their_own() {
        let manifest = "[package]\nedition.workspace = true\nrust-version.workspace = true\n\
            license = \"Apache-2.0\"\n[lints]\nworkspace = true\n";
        assert_eq!(complaints("xds-types", manifest), <[String; 0]>::default());
        assert_eq!(
            complaints("a", manifest),
            ["a needs `license.workspace = true`"]
        );
    }

    #[test]
    fn a_manifest_that_cannot_be_read_is_a_complaint() {
        assert_eq!(complaints("a", "[package").len(), 1);
    }
}
