//! What the program can be told to do.

mod check;
mod discover;
mod explain;
mod run;
mod schema;

use std::io::{self, Write};
use std::process::ExitCode;

use proxy_model::Problems;
use serde::Serialize;

pub(crate) use self::check::check;
pub(crate) use self::discover::discover;
pub(crate) use self::explain::explain;
pub(crate) use self::run::run;
pub(crate) use self::schema::schema;

/// Why the program ends with something else than success.
#[derive(Debug)]
pub(crate) struct Failure {
    message: Option<String>,
    code: u8,
}

impl Failure {
    /// What was checked is bad, or something could not be done.
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self {
            message: Some(message.into()),
            code: 1,
        }
    }

    /// The same, when everything has been said already.
    pub(crate) fn silent() -> Self {
        Self {
            message: None,
            code: 1,
        }
    }

    /// The command line makes no sense.
    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self {
            message: Some(message.into()),
            code: 2,
        }
    }

    pub(crate) fn message(&self) -> Option<&str> {
        self.message.as_deref()
    }

    pub(crate) fn code(&self) -> ExitCode {
        ExitCode::from(self.code)
    }
}

impl From<Problems> for Failure {
    fn from(problems: Problems) -> Self {
        Self::new(format!(
            "the configuration cannot be used:\n{problems}\nMend it and try again; `proxy-gateway check` tests it without running it."
        ))
    }
}

/// Writes a result to standard output. A reader that has gone away (`| head`) is no failure.
fn print(text: &str) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    match writeln!(out, "{text}").and_then(|()| out.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(Failure::new(format!("cannot write the result: {error}")))
        }
        _ => Ok(()),
    }
}

fn print_json(value: &impl Serialize) -> Result<(), Failure> {
    let text = serde_json::to_string_pretty(value)
        .map_err(|error| Failure::new(format!("cannot write the result: {error}")))?;
    print(&text)
}
