//! The reduction of the API to what its roots can hold.

use std::collections::{BTreeMap, BTreeSet};

use prost_types::{DescriptorProto, FileDescriptorProto, FileDescriptorSet};

use crate::Result;
use crate::roots::Root;

/// Reduces the set to the roots and to what they can hold. A message that is kept keeps all of its fields; one that is only
/// the place where a kept one is declared keeps none.
pub(crate) fn prune(set: FileDescriptorSet, roots: &[Root]) -> Result<FileDescriptorSet> {
    let mut index = Index::default();
    for file in &set.file {
        let package = format!(".{}", file.package());
        for message in &file.message_type {
            index.add(&package, message);
        }
    }
    let mut wanted = Vec::new();
    let mut services = BTreeSet::new();
    for root in roots {
        let file = (set.file.iter())
            .find(|file| file.name() == root.file)
            .ok_or_else(|| format!("{} was not compiled", root.file))?;
        for name in &root.names {
            let full = format!(".{}.{name}", file.package());
            if let Some(service) = file.service.iter().find(|service| service.name() == name) {
                for method in &service.method {
                    wanted.push(method.input_type().to_owned());
                    wanted.push(method.output_type().to_owned());
                }
                services.insert(full);
            } else if index.holds.contains_key(&full) {
                wanted.push(full);
            } else {
                return Err(format!("{} has no {name}", root.file).into());
            }
        }
    }
    let reached = index.reach(wanted);
    let file = (set.file.into_iter())
        .map(|file| prune_file(file, &reached, &services))
        .filter(|file| {
            !(file.message_type.is_empty() && file.enum_type.is_empty() && file.service.is_empty())
        })
        .collect();
    Ok(FileDescriptorSet { file })
}

/// The types of fields by the full name of the message.
#[derive(Debug, Default)]
struct Index {
    holds: BTreeMap<String, BTreeSet<String>>,
}

impl Index {
    fn add(&mut self, parent: &str, message: &DescriptorProto) {
        let name = format!("{parent}.{}", message.name());
        for nested in &message.nested_type {
            self.add(&name, nested);
        }
        let types = message.field.iter().filter_map(|field| {
            let name = field.type_name();
            (!name.is_empty()).then(|| name.to_owned())
        });
        self.holds.insert(name, types.collect());
    }

    /// Returns the full names of the messages and enumerations that `wanted` can hold, themselves included.
    fn reach(&self, mut wanted: Vec<String>) -> BTreeSet<String> {
        let mut reached = BTreeSet::new();
        while let Some(name) = wanted.pop() {
            if reached.contains(&name) {
                continue;
            }
            wanted.extend(self.holds.get(&name).into_iter().flatten().cloned());
            reached.insert(name);
        }
        reached
    }
}

fn prune_file(
    mut file: FileDescriptorProto,
    reached: &BTreeSet<String>,
    services: &BTreeSet<String>,
) -> FileDescriptorProto {
    let package = format!(".{}", file.package());
    let full = |name: &str| format!("{package}.{name}");
    file.message_type = keep(&package, std::mem::take(&mut file.message_type), reached);
    file.enum_type
        .retain(|found| reached.contains(&full(found.name())));
    file.service
        .retain(|service| services.contains(&full(service.name())));
    file.extension.clear();
    // Packages become modules and names are absolute, so imports are of no use; some name files that are left out.
    file.dependency.clear();
    file.public_dependency.clear();
    file.weak_dependency.clear();
    file
}

fn keep(
    parent: &str,
    messages: Vec<DescriptorProto>,
    reached: &BTreeSet<String>,
) -> Vec<DescriptorProto> {
    messages
        .into_iter()
        .filter_map(|mut message| {
            let name = format!("{parent}.{}", message.name());
            message.nested_type = keep(&name, std::mem::take(&mut message.nested_type), reached);
            (message.enum_type)
                .retain(|found| reached.contains(&format!("{name}.{}", found.name())));
            message.extension.clear();
            if reached.contains(&name) {
                return Some(message);
            }
            message.field.clear();
            message.oneof_decl.clear();
            let is_place = !(message.nested_type.is_empty() && message.enum_type.is_empty());
            is_place.then_some(message)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use prost_types::{EnumDescriptorProto, FieldDescriptorProto};

    use super::*;

    fn message(name: &str, fields: &[&str], nested: Vec<DescriptorProto>) -> DescriptorProto {
        let field = |type_name: &&str| FieldDescriptorProto {
            name: Some("field".to_owned()),
            type_name: Some((*type_name).to_owned()),
            ..FieldDescriptorProto::default()
        };
        DescriptorProto {
            name: Some(name.to_owned()),
            field: fields.iter().map(field).collect(),
            nested_type: nested,
            ..DescriptorProto::default()
        }
    }

    fn set() -> FileDescriptorSet {
        let enumeration = |name: &str| EnumDescriptorProto {
            name: Some(name.to_owned()),
            ..EnumDescriptorProto::default()
        };
        let place = message(
            "Place",
            &[".p.Unused"],
            vec![message("Inner", &[], vec![]), message("Other", &[], vec![])],
        );
        FileDescriptorSet {
            file: vec![FileDescriptorProto {
                name: Some("p.proto".to_owned()),
                package: Some("p".to_owned()),
                message_type: vec![
                    message("Root", &[".p.Place.Inner", ".p.Kind", ".p.Root"], vec![]),
                    place,
                    message("Unused", &[], vec![]),
                ],
                enum_type: vec![enumeration("Kind"), enumeration("Unkind")],
                ..FileDescriptorProto::default()
            }],
        }
    }

    fn root(name: &str) -> [Root; 1] {
        [Root {
            file: "p.proto".to_owned(),
            names: vec![name.to_owned()],
        }]
    }

    #[test]
    fn a_root_keeps_what_it_can_hold_and_nothing_else() {
        let pruned = prune(set(), &root("Root")).unwrap();
        let [file] = &pruned.file[..] else {
            panic!("one file is expected: {pruned:?}");
        };
        let names: Vec<_> = file
            .message_type
            .iter()
            .map(DescriptorProto::name)
            .collect();
        assert_eq!(names, ["Root", "Place"]);
        let [root, place] = &file.message_type[..] else {
            panic!("two messages are expected: {file:?}");
        };
        assert_eq!(root.field.len(), 3);
        assert!(place.field.is_empty());
        let nested: Vec<_> = place
            .nested_type
            .iter()
            .map(DescriptorProto::name)
            .collect();
        assert_eq!(nested, ["Inner"]);
        let kinds: Vec<_> = file.enum_type.iter().map(|found| found.name()).collect();
        assert_eq!(kinds, ["Kind"]);
    }

    #[test]
    fn a_root_that_is_missing_is_an_error() {
        let error = prune(set(), &root("Gone")).unwrap_err();
        assert_eq!(error.to_string(), "p.proto has no Gone");
    }
}
