//! The conversion of a document to a script.

use std::collections::BTreeSet;

use super::events::read_events;
use super::packages::read_packages;
use super::problem::ScriptErrors;
use super::reader::{ScriptProblems, Table, Value};
use super::script::Script;
use super::tree::{Kind, Tree};
use crate::hosting::{HostingConfig, SettingValue, Timestamp};

pub(super) fn read(text: &str) -> Result<Script, ScriptErrors> {
    let tree = Tree::parse(text).map_err(|problem| ScriptErrors::new(vec![problem]))?;
    let mut problems = ScriptProblems::default();
    let script = read_script(&tree, &mut problems);
    match script {
        Some(script) if problems.0.is_empty() => Ok(script),
        _ => Err(ScriptErrors::new(problems.0)),
    }
}

fn read_script(tree: &Tree, problems: &mut ScriptProblems) -> Option<Script> {
    let mut table = Value::root(tree).table(problems)?;
    let title = table
        .get("title")
        .and_then(|value| value.text(problems))
        .map(str::to_owned);
    let (config, warnings) = read_config(&mut table, problems);
    let packages = read_packages(&mut table, problems);
    let mut steps = read_events(&mut table, &packages, problems);
    let show: BTreeSet<Timestamp> = table
        .get("show")
        .map(|value| value.list(problems))
        .unwrap_or_default()
        .iter()
        .filter_map(|value| moment(value, problems))
        .collect();
    let until = table
        .get("until")
        .and_then(|value| Some((moment(&value, problems)?, value)));
    let last_step = steps.iter().map(|step| step.at).max();
    let last = last_step
        .max(show.last().copied())
        .unwrap_or(Timestamp::ZERO);
    if let Some((end, value)) = &until
        && *end < last
    {
        let message = format!("the script ends at {end}, before its last event or show at {last}");
        value.wrong(
            problems,
            message,
            Some(format!("write until = \"{last}\" or later")),
        );
    }
    table.finish(problems);
    // Stable: events at the same time happen in the order of the text.
    steps.sort_by_key(|step| step.at);
    Some(Script {
        title,
        warnings,
        config,
        packages,
        steps,
        show,
        until: until.map_or(last, |(end, _)| end),
    })
}

/// Reads a time since the beginning.
pub(super) fn moment(value: &Value<'_>, problems: &mut ScriptProblems) -> Option<Timestamp> {
    let span = value.span(problems)?;
    let moment = Timestamp::ZERO.after(span);
    if moment.is_none() {
        value.wrong(problems, "this time is never reached".to_owned(), None);
    }
    moment
}

fn read_config(
    table: &mut Table<'_>,
    problems: &mut ScriptProblems,
) -> (HostingConfig, Vec<String>) {
    let mut warnings = Vec::new();
    let Some(settings) = table.get("config").and_then(|value| value.table(problems)) else {
        return (HostingConfig::default(), warnings);
    };
    let mut config = HostingConfig::default();
    let mut entries = settings.all();
    // The profile sets the defaults that the other settings change.
    entries.sort_by_key(|(name, _)| *name != "Profile");
    for (name, value) in entries {
        let setting = match &value.tree.kind {
            Kind::Text(text) => SettingValue::Text(text.clone()),
            Kind::Integer(number) => SettingValue::Integer(*number),
            Kind::Number(number) => SettingValue::Number(*number),
            Kind::Bool(truth) => SettingValue::Bool(*truth),
            Kind::List(_) | Kind::Table(_) | Kind::Other(_) => {
                let message = format!(
                    "expected the value of a setting, found {}",
                    value.tree.kind.name()
                );
                value.wrong(problems, message, None);
                continue;
            }
        };
        let before = (name == "Profile").then(|| HostingConfig::from_settings([(name, &setting)]));
        let result = match before {
            Some(Ok((with_profile, _))) => {
                config = with_profile;
                Ok(None)
            }
            Some(Err(mut errors)) => Err(errors.remove(0)),
            None => config.set(name, &setting),
        };
        match result {
            Ok(warning) => warnings.extend(warning),
            Err(error) => value.wrong(problems, error.to_string(), None),
        }
    }
    (config, warnings)
}
