use std::path::{Path, PathBuf};

/// A new directory for the files of an example, removed on drop.
#[derive(Debug)]
pub struct Folder(PathBuf);

impl Folder {
    /// Creates a directory among the temporary files of this machine.
    ///
    /// # Errors
    ///
    /// Fails if it cannot be created, for instance because it exists.
    pub fn create(example: &str) -> std::io::Result<Self> {
        let path = std::env::temp_dir().join(format!("{example}-{}", std::process::id()));
        std::fs::create_dir(&path)?;
        Ok(Self(path))
    }

    /// The path of the directory.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // Remaining files are left to the machine's own cleanup.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
