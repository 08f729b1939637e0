//! Reading the files: from bytes to a configuration.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use proxy_model::config::ProxyConfig;
use proxy_model::json::{Layer, Layered, MAX_DOCUMENT_BYTES, Origins, Setting, read_config};
use proxy_model::{Problem, Problems, Snapshot, same_id};
use sha2::{Digest, Sha256};

use super::encoding::decoded;
use super::layers::{Layers, read_keys};
use super::{FileError, FileOptions};
use crate::contain::require_regular;

/// The section with routes and clusters.
const SECTION: &str = "ReverseProxy";

/// The content of the files.
pub(super) struct Contents {
    files: Vec<(PathBuf, Vec<u8>)>,
    /// The values of directories in which each file holds one.
    keys: Vec<Vec<Setting>>,
    /// The files that may be missing and are there.
    pub(super) present: Vec<PathBuf>,
    /// A fingerprint that distinguishes these contents from others.
    pub(super) fingerprint: [u8; 32],
}

/// The configuration that files hold.
#[derive(Default)]
pub(super) struct Loaded {
    pub(super) config: ProxyConfig,
    /// Warnings.
    pub(super) problems: Problems,
    /// The pointer to the section, in the document's spelling.
    pub(super) section: String,
    /// The origins of values.
    pub(super) origins: Option<Arc<Origins>>,
}

/// Reads layers as one document, as [`FileProvider`](super::FileProvider) does: for sections other than its
/// own. Blocks.
///
/// # Errors
///
/// Returns an error if a file is missing, cannot be read, or is not a JSON object.
pub fn read_document(layers: &Layers) -> Result<Layered, FileError> {
    if layers.is_empty() {
        return Err(FileError::NoFile);
    }
    read(layers, &[])?.document(layers)
}

/// Reads all files. Blocks. Files in `known` must still be there, also if they need not have been.
pub(super) fn read(layers: &Layers, known: &[PathBuf]) -> Result<Contents, FileError> {
    let unreadable = |path: &Path| {
        let path = path.to_owned();
        move |source| FileError::Unreadable { path, source }
    };
    let mut contents = Contents {
        files: Vec::new(),
        keys: Vec::new(),
        present: Vec::new(),
        fingerprint: [0; 32],
    };
    let mut hash = Sha256::new();
    let mut add = |bytes: &[u8]| {
        hash.update((bytes.len() as u64).to_le_bytes());
        hash.update(bytes);
    };
    for (path, may_be_missing) in layers.files() {
        let bytes = match read_at_most(&path, MAX_DOCUMENT_BYTES as u64) {
            Err(error)
                if may_be_missing
                    && error.kind() == io::ErrorKind::NotFound
                    && !known.contains(&path) =>
            {
                // Distinguishes it from an empty file.
                add(b"missing");
                continue;
            }
            read => read.map_err(unreadable(&path))?,
        };
        add(&bytes);
        if may_be_missing {
            contents.present.push(path.clone());
        }
        contents.files.push((path, bytes));
    }
    for directory in layers.key_directories() {
        let keys = read_keys(directory)
            .map_err(|(path, source)| FileError::Unreadable { path, source })?;
        for setting in &keys {
            add(setting.key.as_bytes());
            add(setting.value.as_bytes());
        }
        contents.keys.push(keys);
    }
    contents.fingerprint = hash.finalize().into();
    Ok(contents)
}

/// Reads a regular file of at most `limit` bytes.
pub(super) fn read_at_most(path: &Path, limit: u64) -> io::Result<Vec<u8>> {
    require_regular(path)?;
    let mut bytes = Vec::new();
    File::open(path)?.take(limit + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > limit {
        let message = format!("the file has more than {limit} bytes");
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, message));
    }
    Ok(bytes)
}

impl Contents {
    /// Returns all layers as one document.
    fn document(self, layers: &Layers) -> Result<Layered, FileError> {
        let mut all = Vec::new();
        let paths: Vec<PathBuf> = self.files.iter().map(|(path, _)| path.clone()).collect();
        for (path, bytes) in self.files {
            let name = path.display().to_string();
            let text = decoded(&bytes).map_err(|reason| {
                let problem = Problem::error("", "invalid_utf8", reason).with_origin(name.as_str());
                FileError::Invalid {
                    paths: vec![path],
                    problems: problem.into(),
                }
            })?;
            all.push(Layer::File {
                name,
                text: text.into_owned(),
            });
        }
        let settings = self
            .keys
            .into_iter()
            .chain(layers.settings().iter().cloned());
        all.extend(settings.map(Layer::Settings));
        Layered::new(all).map_err(|problems| {
            let origin = problems.iter().find_map(|problem| problem.origin.clone());
            let is_it =
                |path: &&PathBuf| origin.as_deref() == Some(path.display().to_string().as_str());
            FileError::Invalid {
                paths: paths
                    .iter()
                    .find(is_it)
                    .map_or_else(|| paths.clone(), |path| vec![path.clone()]),
                problems,
            }
        })
    }

    /// Returns the configuration in the section `ReverseProxy` of the layers.
    ///
    /// Values are not checked here, since filters may still change them. Only if the form is wrong, so that
    /// there is no configuration, all problems are reported at once.
    pub(super) fn config(
        self,
        layers: &Layers,
        options: &FileOptions,
    ) -> Result<Loaded, FileError> {
        let paths: Vec<PathBuf> = self.files.iter().map(|(path, _)| path.clone()).collect();
        let document = self.document(layers)?;
        let mut of_policies = Problems::new();
        let policies = match options.policies {
            Some(read) => Arc::new(read(&document, &mut of_policies)),
            None => Arc::default(),
        };
        let Layered {
            node,
            problems: merged,
            origins,
            ..
        } = document;
        let Some(section) = node.get(SECTION) else {
            if !options.section_required {
                origins.place(&mut of_policies);
                if of_policies.has_errors() {
                    return Err(FileError::Invalid {
                        paths,
                        problems: of_policies,
                    });
                }
                return Ok(Loaded {
                    config: ProxyConfig {
                        policies,
                        ..ProxyConfig::default()
                    },
                    problems: of_policies,
                    ..Loaded::default()
                });
            }
            let message = format!("there is no section `{SECTION}`");
            return Err(FileError::Invalid {
                paths,
                problems: Problem::error("", "missing_section", message).into(),
            });
        };
        let pointer = node.spelled(&format!("/{SECTION}"));
        let is_ours = |problem: &Problem| {
            let first = problem.pointer.split('/').nth(1).unwrap_or_default();
            same_id(first, SECTION)
        };
        let mut merged = Problems::from_iter(merged.into_iter().filter(is_ours));
        merged.append(of_policies);
        let mut problems = merged.clone();
        let mut config = read_config(section, &pointer, &mut problems);
        config.policies = Arc::clone(&policies);
        if problems.has_errors() {
            let compile = options.compile.clone().with_policies(policies);
            if let Err(everything) = Snapshot::read(section, &pointer, &compile) {
                problems = merged;
                problems.append(everything);
            }
            origins.place(&mut problems);
            return Err(FileError::Invalid { paths, problems });
        }
        origins.place(&mut problems);
        Ok(Loaded {
            config,
            problems,
            section: pointer,
            origins: Some(Arc::new(origins)),
        })
    }
}
