use std::path::PathBuf;

use async_trait::async_trait;

use super::{ParsedRegistry, Registry, RegistryError, parse_registry};
use crate::sources::file::FollowedFile;

/// A registry in a [file](parse_registry), which is read again when it changes.
#[derive(Debug)]
pub struct FileRegistry(FollowedFile);

impl FileRegistry {
    /// Reads that file. It need not be there yet.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self(FollowedFile::new(path))
    }
}

impl FileRegistry {
    fn parsed(&self, text: Result<String, String>) -> Result<ParsedRegistry, RegistryError> {
        let text = text.map_err(RegistryError::new)?;
        parse_registry(&text).map_err(|problems| {
            RegistryError::new(format!("{}: {problems}", self.0.path().display()))
        })
    }
}

#[async_trait]
impl Registry for FileRegistry {
    async fn next(&mut self) -> Result<ParsedRegistry, RegistryError> {
        let text = self.0.next().await;
        self.parsed(text)
    }

    async fn again(&mut self) -> Result<ParsedRegistry, RegistryError> {
        let text = self.0.again().await;
        self.parsed(text)
    }
}
