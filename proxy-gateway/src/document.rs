//! The combination of files, variables of the environment and options to one document.

use std::path::Path;

use discovery_core::providers::file::{FileError, Layers, read_document};
use program_kit::Failure;
use proxy_model::json::{Layered, Setting};
use proxy_model::{Problem, Problems};

use crate::cli::Files;
use crate::environment::{self, Variables};
use crate::settings::sections;

/// The layers of the configuration. Variables and options are those of the start.
pub(crate) struct Document {
    pub(crate) layers: Layers,
    /// The name of the environment.
    environment: String,
    /// The number of variables that are layers.
    variables: usize,
    /// Problems of variables and options.
    problems: Problems,
}

impl Document {
    /// Finds the layers that the command line and the environment name.
    ///
    /// # Errors
    ///
    /// Wrong usage.
    pub(crate) fn of(files: &Files) -> Result<Self, Failure> {
        Self::with_environment(files, &Variables::of_process())
    }

    fn with_environment(files: &Files, variables: &Variables) -> Result<Self, Failure> {
        let mut problems = Problems::new();
        let named = files.environment.as_deref();
        let environment = environment::name(named, variables, &mut problems)?;
        let settings = variables.settings(&files.env_prefix, &mut problems);
        let options = files.set.iter().map(|option| of_option(option));
        let options = options.collect::<Result<Vec<Setting>, _>>()?;
        for option in &options {
            sections::judge_setting(option, &mut problems);
        }
        let mut layers = Layers::of_files(&files.config).with_environment(environment.as_str());
        for directory in &files.key_per_file {
            layers = layers.with_key_directory(directory);
        }
        judge_files(&layers, named, &mut problems);
        let count = settings.len();
        layers = layers.with_settings(settings).with_settings(options);
        Ok(Self {
            layers,
            environment,
            variables: count,
            problems,
        })
    }

    /// Reads the layers as one document.
    ///
    /// # Errors
    ///
    /// A file cannot be read or is not JSON.
    pub(crate) fn load(&self) -> Result<Layered, Problems> {
        let mut document = read_document(&self.layers).map_err(|error| match error {
            FileError::Invalid { problems, .. } => problems,
            unreadable => {
                let cause = std::error::Error::source(&unreadable);
                let message = match cause {
                    Some(cause) => format!("{unreadable}: {cause}"),
                    None => unreadable.to_string(),
                };
                Problem::error("", "unreadable_file", message).into()
            }
        })?;
        document.problems.extend(self.problems.clone());
        Ok(document)
    }

    /// The problems of variables and options.
    pub(crate) fn problems(&self) -> &Problems {
        &self.problems
    }

    /// Describes the layers in one line.
    pub(crate) fn described(&self) -> String {
        let files = self.layers.files().into_iter();
        let files = files.filter(|(path, may_be_missing)| !may_be_missing || path.exists());
        let mut parts: Vec<String> = files.map(|(path, _)| path.display().to_string()).collect();
        let directories = self.layers.key_directories().iter();
        parts.extend(directories.map(|path| path.display().to_string()));
        match self.variables {
            0 => {}
            1 => parts.push("1 variable of the environment".to_owned()),
            more => parts.push(format!("{more} variables of the environment")),
        }
        format!(
            "configuration for the environment {}: {}",
            self.environment,
            parts.join(", ")
        )
    }
}

/// Reads an option `KEY=VALUE`.
fn of_option(option: &str) -> Result<Setting, Failure> {
    let (key, value) = option
        .split_once('=')
        .filter(|(key, _)| !key.is_empty())
        .ok_or_else(|| {
            Failure::usage(format!(
                "`--set {option}` has no value; write `--set ReverseProxy:Routes:r:Order=1`"
            ))
        })?;
    Ok(Setting {
        key: key.to_owned(),
        value: value.to_owned(),
        origin: format!("option --set {key}"),
    })
}

/// Reports files of environments that the user may expect to be read.
fn judge_files(layers: &Layers, named: Option<&str>, problems: &mut Problems) {
    let optional = layers.files().into_iter().filter(|(_, optional)| *optional);
    let missing: Vec<_> = optional.filter(|(path, _)| !path.exists()).collect();
    for (path, _) in &missing {
        if let Some(other) = in_other_case(path) {
            let message = format!(
                "`{other}` is not read: names of files are case-sensitive, and the environment's is `{}`",
                path.display()
            );
            problems.push(
                Problem::warning("", "environment_file", message)
                    .with_suggestion("write the environment as the file is called"),
            );
        }
    }
    let all = layers
        .files()
        .iter()
        .filter(|(_, optional)| *optional)
        .count();
    if let Some(named) = named
        && all > 0
        && missing.len() == all
    {
        let message = format!("there is no file of the environment `{named}`");
        let expected = missing
            .iter()
            .map(|(path, _)| format!("`{}`", path.display()));
        let expected = expected.collect::<Vec<_>>().join(" or ");
        problems.push(
            Problem::warning("", "environment_file", message)
                .with_suggestion(format!("it would be {expected}")),
        );
    }
}

/// Returns the name of a file beside `path` that differs from it only in case.
fn in_other_case(path: &Path) -> Option<String> {
    let name = path.file_name()?.to_str()?;
    let parent = path
        .parent()
        .filter(|parent| !parent.as_os_str().is_empty());
    let entries = std::fs::read_dir(parent.unwrap_or_else(|| Path::new("."))).ok()?;
    let mut names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    names.find(|other| other != name && other.eq_ignore_ascii_case(name))
}
