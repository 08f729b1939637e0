//! The follower of a file with secrets: affinity keys, or tokens of the admin page.

use std::path::{Path, PathBuf};
use std::time::Duration;

use proxy_model::Problem;

use crate::faults::Faults;
use crate::regular_file;

/// The interval at which the file is checked.
const LOOK_EVERY: Duration = Duration::from_secs(5);

/// A file with secrets, and its content before the secrets were read: a change in between is found at the next look.
#[derive(Debug)]
pub(crate) struct SecretFile {
    path: PathBuf,
    seen: Option<Vec<u8>>,
}

/// The words about the secrets of a file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wording {
    /// The name of the secrets: `the affinity keys`.
    pub(crate) plural: &'static str,
    /// The name of new ones: `the new affinity keys`.
    pub(crate) new: &'static str,
    /// The place of the file in the configuration.
    pub(crate) pointer: &'static str,
    /// The code of the problem with a file that cannot be used.
    pub(crate) code: &'static str,
}

impl SecretFile {
    /// Notes the content of the file. To be called before the secrets are read. Blocks.
    pub(crate) fn noted(path: &Path) -> Self {
        Self {
            path: path.to_owned(),
            seen: regular_file::read(path).ok(),
        }
    }

    /// Checks the file every few seconds and installs new secrets. A file that cannot be used changes nothing.
    pub(crate) async fn follow<T: Send + 'static>(
        mut self,
        wording: Wording,
        read: impl Fn(PathBuf) -> Result<T, String> + Copy + Send + 'static,
        install: impl Fn(T),
        faults: Faults,
    ) {
        let Wording {
            plural,
            new,
            pointer,
            code,
        } = wording;
        loop {
            tokio::time::sleep(LOOK_EVERY).await;
            let now = contents(self.path.clone()).await;
            if now == self.seen {
                continue;
            }
            // A file that cannot be used is reported once and not at every look.
            self.seen = now;
            let path = self.path.clone();
            // Reading off the runtime keeps a slow disk from delaying everything else.
            let Ok(secrets) = tokio::task::spawn_blocking(move || read(path)).await else {
                return;
            };
            match secrets {
                Ok(secrets) => {
                    install(secrets);
                    faults.clear(pointer);
                    tracing::info!(target: "proxy::config", "{plural} were replaced");
                }
                Err(error) => {
                    let kept = format!("{new} cannot be used, the old ones stay");
                    tracing::warn!(target: "proxy::config", error, "{kept}");
                    let problem = Problem::warning(pointer, code, format!("{kept}: {error}"));
                    faults.set(pointer, problem);
                }
            }
        }
    }
}

/// The content of the file, for detecting changes. `None` if it cannot be read at the moment.
async fn contents(file: PathBuf) -> Option<Vec<u8>> {
    let read = tokio::task::spawn_blocking(move || regular_file::read(&file).ok());
    read.await.ok().flatten()
}
