//! What `deny.toml` says, and what breaks it.

use std::collections::BTreeMap;

use cargo_metadata::semver::VersionReq;
use toml::{Table, Value};

use crate::license;
use crate::packages::Package;

/// The parts of `deny.toml` that can be held without the network.
#[derive(Debug)]
pub(crate) struct Policy {
    bans: Vec<VersionsOf>,
    second_versions: Vec<VersionsOf>,
    licenses: Vec<String>,
    exceptions: BTreeMap<String, Vec<String>>,
}

/// A package, or versions of it, of which the policy says something, and why.
#[derive(Debug)]
struct VersionsOf {
    name: String,
    versions: VersionReq,
    reason: String,
}

impl Policy {
    /// Reads the file. Entries in a form that this does not know are errors, so that none is held by name only.
    pub(crate) fn read(text: &str) -> Result<Self, String> {
        let file: Table = text.parse().map_err(|error| format!("{error}"))?;
        let list = |section: &str, key: &str| {
            let found = file.get(section).and_then(|section| section.get(key));
            found
                .and_then(Value::as_array)
                .ok_or_else(|| format!("[{section}] has no list `{key}`"))
        };
        let versions = |key| -> Result<Vec<_>, String> {
            list("bans", key)?.iter().map(versions_of).collect()
        };
        Ok(Self {
            bans: versions("deny")?,
            second_versions: versions("skip")?,
            licenses: list("licenses", "allow")?
                .iter()
                .map(string)
                .collect::<Result<_, _>>()?,
            exceptions: list("licenses", "exceptions")?
                .iter()
                .map(exception)
                .collect::<Result<_, _>>()?,
        })
    }

    /// What is wrong with these packages.
    pub(crate) fn complaints(&self, packages: &[Package]) -> Vec<String> {
        let mut wrong = Vec::new();
        let mut shipped: BTreeMap<&str, Vec<String>> = BTreeMap::new();
        for package in packages {
            let Package { name, version, .. } = package;
            let second = self.second_versions.iter().any(|skip| skip.covers(package));
            if package.shipped && !second {
                shipped.entry(name).or_default().push(version.to_string());
            }
            for ban in self.bans.iter().filter(|ban| ban.covers(package)) {
                wrong.push(format!("{name} {version} is banned: {}", ban.reason));
            }
            if !self.accepts_license(package) {
                wrong.push(format!(
                    "{name} {version} has the licence `{}`",
                    package.license
                ));
            }
            if let Some(origin) = &package.origin
                && origin.contains("://")
            {
                wrong.push(format!("{name} {version} comes from {origin}"));
            }
        }
        for (name, versions) in shipped.iter().filter(|(_, versions)| versions.len() > 1) {
            wrong.push(format!(
                "{name} is there in several versions: {}",
                versions.join(", ")
            ));
        }
        wrong
    }

    fn accepts_license(&self, package: &Package) -> bool {
        let exceptions = self.exceptions.get(&package.name);
        license::is_accepted(&package.license, &|license| {
            let is = |allowed: &String| allowed == license;
            self.licenses.iter().any(is) || exceptions.is_some_and(|more| more.iter().any(is))
        })
    }
}

impl VersionsOf {
    fn covers(&self, package: &Package) -> bool {
        self.name == package.name && self.versions.matches(&package.version)
    }
}

fn versions_of(entry: &Value) -> Result<VersionsOf, String> {
    let versions = match entry.get("version") {
        Some(version) => string(version)?,
        None => "*".to_owned(),
    };
    Ok(VersionsOf {
        name: field(entry, "name")?,
        versions: versions
            .parse()
            .map_err(|error| format!("{versions}: {error}"))?,
        reason: field(entry, "reason")?,
    })
}

fn exception(entry: &Value) -> Result<(String, Vec<String>), String> {
    let allowed = entry.get("allow").and_then(Value::as_array);
    let allowed = allowed.ok_or("an exception allows nothing")?;
    Ok((
        field(entry, "name")?,
        allowed.iter().map(string).collect::<Result<_, _>>()?,
    ))
}

fn field(entry: &Value, name: &str) -> Result<String, String> {
    let value = entry
        .get(name)
        .ok_or_else(|| format!("{entry:?} has no `{name}`"))?;
    string(value)
}

fn string(value: &Value) -> Result<String, String> {
    let text = value
        .as_str()
        .ok_or_else(|| format!("{value:?} is no string"))?;
    Ok(text.to_owned())
}

#[cfg(test)]
mod tests {
    use cargo_metadata::semver::Version;

    use super::*;

    const POLICY: &str = r#"
        [bans]
        deny = [
            { name = "openssl-sys", reason = "one TLS stack" },
            { name = "h2", version = "<0.4.16", reason = "a hole" },
        ]
        skip = []
        [licenses]
        allow = ["MIT"]
        exceptions = [{ name = "notify", allow = ["CC0-1.0"] }]
    "#;

    fn package(name: &str, version: &str, license: &str) -> Package {
        Package {
            name: name.to_owned(),
            version: Version::parse(version).expect("it is a version"),
            license: license.to_owned(),
            origin: None,
            shipped: true,
        }
    }

    fn complaints(packages: &[Package]) -> Vec<String> {
        Policy::read(POLICY)
            .expect("it is well-formed")
            .complaints(packages)
    }

    #[test]
    fn what_keeps_the_policy_draws_no_complaint() {
        let packages = [
            package("h2", "0.4.16", "MIT"),
            package("notify", "8.2.1", "CC0-1.0"),
            Package {
                origin: Some("a/path".to_owned()),
                ..package("proxy-model", "0.1.0", "MIT OR Apache-2.0")
            },
        ];
        assert_eq!(complaints(&packages), <[String; 0]>::default());
    }

    #[test]
    fn every_way_to_break_it_is_named() {
        let packages = [
            package("h2", "0.4.15", "MIT"),
            package("openssl-sys", "0.9.1", "MIT"),
            package("other", "1.0.0", "CC0-1.0"),
            Package {
                origin: Some("https://example.com/fork.git#abc".to_owned()),
                ..package("fork", "1.0.0", "MIT")
            },
            package("syn", "2.0.0", "MIT"),
            package("syn", "3.0.0", "MIT"),
        ];
        assert_eq!(
            complaints(&packages),
            [
                "h2 0.4.15 is banned: a hole",
                "openssl-sys 0.9.1 is banned: one TLS stack",
                "other 1.0.0 has the licence `CC0-1.0`",
                "fork 1.0.0 comes from https://example.com/fork.git#abc",
                "syn is there in several versions: 2.0.0, 3.0.0",
            ]
        );
    }

    #[test]
    fn tools_of_tests_may_bring_a_second_version() {
        let second = Package {
            shipped: false,
            ..package("syn", "2.0.0", "MIT")
        };
        assert_eq!(
            complaints(&[package("syn", "3.0.0", "MIT"), second]),
            <[String; 0]>::default()
        );
    }

    #[test]
    fn a_second_version_may_be_let_in_with_a_reason() {
        let skip = POLICY.replace(
            "skip = []",
            "skip = [{ name = \"syn\", version = \"2\", reason = \"on its way out\" }]",
        );
        let policy = Policy::read(&skip).expect("a policy");
        let version = |version| package("syn", version, "MIT");
        let complaints = |packages: &[Package]| policy.complaints(packages);
        assert_eq!(
            complaints(&[version("2.0.0"), version("3.0.0")]),
            <[String; 0]>::default()
        );
        assert_eq!(
            complaints(&[version("1.0.0"), version("2.0.0"), version("3.0.0")]),
            ["syn is there in several versions: 1.0.0, 3.0.0"]
        );
    }

    #[test]
    fn an_entry_in_an_unknown_form_is_an_error() {
        for wrong in [
            POLICY.replace("name = \"h2\"", "crate = \"h2\""),
            POLICY.replace("skip = []", "skip = [\"syn\"]"),
            POLICY.replace("[licenses]", "[licences]"),
            POLICY.replace("<0.4.16", "below 0.4.16"),
        ] {
            assert!(Policy::read(&wrong).is_err(), "{wrong}");
        }
    }
}
