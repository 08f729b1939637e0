use std::io::{self, Write};

use super::failure::Failure;

/// Writes to standard output. A reader that has gone away (`| head`) is no failure.
pub(super) fn print(text: &str) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(Failure::new(format!(
            "standard output cannot be written: {error}"
        ))),
        _ => Ok(()),
    }
}
