use std::io::{self, Write};

use crate::Failure;

/// Writes text to standard output. A closed output (`| head`) is no failure.
///
/// # Errors
///
/// A failure if the text cannot be written for another reason, for example because a disk is full.
pub fn print(text: &str) -> Result<(), Failure> {
    write(io::stdout().lock(), text)
}

fn write(mut out: impl Write, text: &str) -> Result<(), Failure> {
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(Failure::new(format!(
            "standard output cannot be written: {error}"
        ))),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A writer that always fails.
    struct Failing(io::ErrorKind);

    impl Write for Failing {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(self.0.into())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn only_a_closed_pipe_is_no_failure() {
        assert!(write(Failing(io::ErrorKind::BrokenPipe), "x").is_ok());
        let failure = write(Failing(io::ErrorKind::StorageFull), "x").unwrap_err();
        let message = failure.to_string();
        assert!(
            message.starts_with("standard output cannot be written: "),
            "{message}"
        );
    }
}
