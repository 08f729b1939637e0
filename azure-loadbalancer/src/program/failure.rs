use std::error::Error;
use std::fmt;
use std::path::Path;

/// Why the program ends with 1: a sentence for the person who called it.
#[derive(Debug)]
pub(super) struct Failure(String);

impl Failure {
    pub(super) fn new(message: impl Into<String>) -> Self {
        Self(message.into())
    }

    /// An error with all its causes.
    pub(super) fn from_error(error: &dyn Error) -> Self {
        let mut message = error.to_string();
        let mut cause = error.source();
        while let Some(error) = cause {
            message.push_str(": ");
            message.push_str(&error.to_string());
            cause = error.source();
        }
        Self(message)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A file as text.
pub(super) fn read(path: &Path) -> Result<String, Failure> {
    std::fs::read_to_string(path)
        .map_err(|error| Failure::new(format!("{} cannot be read: {error}", path.display())))
}
