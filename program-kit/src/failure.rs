use std::error::Error;
use std::fmt;
use std::path::Path;
use std::process::ExitCode;

use tracing::Level;

use crate::{sink, with_causes};

/// The exit code of a program that failed, or whose check failed.
const FAILED: u8 = 1;

/// The exit code of an invalid command line.
const USAGE: u8 = 2;

/// The failure of a program: a sentence for the caller, and an exit code.
#[derive(Debug)]
pub struct Failure {
    message: Option<String>,
    code: u8,
}

impl Failure {
    /// Creates a failure with exit code 1.
    pub fn new(message: impl Into<String>) -> Self {
        Self {
            message: Some(message.into()),
            code: FAILED,
        }
    }

    /// Creates a failure with exit code 1 from an error and all its causes.
    pub fn from_error(error: &dyn Error) -> Self {
        Self::new(with_causes(error))
    }

    /// Creates a failure with exit code 1 and no message, for a program that has already printed the error.
    pub fn silent() -> Self {
        Self {
            message: None,
            code: FAILED,
        }
    }

    /// Creates a failure with exit code 2, for an invalid command line.
    pub fn usage(message: impl Into<String>) -> Self {
        Self {
            message: Some(message.into()),
            code: USAGE,
        }
    }

    /// Writes `program: message` to standard error, and returns the exit code.
    pub(crate) fn report(&self, program: &str) -> ExitCode {
        if let Some(message) = &self.message {
            sink::say_as(Level::ERROR, &format!("{program}: {message}"));
        }
        ExitCode::from(self.code)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.message.as_deref().unwrap_or_default())
    }
}

/// Ends a program: reports its failure, if any, and returns the exit code. Waits at most 3 s for the log to
/// be written.
pub fn end(program: &str, result: Result<ExitCode, Failure>) -> ExitCode {
    let code = result.unwrap_or_else(|failure| failure.report(program));
    sink::flush(sink::LAST_FLUSH);
    code
}

/// Reads a file as text.
///
/// # Errors
///
/// A failure that names the file.
pub fn read(path: &Path) -> Result<String, Failure> {
    std::fs::read_to_string(path)
        .map_err(|error| Failure::new(format!("{} cannot be read: {error}", path.display())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_is_not_there_is_named() {
        let failure = read(Path::new("no/such/file")).unwrap_err();
        let message = failure.to_string();
        assert!(
            message.starts_with("no/such/file cannot be read: "),
            "{message}"
        );
    }

    #[test]
    fn exit_codes_tell_a_wrong_command_line_from_a_failure() {
        let code = |failure: Failure| failure.report("program-kit (a test)");
        assert_eq!(code(Failure::new("it failed")), ExitCode::from(1));
        assert_eq!(code(Failure::silent()), ExitCode::from(1));
        assert_eq!(code(Failure::usage("no such option")), ExitCode::from(2));
    }
}
