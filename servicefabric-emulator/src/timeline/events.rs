//! The parser of a script's events.

use super::behaviour::read_behaviour;
use super::packages::texts;
use super::read::moment;
use super::reader::{ScriptProblems, Table, Value};
use super::script::{Instruction, ScriptPackage, Step};
use crate::hosting::{
    CodePackageDescription, PackageDescription, Placement, ReplicaKey, ReplicaKind, Role, closest,
};

/// The verbs of an event. An event has exactly one of them.
const VERBS: [&str; 7] = [
    "place", "close", "activate", "exit", "upgrade", "behave", "node",
];

pub(super) fn read_events(
    table: &mut Table<'_>,
    packages: &[ScriptPackage],
    problems: &mut ScriptProblems,
) -> Vec<Step> {
    let items = table
        .get("event")
        .map(|value| value.list(problems))
        .unwrap_or_default();
    items
        .iter()
        .filter_map(|value| read_event(value, packages, problems))
        .collect()
}

fn read_event(
    value: &Value<'_>,
    packages: &[ScriptPackage],
    problems: &mut ScriptProblems,
) -> Option<Step> {
    let mut table = value.table(problems)?;
    let at = table
        .need("at", "\"601s\"", problems)
        .and_then(|value| moment(&value, problems));
    let mut verbs: Vec<(&str, Value<'_>)> = Vec::new();
    for verb in VERBS {
        verbs.extend(table.get(verb).map(|value| (verb, value)));
    }
    let instruction = match &verbs[..] {
        [(verb, object)] => instruction(verb, object, &mut table, packages, problems),
        [] => {
            let suggestion = format!("it needs one of {}", VERBS.join(", "));
            value.wrong(
                problems,
                "nothing happens in this event".to_owned(),
                Some(suggestion),
            );
            None
        }
        [(first, _), (second, _), ..] => {
            let message = format!("an event does one thing, this one has `{first}` and `{second}`");
            value.wrong(
                problems,
                message,
                Some("write two events with the same `at`".to_owned()),
            );
            None
        }
    };
    // After an error in the verb its other keys are unknown, so there is only one error.
    if !verbs.is_empty() && instruction.is_some() || verbs.is_empty() {
        table.finish(problems);
    }
    Some(Step {
        at: at?,
        instruction: instruction?,
    })
}

fn instruction(
    verb: &str,
    object: &Value<'_>,
    table: &mut Table<'_>,
    packages: &[ScriptPackage],
    problems: &mut ScriptProblems,
) -> Option<Instruction> {
    match verb {
        "place" => place(object, table, packages, problems),
        "close" => Some(Instruction::Close(replica(object, problems)?)),
        "activate" => Some(Instruction::Activate(
            labelled(object, packages, problems)?.key.clone(),
        )),
        "exit" => exit(object, table, packages, problems),
        "upgrade" => upgrade(object, table, packages, problems),
        "behave" => {
            let package = labelled(object, packages, problems)?;
            let codes = &package.description.code_packages;
            let names: Vec<&str> = codes.iter().map(|code| &*code.name).collect();
            let behaviour = read_behaviour(table, &names, problems);
            Some(Instruction::Behave(package.key.clone(), behaviour))
        }
        _ => match object.text(problems)? {
            "stop" => Some(Instruction::Stop),
            "start" => Some(Instruction::Start),
            "restart" => Some(Instruction::Restart),
            other => {
                let message = format!("a node cannot `{other}`");
                object.wrong(
                    problems,
                    message,
                    Some("write \"restart\", \"stop\" or \"start\"".to_owned()),
                );
                None
            }
        },
    }
}

fn place(
    object: &Value<'_>,
    table: &mut Table<'_>,
    packages: &[ScriptPackage],
    problems: &mut ScriptProblems,
) -> Option<Instruction> {
    let replica = replica(object, problems);
    let package = package_of(table, packages, problems);
    let service_type = match table.get("type") {
        Some(value) => value
            .text(problems)
            .map(|name| (name.to_owned(), Some(value))),
        None => package
            .and_then(|package| only_type(package, object, problems))
            .map(|name| (name, None)),
    };
    let existing = table
        .get("existing")
        .and_then(|value| value.truth(problems))
        .unwrap_or_default();
    let persisted = table
        .get("persisted")
        .and_then(|value| value.truth(problems))
        .unwrap_or_default();
    // All keys are read first, so that every error is reported.
    let (package, (service_type, written)) = (package?, service_type?);
    if package.description.host_of(&service_type).is_none() {
        let known: Vec<&str> = package
            .description
            .service_types()
            .map(|name| &**name)
            .collect();
        let suggestion = closest(&service_type, known.iter().copied()).map_or_else(
            || format!("it has {}", known.join(", ")),
            |name| format!("did you mean `{name}`?"),
        );
        let message = format!(
            "package `{}` has no service type `{service_type}`",
            package.label
        );
        written
            .as_ref()
            .unwrap_or(object)
            .wrong(problems, message, Some(suggestion));
        return None;
    }
    let mut placement = Placement::new(replica?, package.key.clone(), &service_type);
    placement.persisted = persisted;
    if existing {
        placement.kind = ReplicaKind::Existing;
    }
    Some(Instruction::Place(placement))
}

fn only_type(
    package: &ScriptPackage,
    object: &Value<'_>,
    problems: &mut ScriptProblems,
) -> Option<String> {
    let types: Vec<_> = package.description.service_types().collect();
    if let [only] = types[..] {
        return Some(only.to_string());
    }
    let names: Vec<&str> = types.iter().map(|name| &***name).collect();
    let message = format!(
        "package `{}` has {} service types",
        package.label,
        names.len()
    );
    object.wrong(
        problems,
        message,
        Some(format!("choose one with `type`: {}", names.join(", "))),
    );
    None
}

fn exit(
    object: &Value<'_>,
    table: &mut Table<'_>,
    packages: &[ScriptPackage],
    problems: &mut ScriptProblems,
) -> Option<Instruction> {
    let name = object.text(problems);
    let code = table
        .get("code")
        .map_or(Some(1), |value| value.exit_code(problems));
    let package = package_of(table, packages, problems)?;
    let name = name?;
    let known: Vec<&str> = package
        .description
        .code_packages
        .iter()
        .map(|code| &*code.name)
        .collect();
    if !known.contains(&name) {
        let suggestion = closest(name, known.iter().copied()).map_or_else(
            || format!("it has {}", known.join(", ")),
            |near| format!("did you mean `{near}`?"),
        );
        let message = format!("package `{}` has no code package `{name}`", package.label);
        object.wrong(problems, message, Some(suggestion));
        return None;
    }
    Some(Instruction::Exit(package.key.process(name), code?))
}

/// Returns the package with a new version of itself and of its code. `types`, if given, replace those of its
/// first host.
fn upgrade(
    object: &Value<'_>,
    table: &mut Table<'_>,
    packages: &[ScriptPackage],
    problems: &mut ScriptProblems,
) -> Option<Instruction> {
    let package = labelled(object, packages, problems);
    let version = table
        .need("version", "\"2.0\"", problems)
        .and_then(|value| value.text(problems));
    let types = table.get("types").map(|value| texts(&value, problems));
    let (package, version) = (package?, version?);
    let codes = package.description.code_packages.iter();
    let mut code_packages: Vec<CodePackageDescription> = codes
        .map(|code| CodePackageDescription {
            version: version.into(),
            ..code.clone()
        })
        .collect();
    if let Some(types) = types {
        // The list replaces the types of the first code package that hosts any.
        let host = code_packages
            .iter_mut()
            .find(|code| matches!(code.role, Role::TypeHost(_)));
        if let Some(host) = host {
            host.role = Role::TypeHost(types.into_iter().map(Into::into).collect());
        }
    }
    let description = PackageDescription {
        version: version.into(),
        code_packages,
        ..package.description.clone()
    };
    Some(Instruction::Upgrade(package.key.clone(), description))
}

/// Returns the package that `package` names. Default: the only one.
fn package_of<'p>(
    table: &mut Table<'_>,
    packages: &'p [ScriptPackage],
    problems: &mut ScriptProblems,
) -> Option<&'p ScriptPackage> {
    if let Some(value) = table.get("package") {
        return labelled(&value, packages, problems);
    }
    if let [only] = packages {
        return Some(only);
    }
    // Without any package, an error was already reported.
    if !packages.is_empty() {
        let suggestion = format!("choose one with `package`: {}", labels(packages).join(", "));
        let message = format!("there are {} packages", packages.len());
        table.value().wrong(problems, message, Some(suggestion));
    }
    None
}

fn labelled<'p>(
    value: &Value<'_>,
    packages: &'p [ScriptPackage],
    problems: &mut ScriptProblems,
) -> Option<&'p ScriptPackage> {
    let label = value.text(problems)?;
    let found = packages.iter().find(|package| package.label == label);
    if found.is_none() {
        let suggestion = closest(label, labels(packages)).map_or_else(
            || format!("there are {}", labels(packages).join(", ")),
            |near| format!("did you mean `{near}`?"),
        );
        value.wrong(
            problems,
            format!("there is no package `{label}`"),
            Some(suggestion),
        );
    }
    found
}

fn labels(packages: &[ScriptPackage]) -> Vec<&str> {
    packages
        .iter()
        .map(|package| package.label.as_str())
        .collect()
}

/// Reads `partition` or `partition/id`. The id defaults to 1.
fn replica(value: &Value<'_>, problems: &mut ScriptProblems) -> Option<ReplicaKey> {
    let text = value.text(problems)?;
    let Some((partition, id)) = text.rsplit_once('/') else {
        return Some(ReplicaKey::new(text, 1));
    };
    match id.parse() {
        Ok(id) if !partition.is_empty() => Some(ReplicaKey::new(partition, id)),
        _ => {
            let suggestion =
                "write a name, such as \"r\", or a partition and a number, such as \"p1/130\""
                    .to_owned();
            value.wrong(
                problems,
                format!("`{text}` is no replica"),
                Some(suggestion),
            );
            None
        }
    }
}
