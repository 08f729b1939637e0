//! `check`: all problems of a configuration.

use program_kit::Failure;
use proxy_model::Problems;
use serde::Serialize;

use super::{print, print_json, some};
use crate::check::examine;
use crate::cli::{Check, Format};
use crate::{certificates, document};

#[derive(Serialize)]
struct Verdict<'a> {
    valid: bool,
    problems: &'a Problems,
}

pub(crate) fn check(options: &Check) -> Result<(), Failure> {
    let problems = match document::load(&options.files.config) {
        Ok(document) => {
            let examined = examine(&document);
            let mut problems = examined.problems;
            problems.extend(certificates::unusable(&examined.settings.listeners));
            if let Some(keys) = &examined.settings.server.affinity_keys {
                problems.extend(keys.unusable());
            }
            if !problems.has_errors() {
                problems.extend(examined.settings.sources.unusable());
            }
            problems
        }
        Err(problems) => problems,
    };
    let valid = !problems.has_errors();
    match options.format {
        Format::Json => print_json(&Verdict {
            valid,
            problems: &problems,
        })?,
        Format::Text => print(&report(&problems))?,
    }
    if valid {
        Ok(())
    } else {
        Err(Failure::silent())
    }
}

fn report(problems: &Problems) -> String {
    let errors = problems.errors().count();
    let warnings = problems.len() - errors;
    let summary = match (errors, warnings) {
        (0, 0) => return "The configuration is valid.".to_owned(),
        (0, _) => format!(
            "The configuration is valid, with {}.",
            some(warnings, "warning")
        ),
        (_, 0) => format!(
            "The configuration cannot be used: {}.",
            some(errors, "error")
        ),
        _ => format!(
            "The configuration cannot be used: {} and {}.",
            some(errors, "error"),
            some(warnings, "warning")
        ),
    };
    format!("{problems}\n\n{summary}")
}
