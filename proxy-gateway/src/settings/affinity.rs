//! The keys that affinity keys are encrypted with.

use std::fmt;
use std::path::{Path, PathBuf};

use proxy_model::json::ObjectReader;
use proxy_model::{Problem, Problems};
use proxy_runtime::affinity::AffinityKeys;

use crate::regular_file;

/// The pointer to the key that names a file.
pub(crate) const AFFINITY_KEYS_FILE: &str = "/Server/AffinityKeysFile";

/// The place of the keys.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum AffinityKeySource {
    /// The key is written in the configuration.
    Written(Secret),
    /// The key is in a file, which may change while the program runs.
    File(PathBuf),
}

/// A text that is not shown.
#[derive(Clone, PartialEq)]
pub(crate) struct Secret(String);

impl Secret {
    pub(super) fn new(text: String) -> Self {
        Self(text)
    }

    pub(super) fn text(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("…")
    }
}

/// Reads `AffinityKeys` and `AffinityKeysFile` of the section `Server`.
pub(super) fn read(server: &mut ObjectReader<'_, '_>) -> Option<AffinityKeySource> {
    let written = server.texts("AffinityKeys");
    let file = server.text("AffinityKeysFile");
    match (written, file) {
        (None, None) => None,
        (Some(keys), Some(_)) => {
            let pointer = server.pointer_to("AffinityKeysFile");
            let message = "there is `AffinityKeys`, too, and only one of them can count";
            server
                .problems()
                .push(Problem::error(pointer, "conflicting_settings", message));
            Some(AffinityKeySource::Written(Secret(keys.join("\n"))))
        }
        (Some(keys), None) => {
            let text = keys.join("\n");
            if let Err(error) = AffinityKeys::parse(&text) {
                let pointer = server.pointer_to("AffinityKeys");
                let problem = Problem::error(pointer, "invalid_affinity_keys", error.to_string());
                server.problems().push(problem);
            }
            Some(AffinityKeySource::Written(Secret(text)))
        }
        (None, Some(file)) if file.is_empty() => {
            let pointer = server.pointer_to("AffinityKeysFile");
            let message = "`AffinityKeysFile` is empty";
            server
                .problems()
                .push(Problem::error(pointer, "invalid_affinity_keys", message));
            Some(AffinityKeySource::File(file.into()))
        }
        (None, Some(file)) => Some(AffinityKeySource::File(file.into())),
    }
}

impl AffinityKeySource {
    /// The file, if the keys are in one.
    pub(crate) fn file(&self) -> Option<&Path> {
        match self {
            Self::Written(_) => None,
            Self::File(file) => Some(file),
        }
    }

    /// Returns the keys as they are now, or one sentence about why there are none.
    pub(crate) fn keys(&self) -> Result<AffinityKeys, String> {
        match self {
            Self::Written(Secret(text)) => {
                AffinityKeys::parse(text).map_err(|error| error.to_string())
            }
            Self::File(file) => {
                let shown = file.display();
                let text = regular_file::read_text(file)
                    .map_err(|error| format!("`{shown}` cannot be read: {error}"))?;
                AffinityKeys::parse(&text).map_err(|error| format!("`{shown}`: {error}"))
            }
        }
    }

    /// Returns an error if the keys cannot be used on this machine now.
    pub(crate) fn unusable(&self) -> Problems {
        let is_file = self.file().is_some();
        let problem = self.keys().err().filter(|_| is_file).map(|error| {
            Problem::error(
                AFFINITY_KEYS_FILE,
                "unusable_affinity_keys",
                format!("the affinity keys cannot be used on this machine: {error}"),
            )
        });
        problem.into_iter().collect()
    }
}
