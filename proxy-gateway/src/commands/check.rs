//! `check`: all problems of a configuration.

use program_kit::Failure;
use proxy_model::Problems;
use proxy_model::json::Layered;
use serde::Serialize;

use super::origins::{self, Shown};
use super::{print, print_json, some};
use crate::check::{SECTION, examine};
use crate::cli::{Check, Format};
use crate::document::Document;
use crate::{certificates, preflight};

#[derive(Serialize)]
struct Verdict<'a> {
    valid: bool,
    problems: &'a Problems,
    #[serde(skip_serializing_if = "Option::is_none")]
    values: Option<&'a [Shown]>,
}

pub(crate) fn check(options: &Check) -> Result<(), Failure> {
    let document = Document::of(&options.files)?;
    let (problems, values) = match document.load() {
        Ok(layered) => {
            let values = options.origins.then(|| origins::values(&layered));
            (all_problems(&layered, options.here), values)
        }
        Err(problems) => (problems, None),
    };
    let valid = !problems.has_errors();
    match options.format {
        Format::Json => print_json(&Verdict {
            valid,
            problems: &problems,
            values: values.as_deref(),
        })?,
        Format::Text => {
            if let Some(values) = &values {
                print(&format!(
                    "{}\n{}",
                    document.described(),
                    origins::readable(values)
                ))?;
            }
            print(&report(&problems))?;
        }
    }
    if valid {
        Ok(())
    } else {
        Err(Failure::silent())
    }
}

/// Returns the problems of the document, and of this machine. Those of the machine are errors only if it is
/// the one that the configuration is for.
fn all_problems(layered: &Layered, is_here: bool) -> Problems {
    let examined = examine(layered);
    let mut problems = examined.problems;
    let mut of_machine = preflight::files(&examined.settings, &layered.origins);
    of_machine.extend(preflight::ports(&examined.settings, &layered.origins));
    if let Some(snapshot) = examined.snapshot {
        let pointer = layered.node.spelled(&format!("/{SECTION}"));
        let unusable = certificates::unusable_for_destinations(snapshot).under(&pointer);
        // `run` starts, and requests for these clusters get 502.
        let mut unusable = preflight::as_errors(unusable);
        layered.origins.place(&mut unusable);
        of_machine.extend(unusable);
    }
    let of_machine = preflight::not_said_yet(of_machine, &problems);
    problems.extend(match is_here {
        true => of_machine,
        false => preflight::elsewhere(of_machine),
    });
    problems
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
