//! The check of a configuration and its files.

use std::path::Path;

use program_kit::{Failure, print, read};
use proxy_model::{Problem, Problems, Severity};
use serde_json::json;
use xds_control_plane::options::{Config, RegistrySection};
use xds_control_plane::sources::{parse_registry, parse_static};

use super::cli::{self, Format};

/// The problems found in one file.
struct Checked {
    file: String,
    problems: Vec<Problem>,
    /// Problems that affect only a service of a registry, or a route for Envoys.
    warnings: Vec<String>,
}

pub(super) fn run(options: &cli::Check) -> Result<(), Failure> {
    let checked = check(&options.config)?;
    let is_valid = checked.iter().all(|checked| checked.problems.is_empty());
    match options.format {
        Format::Json => print(&as_json(&checked, is_valid))?,
        Format::Text => print(&as_text(&checked))?,
    }
    match is_valid {
        true => Ok(()),
        false => Err(Failure::new("the configuration is not valid")),
    }
}

fn check(path: &Path) -> Result<Vec<Checked>, Failure> {
    let text = read(path)?;
    let folder = path.parent().unwrap_or_else(|| Path::new(""));
    let parsed = Config::parse(&text, folder);
    let mut all = vec![checked(path, parsed.as_ref().err(), Vec::new())];
    let Ok(config) = parsed else {
        return Ok(all);
    };
    if let (Some(tls), Some(own)) = (&config.server().tls, all.first_mut()) {
        own.problems.extend(
            tls.check()
                .err()
                .map(|error| Problem::error("/tls", "unusable_certificate", error.to_string())),
        );
    }
    if let Some(RegistrySection::File(path)) = &config.registry {
        let parsed = parse_registry(&read(path)?);
        let warnings = parsed.as_ref().map(|parsed| parsed.problems.clone());
        all.push(checked(
            path,
            parsed.as_ref().err(),
            warnings.unwrap_or_default(),
        ));
    }
    if let Some(path) = &config.static_file {
        let text = read(path)?;
        let parsed = match text.trim().is_empty() {
            // What is served takes it for a file that is being written.
            true => Err(Problem::error("", "empty_file", "the file is empty")
                .with_suggestion("write `{}` if nothing is meant")
                .into()),
            false => parse_static(&text).map(drop),
        };
        all.push(checked(path, parsed.as_ref().err(), Vec::new()));
    }
    if !config.providers.files.is_empty() {
        let found = config.providers.check_files();
        let found = found.map_err(|error| Failure::from_error(&error))?;
        let files = config.providers.files.iter();
        let files: Vec<_> = files.map(|file| file.display().to_string()).collect();
        let warnings = found.iter().filter(|one| one.severity == Severity::Warning);
        all.push(Checked {
            file: files.join(" with "),
            problems: found.errors().cloned().collect(),
            warnings: warnings.map(as_warning).collect(),
        });
    }
    Ok(all)
}

fn as_warning(problem: &Problem) -> String {
    let text = problem.to_string();
    let bare = text.strip_prefix("warning at ").map(str::to_owned);
    bare.unwrap_or(text)
}

fn checked(path: &Path, problems: Option<&Problems>, warnings: Vec<String>) -> Checked {
    Checked {
        file: path.display().to_string(),
        problems: problems
            .map(|problems| problems.iter().cloned().collect())
            .unwrap_or_default(),
        warnings,
    }
}

fn as_text(all: &[Checked]) -> String {
    let lines = all.iter().flat_map(|checked| {
        let verdict = match checked.problems.is_empty() {
            true => "valid",
            false => "not valid",
        };
        let problems = checked
            .problems
            .iter()
            .map(|problem| format!("  {problem}\n"));
        let warnings = checked
            .warnings
            .iter()
            .map(|warning| format!("  warning: {warning}\n"));
        std::iter::once(format!("{}: {verdict}\n", checked.file))
            .chain(problems)
            .chain(warnings)
    });
    lines.collect()
}

fn as_json(all: &[Checked], is_valid: bool) -> String {
    let problems = all.iter().flat_map(|checked| {
        let problems = checked.problems.iter().map(|problem| {
            json!({
                "file": checked.file, "severity": "error", "pointer": problem.pointer, "code": problem.code,
                "message": problem.message, "suggestion": problem.suggestion,
            })
        });
        let warnings = checked.warnings.iter().map(|warning| {
            json!({"file": checked.file, "severity": "warning", "message": warning})
        });
        problems.chain(warnings)
    });
    let problems: Vec<_> = problems.collect();
    format!("{}\n", json!({"valid": is_valid, "problems": problems}))
}
