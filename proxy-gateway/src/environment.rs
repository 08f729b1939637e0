//! Variables of the environment, as .NET's hosts and configuration read them.

use std::ffi::OsString;

use discovery_core::providers::file::key_of;
use program_kit::Failure;
use proxy_model::json::Setting;
use proxy_model::{Problem, Problems, same_id};

use crate::settings::sections::{self, Kinship};

/// The variables with the name of the environment. The first one counts, as in `WebApplicationBuilder`
/// since .NET 7.
const ENVIRONMENT: [&str; 2] = ["DOTNET_ENVIRONMENT", "ASPNETCORE_ENVIRONMENT"];

/// The environment if nothing names one, as in .NET.
const PRODUCTION: &str = "Production";

/// Variables with ASP.NET's listening addresses.
const ADDRESSES: [&str; 6] = [
    "ASPNETCORE_URLS",
    "ASPNETCORE_HTTP_PORTS",
    "ASPNETCORE_HTTPS_PORTS",
    "DOTNET_URLS",
    "DOTNET_HTTP_PORTS",
    "DOTNET_HTTPS_PORTS",
];

/// The variables of the process.
pub(crate) struct Variables(Vec<(String, Option<String>)>);

impl Variables {
    /// Returns the variables of this process, by name.
    pub(crate) fn of_process() -> Self {
        Self::new(std::env::vars_os())
    }

    fn new(variables: impl Iterator<Item = (OsString, OsString)>) -> Self {
        // Names that are not Unicode are none of ours.
        let variables = variables
            .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok())));
        let mut all: Vec<_> = variables.collect();
        all.sort_unstable();
        Self(all)
    }

    fn get(&self, name: &str) -> Option<&str> {
        let mut all = self.0.iter().filter(|(other, _)| other == name);
        let (_, value) = all.next()?;
        value.as_deref().filter(|value| !value.is_empty())
    }

    /// Returns the variables below `prefix` that set values of the configuration.
    ///
    /// `__` separates keys, and case does not matter, also in the prefix (`AddEnvironmentVariables` of
    /// .NET). Without a prefix, variables that begin with one of our sections are meant; other programs have
    /// variables too.
    pub(crate) fn settings(&self, prefix: &str, problems: &mut Problems) -> Vec<Setting> {
        let mut settings = Vec::new();
        let mut outside = Vec::new();
        let normalized = key_of(prefix);
        for (name, value) in &self.0 {
            if let Some(known) = ADDRESSES
                .iter()
                .find(|known| known.eq_ignore_ascii_case(name))
            {
                let message = format!("`{known}` configures ASP.NET and is not read here");
                problems.push(
                    Problem::warning("", "foreign_variable", message)
                        .with_suggestion("set the addresses in `Listeners`")
                        .with_origin(origin(name)),
                );
                continue;
            }
            let key = key_of(name);
            let Some(key) = without_prefix(&key, &normalized) else {
                if is_value_of_ours(&key) {
                    outside.push(name.as_str());
                }
                continue;
            };
            let (first, has_more) = match key.split_once(':') {
                Some((first, _)) => (first, true),
                None => (key, false),
            };
            let is_below_prefix = !prefix.is_empty();
            match sections::kinship(first) {
                Kinship::Ours if has_more || is_below_prefix => {
                    settings.extend(setting(name, key, value.as_deref(), problems));
                }
                // Another program may have a variable of that name.
                Kinship::Near(meant) if has_more || is_below_prefix => {
                    let message = format!("there is no section `{first}`, so this has no effect");
                    problems.push(
                        Problem::warning("", "unknown_section", message)
                            .with_suggestion(format!("did you mean `{meant}`?"))
                            .with_origin(origin(name)),
                    );
                }
                Kinship::Foreign if has_more && !is_below_prefix => {
                    problems.extend(
                        sections::foreign(first).map(|problem| problem.with_origin(origin(name))),
                    );
                }
                Kinship::None | Kinship::Foreign if is_below_prefix => {
                    let message = format!("there is no section `{first}`, so this has no effect");
                    problems.push(
                        Problem::warning("", "unknown_section", message)
                            .with_suggestion(format!("sections are {}", sections::listed()))
                            .with_origin(origin(name)),
                    );
                }
                _ => {}
            }
        }
        report_outside(&outside, prefix, problems);
        settings
    }
}

/// Returns the key of a variable below a prefix.
fn without_prefix<'k>(key: &'k str, prefix: &str) -> Option<&'k str> {
    let start = key.get(..prefix.len())?;
    same_id(start, prefix).then(|| &key[prefix.len()..])
}

/// Returns true if .NET would read this as a value of one of our sections.
fn is_value_of_ours(key: &str) -> bool {
    key.split_once(':')
        .is_some_and(|(first, _)| matches!(sections::kinship(first), Kinship::Ours))
}

fn setting(name: &str, key: &str, value: Option<&str>, problems: &mut Problems) -> Option<Setting> {
    let Some(value) = value else {
        let message = "the value of the variable is not UTF-8";
        problems.push(Problem::error("", "invalid_utf8", message).with_origin(origin(name)));
        return None;
    };
    Some(Setting {
        key: key.to_owned(),
        value: value.to_owned(),
        origin: origin(name),
    })
}

fn origin(name: &str) -> String {
    format!("variable {name}")
}

/// Reports variables that would set values if there were no prefix.
fn report_outside(names: &[&str], prefix: &str, problems: &mut Problems) {
    /// The maximum number of variables named in a message.
    const FEW: usize = 3;
    if names.is_empty() {
        return;
    }
    let mut named: Vec<_> = names
        .iter()
        .take(FEW)
        .map(|name| format!("`{name}`"))
        .collect();
    if names.len() > FEW {
        named.push(format!("{} more", names.len() - FEW));
    }
    let message = format!(
        "variables without the prefix `{prefix}` have no effect: {}",
        named.join(", ")
    );
    problems.push(
        Problem::warning("", "environment_variable", message)
            .with_suggestion(format!("write `{prefix}{}`", names[0])),
    );
}

/// Returns the name of the environment.
///
/// # Errors
///
/// The name cannot be part of the name of a file.
pub(crate) fn name(
    option: Option<&str>,
    variables: &Variables,
    problems: &mut Problems,
) -> Result<String, Failure> {
    let [first, second] = ENVIRONMENT.map(|name| variables.get(name));
    let (name, origin) = match (option, first, second) {
        (Some(option), ..) => (option, "--environment"),
        (None, Some(first), _) => (first, ENVIRONMENT[0]),
        (None, None, Some(second)) => (second, ENVIRONMENT[1]),
        (None, None, None) => (PRODUCTION, "the default"),
    };
    if let (None, Some(first), Some(second)) = (option, first, second)
        && first != second
    {
        let message = format!(
            "`{}` is `{first}` and `{}` is `{second}`; the first one counts",
            ENVIRONMENT[0], ENVIRONMENT[1]
        );
        problems.push(Problem::warning("", "environment_variable", message));
    }
    let is_part_of_name = !name.is_empty() && !name.contains(['/', '\\', '\0', ':']);
    if !is_part_of_name {
        return Err(Failure::usage(format!(
            "the environment `{}` of {origin} cannot be part of a file's name; write for example `Production`",
            name.escape_debug()
        )));
    }
    Ok(name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn variables(all: &[(&str, &str)]) -> Variables {
        Variables::new(all.iter().map(|(name, value)| (name.into(), value.into())))
    }

    fn read(prefix: &str, all: &[(&str, &str)]) -> (Vec<String>, Vec<String>) {
        let mut problems = Problems::new();
        let settings = variables(all).settings(prefix, &mut problems);
        let settings = settings.iter().map(|setting| setting.key.clone());
        (
            settings.collect(),
            problems.iter().map(ToString::to_string).collect(),
        )
    }

    #[test]
    fn variables_are_keys_as_dot_net_reads_them() {
        let all = [
            ("PATH", "/bin"),
            ("SERVER", "x"),
            ("Server_Name", "x"),
            ("ReverseProxy", "x"),
            ("MY__ReverseProxy__Routes", "x"),
            ("reverseproxy__Routes__r__Order", "1"),
            ("Server:Workers", "2"),
            ("Logging__LogLevel__Default", "Debug"),
        ];
        let (keys, problems) = read("", &all);
        assert_eq!(keys, ["Server:Workers", "reverseproxy:Routes:r:Order"]);
        assert!(problems.is_empty(), "{problems:?}");
    }

    #[test]
    fn a_prefix_is_taken_off() {
        let all = [
            ("proxy_ReverseProxy__Routes__r__Order", "1"),
            ("PROXY_Admin", "x"),
            ("PROXY_HOME", "x"),
            ("ReverseProxy__Routes__r__Order", "1"),
        ];
        let (keys, problems) = read("PROXY_", &all);
        assert_eq!(keys, ["Admin", "ReverseProxy:Routes:r:Order"]);
        assert_eq!(problems.len(), 2, "{problems:?}");
        assert!(
            problems[0].contains("(variable PROXY_HOME): there is no section `HOME`"),
            "{problems:?}"
        );
        assert!(
            problems[1].contains("write `PROXY_ReverseProxy__Routes__r__Order`"),
            "{problems:?}"
        );
        assert_eq!(
            read("P__", &[("P__Admin__Enabled", "x")]).0,
            ["Admin:Enabled"]
        );
    }

    #[test]
    fn what_seems_to_be_meant_for_us_is_named() {
        let (keys, problems) = read(
            "",
            &[
                ("ASPNETCORE_URLS", "http://+:80"),
                ("Kestrel__Endpoints__Http__Url", "x"),
                ("ReverseProxi__Routes__r__Order", "1"),
            ],
        );
        assert!(keys.is_empty());
        assert_eq!(problems.len(), 3, "{problems:?}");
        assert!(
            problems[0].contains("`ASPNETCORE_URLS` configures ASP.NET"),
            "{problems:?}"
        );
        assert!(
            problems[1].contains("`Kestrel` configures ASP.NET"),
            "{problems:?}"
        );
        assert!(
            problems[2].contains("did you mean `ReverseProxy`?"),
            "{problems:?}"
        );
        assert!(
            problems
                .iter()
                .all(|problem| problem.starts_with("warning"))
        );
    }

    #[test]
    fn the_environment_has_the_name_that_dot_net_finds() {
        let found = |option, all: &[(&str, &str)]| {
            let mut problems = Problems::new();
            let name = name(option, &variables(all), &mut problems);
            (name.map_err(|failure| failure.to_string()), problems.len())
        };
        let both = [("ASPNETCORE_ENVIRONMENT", "A"), ("DOTNET_ENVIRONMENT", "D")];
        assert_eq!(found(None, &[]), (Ok("Production".to_owned()), 0));
        assert_eq!(found(None, &both[..1]), (Ok("A".to_owned()), 0));
        assert_eq!(found(None, &both), (Ok("D".to_owned()), 1));
        assert_eq!(found(Some("O"), &both), (Ok("O".to_owned()), 0));
        assert_eq!(
            found(None, &[("DOTNET_ENVIRONMENT", "")]),
            (Ok("Production".to_owned()), 0)
        );
        let (rejected, _) = found(None, &[("DOTNET_ENVIRONMENT", "../x")]);
        assert!(rejected.unwrap_err().contains("DOTNET_ENVIRONMENT"));
    }

    #[cfg(unix)]
    #[test]
    fn a_value_that_is_not_unicode_is_an_error_of_its_variable() {
        use std::os::unix::ffi::OsStringExt;

        let value = OsString::from_vec(vec![0xff]);
        let variables = Variables::new([("Admin__Address".into(), value)].into_iter());
        let mut problems = Problems::new();
        assert!(variables.settings("", &mut problems).is_empty());
        assert_eq!(
            problems.to_string(),
            "error at / (variable Admin__Address): the value of the variable is not UTF-8"
        );
    }
}
