//! The key that agents demand.

use crate::client::AuthKey;
use crate::options::{KeyFileError, SerfOptions, read_key};

/// Returns the current key.
pub(super) async fn current(options: &SerfOptions) -> Result<Option<AuthKey>, KeyFileError> {
    let Some(path) = options.auth_key_file.clone() else {
        return Ok(options.auth_key.clone());
    };
    // Disks block, and those on a network may hang.
    match tokio::task::spawn_blocking(move || read_key(&path)).await {
        Ok(key) => key.map(Some),
        Err(error) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            // The runtime is shutting down, and the result is not used.
            Err(_) => Ok(None),
        },
    }
}
