//! The combination of configuration files to one document.

use std::path::PathBuf;

use discovery_core::providers::file::read_document;
use proxy_model::json::Node;
use proxy_model::{Problem, Problems};

/// Reads `files`, overlaying each on the ones before, key by key.
///
/// # Errors
///
/// A file cannot be read or is not JSON.
pub(crate) fn load(files: &[PathBuf]) -> Result<Node, Problems> {
    read_document(files).map_err(|error| match error {
        discovery_core::providers::file::FileError::Invalid { problems, .. } => problems,
        unreadable => {
            let cause = std::error::Error::source(&unreadable);
            let message = match cause {
                Some(cause) => format!("{unreadable}: {cause}"),
                None => unreadable.to_string(),
            };
            Problem::error("", "unreadable_file", message).into()
        }
    })
}
