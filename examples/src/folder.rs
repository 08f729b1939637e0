use std::path::{Path, PathBuf};

/// A new directory for the files of an example, removed on drop.
#[derive(Debug)]
pub struct Folder(PathBuf);

impl Folder {
    /// Creates it among the temporary files of this machine.
    ///
    /// # Errors
    ///
    /// It cannot be created, for instance since it is there already.
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
        // What is left is for the machine to clean.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
