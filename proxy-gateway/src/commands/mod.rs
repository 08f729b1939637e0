//! The commands of the program.

mod check;
mod discover;
mod explain;
mod health;
mod origins;
mod run;
mod schema;

use program_kit::Failure;
use proxy_model::Problems;
use proxy_model::json::Layered;
use serde::Serialize;

pub(crate) use self::check::check;
pub(crate) use self::discover::discover;
pub(crate) use self::explain::explain;
pub(crate) use self::health::health;
pub(crate) use self::run::run;
pub(crate) use self::schema::schema;
use crate::document::Document;

/// Reads the layers of the configuration. Their problems are the failure.
fn load(document: &Document) -> Result<Layered, Failure> {
    document.load().map_err(|problems| unusable(&problems))
}

/// The failure of a command that needs a configuration without errors.
pub(crate) fn unusable(problems: &Problems) -> Failure {
    Failure::new(format!(
        "the configuration cannot be used:\n{problems}\nCorrect it and try again; `proxy-gateway check` tests it without running it."
    ))
}

/// Writes a result to standard output, with a line end and without control characters.
fn print(text: &str) -> Result<(), Failure> {
    program_kit::print(&program_kit::escape_lines(text))
}

fn print_json(value: &impl Serialize) -> Result<(), Failure> {
    let text = serde_json::to_string_pretty(value)
        .map_err(|error| Failure::new(format!("cannot write the result: {error}")))?;
    print(&text)
}

/// Formats a number and its unit.
fn some(count: usize, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}
