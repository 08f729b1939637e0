//! Checks that run nothing of the workspace: format, lints, documentation, spelling, dependencies,
//! features.

use std::path::Path;
use std::time::Duration;

use crate::output;
use crate::peers;
use crate::process::Invocation;
use crate::say;
use crate::steps::Outcome;
use crate::workspace::Workspace;

/// A guard against a hang, not a budget: each step takes minutes at most.
pub(crate) const LIMIT: Duration = Duration::from_secs(35 * 60);

pub(crate) fn format() -> crate::Result<Outcome> {
    show(&[
        Invocation::cargo("fmt --all --check"),
        Invocation::cargo("fmt --check --manifest-path fuzz/Cargo.toml"),
    ])
}

/// Clippy for all members.
pub(crate) fn lint() -> crate::Result<Outcome> {
    let clippy = "clippy --keep-going --workspace --all-targets --all-features -- -D warnings";
    show(&[Invocation::cargo(clippy)])
}

pub(crate) fn documentation() -> crate::Result<Outcome> {
    show(&[
        Invocation::cargo("doc --workspace --no-deps --all-features --keep-going")
            .env("RUSTDOCFLAGS", "-D warnings"),
    ])
}

/// Checks the spelling of all files, configured in `_typos.toml`.
pub(crate) fn spelling(workspace: &Workspace, required: bool) -> crate::Result<Outcome> {
    with_tool(workspace, "typos", required, |typos| {
        vec![typos.args(["--format", "brief"])]
    })
}

/// Checks bans, licences and sources, configured in `deny.toml`, and advisories if their database
/// is on the machine: it comes from the network, which not every machine has.
pub(crate) fn dependencies(workspace: &Workspace, required: bool) -> crate::Result<Outcome> {
    let database = peers::cargo_home().map(|home| home.join("advisory-dbs"));
    let advised = database.is_some_and(|database| database.is_dir());
    let outcome = with_tool(workspace, "cargo-deny", required, |deny| {
        let check = deny.clone().args(["check", "bans", "licenses", "sources"]);
        let advisories = deny.args(["--offline", "check", "advisories"]);
        [check]
            .into_iter()
            .chain(advised.then_some(advisories))
            .collect()
    })?;
    Ok(match outcome {
        Outcome::Passed { note: None } if !advised => Outcome::Passed {
            note: Some(
                "no database of advisories; `cargo deny check advisories` fetches it".to_owned(),
            ),
        },
        outcome => outcome,
    })
}

/// Libraries whose features are checked one by one, not in pairs. The features are independent, and
/// each has large dependencies, which fifteen pairs would check many times.
const ONE_BY_ONE: [&str; 2] = ["azure-loadbalancer", "xds-control-plane"];

/// Features that no code combines with another one, so each is checked alone: the test doubles, look-ups
/// by servers of DNS, and the encryption of affinity values.
const ALONE: [&str; 3] = ["testing", "dns", "affinity-keys"];

/// A run of cargo-hack: the libraries, and how their features are combined.
#[derive(Debug, PartialEq, Eq)]
struct FeatureSets<'a> {
    libraries: Vec<&'a str>,
    arguments: Vec<String>,
}

impl<'a> FeatureSets<'a> {
    /// Each library alone: without features, with each feature, and (except for [`ONE_BY_ONE`] and
    /// [`ALONE`]) with each pair. The feature `default` is excluded, since it equals another one
    /// everywhere.
    fn of(libraries: &[&'a str], has_feature: impl Fn(&str, &str) -> bool) -> Vec<Self> {
        let (one_by_one, paired): (Vec<_>, Vec<_>) = libraries
            .iter()
            .copied()
            .partition(|name| ONE_BY_ONE.contains(name));
        let alone = ALONE.map(|feature| {
            let libraries = paired.iter().copied();
            Self {
                libraries: libraries
                    .filter(|name| has_feature(name, feature))
                    .collect(),
                arguments: words(&format!("--no-default-features --features {feature}")),
            }
        });
        let excluded = ALONE.join(",");
        let combined = [
            Self {
                libraries: one_by_one,
                arguments: words("--feature-powerset --depth 1 --exclude-features default"),
            },
            Self {
                libraries: paired,
                arguments: words(&format!(
                    "--feature-powerset --depth 2 --exclude-features default,{excluded}"
                )),
            },
        ];
        let some = |set: &Self| !set.libraries.is_empty();
        combined.into_iter().chain(alone).filter(some).collect()
    }

    fn command(&self, hack: &Path) -> Invocation {
        Invocation::new(hack)
            .args(["hack", "check", "--lib", "--keep-going"])
            .args(self.arguments.iter().map(String::as_str))
            .args(self.libraries.iter().flat_map(|name| ["--package", name]))
    }
}

fn words(text: &str) -> Vec<String> {
    text.split(' ').map(str::to_owned).collect()
}

/// Checks each library alone with its [`FeatureSets`]. In the build of the whole workspace,
/// features that other members enable could hide a missing one.
pub(crate) fn features(workspace: &Workspace, required: bool) -> crate::Result<Outcome> {
    let Some(hack) = peers::find(workspace, "cargo-hack") else {
        return Ok(without_tool("cargo-hack", required));
    };
    let libraries = workspace.published_libraries();
    let mut failed = Vec::new();
    let mut why = Vec::new();
    for sets in FeatureSets::of(&libraries, |name, feature| {
        workspace.has_feature(name, feature)
    }) {
        let hack = sets.command(&hack);
        say!("{hack}");
        // Counted here: flags that deny warnings would make cargo check every dependency again.
        let mut warnings = 0;
        let ended = hack.follow(LIMIT, |line| {
            warnings += usize::from(is_count_of_warnings(line));
            output::line(line);
        })?;
        if !ended.is_success() || warnings > 0 {
            why.push(format!("{ended}, {warnings} builds with warnings"));
            failed.push(hack.to_string());
        }
    }
    Ok(if failed.is_empty() {
        Outcome::PASSED
    } else {
        Outcome::Failed {
            why: why.join("; "),
            repeat: failed,
        }
    })
}

/// Returns true for the line that cargo prints after the warnings of a build.
fn is_count_of_warnings(line: &str) -> bool {
    line.contains("warning") && line.contains("generated") && line.contains('`')
}

/// Runs commands of a tool. If it is missing they are skipped, or fail if it is required.
pub(crate) fn with_tool(
    workspace: &Workspace,
    name: &str,
    required: bool,
    commands: impl FnOnce(Invocation) -> Vec<Invocation>,
) -> crate::Result<Outcome> {
    if let Some(tool) = peers::find(workspace, name) {
        return show(&commands(Invocation::new(tool)));
    }
    Ok(without_tool(name, required))
}

fn without_tool(name: &str, required: bool) -> Outcome {
    let why = format!("there is no {name}: `cargo xtask peers {name}` fetches it");
    match required {
        true => Outcome::Failed {
            why,
            repeat: Vec::new(),
        },
        false => Outcome::Skipped { why },
    }
}

/// Runs all of them, also after a failure, and fails if any failed.
pub(crate) fn show(commands: &[Invocation]) -> crate::Result<Outcome> {
    let mut failed = Vec::new();
    let mut why = String::new();
    for command in commands {
        say!("{command}");
        let ended = command.show(LIMIT)?;
        if !ended.is_success() {
            why = ended.to_string();
            failed.push(command.to_string());
        }
    }
    Ok(if failed.is_empty() {
        Outcome::PASSED
    } else {
        Outcome::Failed {
            why,
            repeat: failed,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_library_is_left_out_and_lone_features_are_tried_alone() {
        let libraries = ["azure-loadbalancer", "discovery-core", "proxy-model"];
        let sets = FeatureSets::of(&libraries, |name, feature| {
            name == "discovery-core" && feature != "affinity-keys"
        });
        let commands: Vec<_> = sets
            .iter()
            .map(|set| set.command(Path::new("cargo-hack")).to_string())
            .collect();
        let hack = "cargo-hack hack check --lib --keep-going";
        assert_eq!(
            commands,
            [
                format!(
                    "{hack} --feature-powerset --depth 1 --exclude-features default --package azure-loadbalancer"
                ),
                format!(
                    "{hack} --feature-powerset --depth 2 --exclude-features default,testing,dns,affinity-keys --package discovery-core --package proxy-model"
                ),
                format!("{hack} --no-default-features --features testing --package discovery-core"),
                format!("{hack} --no-default-features --features dns --package discovery-core"),
            ]
        );
        assert_eq!(FeatureSets::of(&["log-sink"], |_, _| false).len(), 1);
    }

    #[test]
    fn warnings_of_a_build_are_noticed() {
        for (line, expected) in [
            ("warning: `proxy-model` (lib) generated 1 warning", true),
            ("warning: unused import: `std::fs`", false),
            ("    Checking proxy-model v0.1.0", false),
        ] {
            assert_eq!(is_count_of_warnings(line), expected, "{line}");
        }
    }
}
