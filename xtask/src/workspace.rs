//! The metadata of this workspace from cargo.

use std::path::{Path, PathBuf};

use cargo_metadata::{Metadata, MetadataCommand, Package, TargetKind};

use crate::process::Invocation;

/// Environment variables of [`Workspace::compiled_once`].
const ONCE: [(&str, &str); 3] = [
    ("CARGO_INCREMENTAL", "0"),
    ("CARGO_PROFILE_DEV_DEBUG", "0"),
    ("CARGO_PROFILE_DEV_STRIP", "symbols"),
];

/// The workspace of xtask, from any directory.
#[derive(Debug)]
pub(crate) struct Workspace {
    metadata: Metadata,
    /// Environment variables of each compiling command.
    settings: Vec<(&'static str, &'static str)>,
}

impl Workspace {
    pub(crate) fn load() -> crate::Result<Self> {
        let manifest = Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml");
        let metadata = MetadataCommand::new()
            .manifest_path(manifest)
            .no_deps()
            .exec()?;
        Ok(Self {
            metadata,
            settings: Vec::new(),
        })
    }

    /// Disables incremental state and debug information for a run that compiles everything once and
    /// is not debugged: they take half of the disk and a tenth of the time. Panics report their line
    /// all the same. Cargo's own variables take precedence.
    #[must_use]
    pub(crate) fn compiled_once(self) -> Self {
        let is_unset = |(name, _): &(&'static str, _)| std::env::var_os(name).is_none();
        Self {
            settings: ONCE.into_iter().filter(is_unset).collect(),
            ..self
        }
    }

    /// A cargo command with the compile settings of this workspace.
    pub(crate) fn compiling(&self, command: Invocation) -> Invocation {
        let settings = self.settings.iter();
        settings.fold(command, |command, (name, value)| command.env(name, *value))
    }

    pub(crate) fn root(&self) -> &Path {
        self.metadata.workspace_root.as_std_path()
    }

    /// The directory of cargo's output.
    pub(crate) fn target_directory(&self) -> &Path {
        self.metadata.target_directory.as_std_path()
    }

    /// The directory of the real peers: `PEERS_DIR` if set, so that several checkouts can share
    /// them.
    pub(crate) fn peers_directory(&self) -> PathBuf {
        let named = std::env::var_os("PEERS_DIR").filter(|named| !named.is_empty());
        named.map_or_else(
            || self.target_directory().join("peers"),
            |named| self.root().join(named),
        )
    }

    /// Packages meant for publication, in cargo's order.
    pub(crate) fn published(&self) -> Vec<&str> {
        let packages = self
            .packages()
            .into_iter()
            .filter(|package| is_published(package));
        packages.map(|package| package.name.as_str()).collect()
    }

    /// Packages meant for publication that have a library, in cargo's order.
    pub(crate) fn published_libraries(&self) -> Vec<&str> {
        self.packages()
            .into_iter()
            .filter(|package| is_published(package))
            .filter(|package| has_target(package, &TargetKind::Lib))
            .map(|package| package.name.as_str())
            .collect()
    }

    /// True if a package has a feature of this name.
    pub(crate) fn has_feature(&self, package: &str, feature: &str) -> bool {
        let packages = self.packages();
        let mut named = packages.iter().filter(|found| found.name == package);
        named.any(|package| package.features.contains_key(feature))
    }

    pub(crate) fn package_names(&self) -> impl Iterator<Item = &str> {
        self.metadata
            .workspace_packages()
            .into_iter()
            .map(|package| package.name.as_str())
    }

    /// The directory of a package's library; `None` if there is no such package or library.
    pub(crate) fn sources(&self, package: &str) -> Option<PathBuf> {
        let package = *self.packages().iter().find(|found| found.name == package)?;
        let is_library = |target: &&cargo_metadata::Target| target.kind.contains(&TargetKind::Lib);
        let library = package.targets.iter().find(is_library)?;
        Some(library.src_path.parent()?.as_std_path().to_owned())
    }

    /// The targets of one kind of a package, by name; `None` if there is no such package.
    pub(crate) fn targets(&self, package: &str, kind: &TargetKind) -> Option<Vec<&str>> {
        let package = *self.packages().iter().find(|found| found.name == package)?;
        let mut names: Vec<_> = package
            .targets
            .iter()
            .filter(|target| target.kind.contains(kind))
            .map(|target| target.name.as_str())
            .collect();
        names.sort_unstable();
        Some(names)
    }

    fn packages(&self) -> Vec<&Package> {
        self.metadata.workspace_packages()
    }
}

fn is_published(package: &Package) -> bool {
    package.publish.as_ref().is_none_or(|to| !to.is_empty())
}

fn has_target(package: &Package, kind: &TargetKind) -> bool {
    package
        .targets
        .iter()
        .any(|target| target.kind.contains(kind))
}
