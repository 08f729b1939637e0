//! The parser of a script's behaviours.

use super::reader::{ScriptProblems, Table, Value};
use super::tree::Kind;
use crate::hosting::{
    Attempts, Behaviour, Failures, Life, ProcessBehaviour, Registration, Span, closest,
};

/// Reads the keys `download`, `activation`, `deactivation` and `process` of a table.
pub(super) fn read_behaviour(
    table: &mut Table<'_>,
    code_packages: &[&str],
    problems: &mut ScriptProblems,
) -> Behaviour {
    let mut behaviour = Behaviour {
        download: attempts(table.get("download"), problems),
        activation: attempts(table.get("activation"), problems),
        deactivation: attempts(table.get("deactivation"), problems),
        ..Behaviour::default()
    };
    let Some(processes) = table.get("process").and_then(|value| value.table(problems)) else {
        return behaviour;
    };
    for (name, value) in processes.all() {
        if !code_packages.contains(&name) {
            let suggestion = closest(name, code_packages.iter().copied()).map_or_else(
                || format!("it has {}", code_packages.join(", ")),
                |near| format!("did you mean `{near}`?"),
            );
            value.wrong(
                problems,
                format!("the package has no code package `{name}`"),
                Some(suggestion),
            );
        }
        behaviour
            .processes
            .insert(name.into(), process(&value, problems));
    }
    behaviour
}

fn attempts(value: Option<Value<'_>>, problems: &mut ScriptProblems) -> Attempts {
    let mut attempts = Attempts::default();
    let Some(mut table) = value.and_then(|value| value.table(problems)) else {
        return attempts;
    };
    attempts.time = table
        .get("takes")
        .and_then(|value| value.span(problems))
        .unwrap_or_default();
    attempts.failures = failures(table.get("fails"), problems);
    attempts.internal_errors = table
        .get("internal_errors")
        .and_then(|value| value.count(problems))
        .unwrap_or_default();
    attempts.jitter = spans(table.get("jitter"), problems);
    table.finish(problems);
    attempts
}

fn failures(value: Option<Value<'_>>, problems: &mut ScriptProblems) -> Failures {
    match value {
        None => Failures::default(),
        Some(value) if value.tree.kind == Kind::Text("always".to_owned()) => Failures::Always,
        Some(value) => match value.tree.kind {
            Kind::Integer(_) => Failures::First(value.count(problems).unwrap_or_default()),
            _ => {
                let message = format!(
                    "expected how many attempts fail, found {}",
                    value.tree.kind.name()
                );
                value.wrong(
                    problems,
                    message,
                    Some("write a number, or \"always\"".to_owned()),
                );
                Failures::default()
            }
        },
    }
}

fn spans(value: Option<Value<'_>>, problems: &mut ScriptProblems) -> Vec<Span> {
    let items = value.map(|value| value.list(problems)).unwrap_or_default();
    items
        .iter()
        .filter_map(|item| item.span(problems))
        .collect()
}

fn process(value: &Value<'_>, problems: &mut ScriptProblems) -> ProcessBehaviour {
    let mut process = ProcessBehaviour::default();
    let Some(mut table) = value.table(problems) else {
        return process;
    };
    process.setup_time = table
        .get("setup_takes")
        .and_then(|value| value.span(problems))
        .unwrap_or_default();
    let codes = table
        .get("setup_exit_codes")
        .map(|value| value.list(problems))
        .unwrap_or_default();
    process.setup_exit_codes = codes
        .iter()
        .filter_map(|code| code.exit_code(problems))
        .collect();
    process.start_failures = failures(table.get("start_fails"), problems);
    process.registration = match table.get("registers") {
        None => Registration::default(),
        Some(value) if value.tree.kind == Kind::Text("never".to_owned()) => Registration::Never,
        Some(value) => Registration::After(value.span(problems).unwrap_or_default()),
    };
    let lives = table
        .get("lives")
        .map(|value| value.list(problems))
        .unwrap_or_default();
    process.lives = lives
        .iter()
        .filter_map(|value| life(value, problems))
        .collect();
    process.repeat = table
        .get("repeat")
        .and_then(|value| value.truth(problems))
        .unwrap_or_default();
    process.restart_jitter = spans(table.get("restart_jitter"), problems);
    table.finish(problems);
    process
}

/// Reads `"5s"`, or `{ lasts = "5s", exit_code = 0 }`.
fn life(value: &Value<'_>, problems: &mut ScriptProblems) -> Option<Life> {
    if !matches!(value.tree.kind, Kind::Table(_)) {
        return value.span(problems).map(Life::crashing_after);
    }
    let mut table = value.table(problems)?;
    let lasts = table
        .need("lasts", "\"5s\"", problems)
        .and_then(|value| value.span(problems));
    let exit_code = table
        .get("exit_code")
        .map_or(Some(1), |value| value.exit_code(problems));
    table.finish(problems);
    Some(Life {
        lasts: lasts?,
        exit_code: exit_code?,
    })
}
