//! The parser of a script's packages.

use super::behaviour::read_behaviour;
use super::reader::{ScriptProblems, Table, Value};
use super::script::ScriptPackage;
use crate::hosting::{CodePackageDescription, HostType, PackageDescription, PackageKey, Role};

pub(super) fn read_packages(
    table: &mut Table<'_>,
    problems: &mut ScriptProblems,
) -> Vec<ScriptPackage> {
    let mut packages: Vec<ScriptPackage> = Vec::new();
    let Some(list) = table.need("package", "[{ name = \"P\", types = [\"T\"] }]", problems) else {
        return packages;
    };
    let items = list.list(problems);
    if items.is_empty() {
        list.wrong(
            problems,
            "there is no package, so nothing can happen".to_owned(),
            None,
        );
    }
    for value in items {
        let Some(package) = read_package(&value, problems) else {
            continue;
        };
        if packages.iter().any(|other| other.label == package.label) {
            let message = format!("there is already a package `{}`", package.label);
            value.wrong(
                problems,
                message,
                Some("give one of them another `label`".to_owned()),
            );
        } else if packages.iter().any(|other| other.key == package.key) {
            let message = format!("{} is described twice", package.key);
            value.wrong(
                problems,
                message,
                Some("give one of them another `activation_id`".to_owned()),
            );
        }
        packages.push(package);
    }
    packages
}

fn read_package(value: &Value<'_>, problems: &mut ScriptProblems) -> Option<ScriptPackage> {
    let mut table = value.table(problems)?;
    let name = table
        .need("name", "\"P\"", problems)
        .and_then(|value| value.text(problems));
    let label = optional(&mut table, "label", problems).or(name);
    let application = optional(&mut table, "application", problems).unwrap_or("fabric:/App");
    let version = optional(&mut table, "version", problems).unwrap_or("1.0");
    let activation_id = optional(&mut table, "activation_id", problems).unwrap_or("");
    let code_packages = read_code_packages(&mut table, version, problems);
    let names: Vec<&str> = code_packages.iter().map(|code| &*code.name).collect();
    let behaviour = read_behaviour(&mut table, &names, problems);
    table.finish(problems);
    let name = name?;
    Some(ScriptPackage {
        label: label?.to_owned(),
        key: PackageKey::exclusive(application, name, activation_id),
        description: PackageDescription {
            application: application.into(),
            manifest: name.into(),
            version: version.into(),
            code_packages,
        },
        behaviour,
    })
}

/// Reads either `types`, which one code package `Code` hosts, or a list `code`.
fn read_code_packages(
    table: &mut Table<'_>,
    version: &str,
    problems: &mut ScriptProblems,
) -> Vec<CodePackageDescription> {
    let types = table.get("types");
    let codes = table.get("code");
    match (types, codes) {
        (Some(types), None) => vec![CodePackageDescription::hosting(
            "Code",
            version,
            &texts(&types, problems),
        )],
        (None, Some(codes)) => {
            let mut read: Vec<CodePackageDescription> = Vec::new();
            for value in codes.list(problems) {
                let Some(code) = read_code(&value, version, problems) else {
                    continue;
                };
                if read.iter().any(|other| other.name == code.name) {
                    value.wrong(
                        problems,
                        format!("there is already a code package `{}`", code.name),
                        None,
                    );
                }
                for name in code.types() {
                    if read.iter().any(|other| other.types().contains(name)) {
                        value.wrong(
                            problems,
                            format!("another code package hosts `{name}` already"),
                            None,
                        );
                    }
                }
                read.push(code);
            }
            read
        }
        (Some(types), Some(_)) => {
            let suggestion = "write the types of each code package in `code`".to_owned();
            types.wrong(
                problems,
                "`types` and `code` exclude each other".to_owned(),
                Some(suggestion),
            );
            Vec::new()
        }
        (None, None) => {
            let suggestion = "add types = [\"T\"], or a list `code`".to_owned();
            table.value().wrong(
                problems,
                "the package has no code".to_owned(),
                Some(suggestion),
            );
            Vec::new()
        }
    }
}

fn read_code(
    value: &Value<'_>,
    version: &str,
    problems: &mut ScriptProblems,
) -> Option<CodePackageDescription> {
    let mut table = value.table(problems)?;
    let name = table
        .need("name", "\"Code\"", problems)
        .and_then(|value| value.text(problems));
    let types = table.get("types").map(|value| texts(&value, problems));
    let mut code = CodePackageDescription::helper(name.unwrap_or_default(), version);
    if let Some(types) = types {
        code.role = Role::TypeHost(types.into_iter().map(Into::into).collect());
    }
    code.setup = optional(&mut table, "setup", problems).map(Into::into);
    if let Some(main) = optional(&mut table, "main", problems) {
        code.main = main.into();
    }
    code.run_to_completion = truth(&mut table, "run_to_completion", problems);
    code.guest = truth(&mut table, "guest", problems);
    if truth(&mut table, "container", problems) {
        code.host_type = HostType::ContainerHost;
    }
    table.finish(problems);
    name.map(|_| code)
}

fn optional<'t>(
    table: &mut Table<'t>,
    key: &'static str,
    problems: &mut ScriptProblems,
) -> Option<&'t str> {
    table.get(key)?.text(problems)
}

fn truth(table: &mut Table<'_>, key: &'static str, problems: &mut ScriptProblems) -> bool {
    table
        .get(key)
        .and_then(|value| value.truth(problems))
        .unwrap_or_default()
}

pub(super) fn texts<'t>(value: &Value<'t>, problems: &mut ScriptProblems) -> Vec<&'t str> {
    let items = value.list(problems);
    items
        .iter()
        .filter_map(|item| item.text(problems))
        .collect()
}
