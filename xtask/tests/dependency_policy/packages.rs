//! The packages that this machine's build is made of.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use cargo_metadata::semver::Version;

/// One package in one version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Package {
    pub(crate) name: String,
    pub(crate) version: Version,
    /// As its manifest says; empty if it says nothing.
    pub(crate) license: String,
    /// A path or the address of a repository; `None` for the default registry.
    pub(crate) origin: Option<String>,
    /// Whether it is more than a tool of tests and benchmarks.
    pub(crate) shipped: bool,
}

impl Package {
    /// Asks cargo, which has just built them and so has them all.
    pub(crate) fn all(root: &Path) -> Vec<Self> {
        let every = listing(root, "normal,build,dev");
        let shipped = listing(root, "normal,build");
        let parse = |line: &String| parse(line, shipped.contains(line));
        every.iter().filter_map(parse).collect()
    }
}

fn listing(root: &Path, edges: &str) -> BTreeSet<String> {
    let output = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
        .current_dir(root)
        .args(["tree", "--workspace", "--all-features", "--prefix", "none"])
        .args(["--format", "{p}|{l}", "--edges", edges])
        .output()
        .expect("cargo runs, since it runs this test");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "cargo tree: {errors}");
    let listing = String::from_utf8(output.stdout).expect("names and licences are text");
    // A package that was listed before is marked, since what it needs is not listed again.
    let unmarked = |line: &str| line.trim_end_matches(" (*)").to_owned();
    listing.lines().map(unmarked).collect()
}

/// Reads `name v1.2.3 (origin) (proc-macro)|licence`, where what is in parentheses may be missing.
fn parse(line: &str, shipped: bool) -> Option<Package> {
    let (package, license) = line.split_once('|')?;
    let mut words = package.splitn(3, ' ');
    let name = words.next()?.to_owned();
    let version = Version::parse(words.next()?.strip_prefix('v')?).ok()?;
    let remarks = words.next().unwrap_or_default();
    let origin = remarks
        .split(['(', ')'])
        .find(|remark| !matches!(remark.trim(), "" | "proc-macro"))
        .map(str::to_owned);
    Some(Package {
        name,
        version,
        license: license.trim().to_owned(),
        origin,
        shipped,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_cargo_tree_is_read() {
        let package = |line| parse(line, true).expect("it is a package");
        let plain = package("serde v1.0.229|MIT OR Apache-2.0");
        assert_eq!(plain.name, "serde");
        assert_eq!(plain.version, Version::new(1, 0, 229));
        assert_eq!(plain.license, "MIT OR Apache-2.0");
        assert_eq!(plain.origin, None);
        assert_eq!(package("syn v3.0.9 (proc-macro)|MIT").origin, None);
        assert_eq!(
            package("a v0.1.0 (/b c/a) (proc-macro)|MIT")
                .origin
                .as_deref(),
            Some("/b c/a")
        );
        assert_eq!(package("a v0.1.0-rc.1|").license, "");
        assert_eq!(parse("", true), None);
    }
}
