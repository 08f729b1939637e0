//! Reading the files: from bytes to a configuration.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use proxy_model::config::ProxyConfig;
use proxy_model::json::{MAX_DOCUMENT_BYTES, Node, parse_document, read_config};
use proxy_model::{Problem, Problems, Snapshot};
use sha2::{Digest, Sha256};

use super::{FileError, FileOptions};
use crate::contain::require_regular;

/// The section with routes and clusters.
const SECTION: &str = "ReverseProxy";

/// The content of the files.
pub(super) struct Contents {
    files: Vec<Vec<u8>>,
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
}

/// Reads JSON files as one document, each on top of the previous one, key by key, as
/// [`FileProvider`](super::FileProvider) does: for sections other than its own. Blocks.
///
/// # Errors
///
/// Returns an error if a file is missing, cannot be read, or is not a JSON object.
pub fn read_document(paths: &[PathBuf]) -> Result<Node, FileError> {
    let document = read(paths)?.document(paths)?;
    document.ok_or(FileError::NoFile)
}

/// Reads all files. Blocks.
pub(super) fn read(paths: &[PathBuf]) -> Result<Contents, FileError> {
    let mut files = Vec::with_capacity(paths.len());
    let mut hash = Sha256::new();
    for path in paths {
        let bytes = read_bounded(path).map_err(|source| FileError::Unreadable {
            path: path.clone(),
            source,
        })?;
        hash.update((bytes.len() as u64).to_le_bytes());
        hash.update(&bytes);
        files.push(bytes);
    }
    Ok(Contents {
        files,
        fingerprint: hash.finalize().into(),
    })
}

fn read_bounded(path: &Path) -> io::Result<Vec<u8>> {
    require_regular(path)?;
    let mut bytes = Vec::new();
    let limit = MAX_DOCUMENT_BYTES as u64;
    File::open(path)?.take(limit + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > limit {
        let message = format!("the file has more than {limit} bytes");
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, message));
    }
    Ok(bytes)
}

impl Contents {
    /// The files as one document, each lying on the one before, key by key.
    fn document(&self, paths: &[PathBuf]) -> Result<Option<Node>, FileError> {
        let mut document: Option<Node> = None;
        for (path, bytes) in paths.iter().zip(&self.files) {
            let invalid = |problems: Problems| FileError::Invalid {
                paths: vec![path.clone()],
                problems: naming(path, paths.len(), problems),
            };
            let text = std::str::from_utf8(bytes).map_err(|error| {
                let message = match bytes.get(..2) {
                    Some([0xff, 0xfe] | [0xfe, 0xff]) => {
                        "the file is UTF-16; save it as UTF-8".to_owned()
                    }
                    _ => format!("the file is not UTF-8: {error}"),
                };
                invalid(Problem::error("", "invalid_utf8", message).into())
            })?;
            let above = parse_document(text).map_err(invalid)?;
            if !matches!(above, Node::Object(_)) {
                let message = "the document is not an object";
                return Err(invalid(Problem::error("", "wrong_type", message).into()));
            }
            document = Some(match document {
                Some(below) => below.overlaid(above),
                None => above,
            });
        }
        Ok(document)
    }

    /// Returns the configuration in the section `ReverseProxy` of the files, each on top of the previous
    /// one.
    ///
    /// Values are not checked here, since filters may still change them. Only if the form is wrong, so that
    /// there is no configuration, all problems are reported at once.
    pub(super) fn config(
        &self,
        paths: &[PathBuf],
        options: &FileOptions,
    ) -> Result<Loaded, FileError> {
        let document = self.document(paths)?;
        let invalid = |problems: Problems| FileError::Invalid {
            paths: paths.to_vec(),
            problems,
        };
        let mut of_policies = Problems::new();
        let policies = match (&document, options.policies) {
            (Some(document), Some(read)) => Arc::new(read(document, &mut of_policies)),
            _ => Arc::default(),
        };
        let section = document.as_ref().and_then(|document| {
            Some((
                document.spelled(&format!("/{SECTION}")),
                document.get(SECTION)?,
            ))
        });
        let Some((pointer, section)) = section else {
            if options.section_required {
                let message = format!("there is no section `{SECTION}`");
                return Err(invalid(
                    Problem::error("", "missing_section", message).into(),
                ));
            }
            if of_policies.has_errors() {
                return Err(invalid(of_policies));
            }
            return Ok(Loaded {
                config: ProxyConfig {
                    policies,
                    ..ProxyConfig::default()
                },
                problems: of_policies,
                section: String::new(),
            });
        };
        let mut problems = of_policies.clone();
        let mut config = read_config(section, &pointer, &mut problems);
        config.policies = Arc::clone(&policies);
        if !problems.has_errors() {
            return Ok(Loaded {
                config,
                problems,
                section: pointer,
            });
        }
        let compile = options.compile.clone().with_policies(policies);
        if let Err(everything) = Snapshot::read(section, &pointer, &compile) {
            problems = of_policies;
            problems.extend(everything);
        }
        Err(invalid(problems))
    }
}

/// The problems, with the file's name where there are several.
fn naming(path: &Path, files: usize, problems: Problems) -> Problems {
    if files < 2 {
        return problems;
    }
    let named = |mut problem: Problem| {
        problem.message = format!("in `{}`: {}", path.display(), problem.message);
        problem
    };
    problems.into_iter().map(named).collect()
}
