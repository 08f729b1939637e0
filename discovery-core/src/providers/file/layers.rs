//! The files and values that together are a configuration.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use proxy_model::json::Setting;

use crate::contain::require_regular;

/// The separator of keys in names that may not have colons, as in .NET.
const SEPARATOR: &str = "__";

/// Names of files that .NET's key-per-file provider leaves out as well (`IgnorePrefix`).
const IGNORED: &str = "ignore.";

/// The most files of a directory that are read.
const MOST_FILES: usize = 10_000;

/// The largest file that holds one value, in bytes.
const MOST_VALUE: u64 = 1 << 20;

/// The layers of a configuration, each on top of the ones before:
///
/// 1. the files, in the order given, each with the one of the [environment](Self::with_environment) on top;
/// 2. [directories](Self::with_key_directory) in which each file holds one value;
/// 3. [settings](Self::with_settings): variables of the environment, options of the command line.
///
/// Files and directories are followed while they change. Settings stay as they were given.
#[derive(Clone, Debug, Default)]
pub struct Layers {
    files: Vec<PathBuf>,
    environment: Option<String>,
    directories: Vec<PathBuf>,
    settings: Vec<Vec<Setting>>,
}

impl Layers {
    /// Creates layers of files.
    pub fn of_files<P: Into<PathBuf>>(paths: impl IntoIterator<Item = P>) -> Self {
        Self {
            files: paths.into_iter().map(Into::into).collect(),
            ..Self::default()
        }
    }

    /// Adds the file of an environment on top of each file, if it exists: `appsettings.Production.json` on
    /// `appsettings.json`. One that is among the files itself keeps its place there.
    #[must_use]
    pub fn with_environment(mut self, name: impl Into<String>) -> Self {
        self.environment = Some(name.into());
        self
    }

    /// Adds a directory in which each file holds one value, as secrets are mounted into containers: the
    /// file `ReverseProxy__Routes__r__Order` holds `Order`. The last line end of a file is left out. Files
    /// without `__` in their names are not read.
    #[must_use]
    pub fn with_key_directory(mut self, path: impl Into<PathBuf>) -> Self {
        self.directories.push(path.into());
        self
    }

    /// Adds values that stay as they are.
    #[must_use]
    pub fn with_settings(mut self, settings: Vec<Setting>) -> Self {
        self.settings.push(settings);
        self
    }

    /// Returns the files, each with true if it may be missing.
    pub fn files(&self) -> Vec<(PathBuf, bool)> {
        let beside = |path: &PathBuf| beside(path, self.environment.as_deref()?);
        let of_others: Vec<PathBuf> = self.files.iter().filter_map(beside).collect();
        let mut all = Vec::new();
        for path in &self.files {
            all.push((path.clone(), false));
            // The file of an environment has no such file itself.
            let own =
                beside(path).filter(|own| !self.files.contains(own) && !of_others.contains(path));
            all.extend(own.map(|own| (own, true)));
        }
        all
    }

    /// Returns the directories in which each file holds one value.
    pub fn key_directories(&self) -> &[PathBuf] {
        &self.directories
    }

    pub(super) fn settings(&self) -> &[Vec<Setting>] {
        &self.settings
    }

    pub(super) fn is_empty(&self) -> bool {
        self.files.is_empty()
    }
}

/// Returns the path of an environment's file: `appsettings.Production.json` for `appsettings.json`.
fn beside(path: &Path, environment: &str) -> Option<PathBuf> {
    let mut name = path.file_stem()?.to_owned();
    name.push(".");
    name.push(environment);
    if let Some(extension) = path.extension() {
        name.push(".");
        name.push(extension);
    }
    Some(path.with_file_name(name))
}

/// Reads the values of a directory, in the order of their names. Blocks.
///
/// Directories, and files whose names begin with a dot, are left out: that is how Kubernetes keeps the
/// previous version of a mounted secret.
pub(super) fn read_keys(directory: &Path) -> Result<Vec<Setting>, (PathBuf, io::Error)> {
    let of_directory = |error| (directory.to_owned(), error);
    let mut names = Vec::new();
    for entry in fs::read_dir(directory).map_err(of_directory)? {
        let name = entry.map_err(of_directory)?.file_name();
        // Names that are not Unicode are no keys.
        let Some(name) = name.to_str() else {
            continue;
        };
        // Every section is an object, so a value has a path. Others are secrets of other programs.
        let is_key = name.contains(SEPARATOR) && !name.starts_with(IGNORED);
        if name.starts_with('.') || !is_key {
            continue;
        }
        names.push(name.to_owned());
        if names.len() > MOST_FILES {
            let message = format!("there are more than {MOST_FILES} files");
            return Err(of_directory(io::Error::other(message)));
        }
    }
    names.sort_unstable();
    let mut settings = Vec::new();
    for name in names {
        let path = directory.join(&name);
        let of_file = |error| (path.clone(), error);
        if fs::metadata(&path).map_err(of_file)?.is_dir() {
            continue;
        }
        settings.push(Setting {
            key: key_of(&name),
            value: read_value(&path).map_err(of_file)?,
            origin: path.display().to_string(),
        });
    }
    Ok(settings)
}

/// Returns the path of keys that a name with `__` stands for, as .NET's providers read it.
pub fn key_of(name: &str) -> String {
    name.replace(SEPARATOR, ":")
}

fn read_value(path: &Path) -> io::Result<String> {
    require_regular(path)?;
    let bytes = super::load::read_at_most(path, MOST_VALUE)?;
    let mut value = super::encoding::decoded(&bytes)
        .map_err(|reason| io::Error::new(io::ErrorKind::InvalidData, reason))?
        .into_owned();
    if value.ends_with('\n') {
        value.pop();
        if value.ends_with('\r') {
            value.pop();
        }
    }
    Ok(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files(layers: &Layers) -> Vec<(String, bool)> {
        let files = layers.files().into_iter();
        files
            .map(|(path, may_be_missing)| (path.display().to_string(), may_be_missing))
            .collect()
    }

    #[test]
    fn the_file_of_an_environment_lies_on_the_one_that_it_belongs_to() {
        let layers = Layers::of_files(["a/appsettings.json", "live.json", "none"]);
        let layers = layers.with_environment("Staging");
        let expected = [
            ("a/appsettings.json", false),
            ("a/appsettings.Staging.json", true),
            ("live.json", false),
            ("live.Staging.json", true),
            ("none", false),
            ("none.Staging", true),
        ];
        let expected = expected.map(|(path, optional)| (path.to_owned(), optional));
        assert_eq!(files(&layers), expected);
        // It was named by hand, as was needed before it was found by itself.
        let by_hand = Layers::of_files(["a.json", "a.Staging.json"]).with_environment("Staging");
        let expected = [("a.json", false), ("a.Staging.json", false)];
        let expected = expected.map(|(path, optional)| (path.to_owned(), optional));
        assert_eq!(files(&by_hand), expected);
    }

    #[test]
    fn each_file_of_a_directory_is_a_value() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path();
        for (name, content) in [
            ("A__B", &b"one\n"[..]),
            ("C__D", b"two\r\n\r\n"),
            ("keystore.p12", b"\xff"),
            ("E__0", b"\xff\xfet\0h\0r\0e\0e\0"),
            (".hidden", b"no"),
            ("ignore.me", b"no"),
        ] {
            fs::write(path.join(name), content).unwrap();
        }
        fs::create_dir(path.join("..data")).unwrap();
        fs::create_dir(path.join("more")).unwrap();
        let read = read_keys(path).unwrap();
        let read: Vec<_> = read
            .iter()
            .map(|s| (s.key.as_str(), s.value.as_str()))
            .collect();
        assert_eq!(read, [("A:B", "one"), ("C:D", "two\r\n"), ("E:0", "three")]);
        fs::write(path.join("F__G"), b"\xff").unwrap();
        let (failed, error) = read_keys(path).unwrap_err();
        assert_eq!(failed, path.join("F__G"));
        assert!(error.to_string().contains("UTF-8"), "{error}");
    }
}
