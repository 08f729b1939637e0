//! The members of the workspace with their dependencies.

use std::path::{Path, PathBuf};

use cargo_metadata::{DependencyKind, MetadataCommand, Package as Described};

/// A member of the workspace.
#[derive(Clone, Debug, Default)]
pub(crate) struct Package {
    pub(crate) name: String,
    pub(crate) manifest: PathBuf,
    pub(crate) published: bool,
    pub(crate) description: Option<String>,
    pub(crate) license: Option<String>,
    pub(crate) readme: Option<PathBuf>,
    pub(crate) rust_version: Option<String>,
    pub(crate) dependencies: Vec<Dependency>,
}

/// An edge to another member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Dependency {
    pub(crate) on: String,
    pub(crate) development_only: bool,
    pub(crate) optional: bool,
}

/// All members, without dependencies on other packages.
#[derive(Clone, Debug, Default)]
pub(crate) struct Graph {
    pub(crate) packages: Vec<Package>,
}

impl Graph {
    /// Reads the graph from cargo, without the network.
    pub(crate) fn of_workspace(root: &Path) -> Self {
        let metadata = MetadataCommand::new()
            .manifest_path(root.join("Cargo.toml"))
            .no_deps()
            .exec()
            .expect("the workspace is well-formed, since this test was built from it");
        let members = metadata.workspace_packages();
        let is_member = |name: &str| members.iter().any(|member| member.name == name);
        let packages = members
            .iter()
            .map(|member| describe(member, &is_member))
            .collect();
        Self { packages }
    }
}

fn describe(package: &Described, is_member: &dyn Fn(&str) -> bool) -> Package {
    let dependencies = package
        .dependencies
        .iter()
        .filter(|dependency| is_member(&dependency.name))
        .map(|dependency| Dependency {
            on: dependency.name.clone(),
            development_only: dependency.kind == DependencyKind::Development,
            optional: dependency.optional,
        })
        .collect();
    Package {
        name: package.name.to_string(),
        manifest: package.manifest_path.clone().into(),
        published: package.publish.as_ref().is_none_or(|to| !to.is_empty()),
        description: package.description.clone(),
        license: package.license.clone(),
        readme: package.readme().map(Into::into),
        rust_version: package.rust_version.as_ref().map(ToString::to_string),
        dependencies,
    }
}

/// Returns the missing parts of a package's description. Published packages need a README.
pub(crate) fn self_description(package: &Package) -> Vec<String> {
    let mut missing = Vec::new();
    let mut ask = |there: bool, what: &str| {
        if !there {
            missing.push(format!("{} has no {what}", package.name));
        }
    };
    let says = |field: &Option<String>| field.as_ref().is_some_and(|text| !text.trim().is_empty());
    ask(says(&package.license), "license");
    ask(says(&package.rust_version), "rust-version");
    if package.published {
        ask(says(&package.description), "description");
        ask(
            package
                .readme
                .as_ref()
                .is_some_and(|readme| readme.is_file()),
            "README",
        );
    }
    missing
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_published_package_that_says_nothing_is_told_what_is_missing() {
        let silent = Package {
            name: "proxy-model".to_owned(),
            published: true,
            description: Some(" ".to_owned()),
            readme: Some(PathBuf::from("no/such/README.md")),
            ..Package::default()
        };
        assert_eq!(
            self_description(&silent),
            [
                "proxy-model has no license",
                "proxy-model has no rust-version",
                "proxy-model has no description",
                "proxy-model has no README",
            ]
        );
    }

    #[test]
    fn an_unpublished_package_needs_less() {
        let tool = Package {
            name: "xtask".to_owned(),
            license: Some("MIT OR Apache-2.0".to_owned()),
            rust_version: Some("1.88".to_owned()),
            ..Package::default()
        };
        assert!(self_description(&tool).is_empty());
    }
}
