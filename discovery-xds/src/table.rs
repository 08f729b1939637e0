//! The resources of one type, as far as they were accepted.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashMap};

use discovery_core::text::shortened;
use prost::Message;
use proxy_model::{Problem, Problems, Severity, pointer_to};
use xds_types::pb::google::protobuf::Any;

use xds_types::ResourceType;

/// The content of one response, of either variant of the protocol.
#[derive(Debug, Default)]
pub(super) struct Update {
    pub(super) resources: Vec<Sent>,
    /// Names of the resources that no longer exist.
    pub(super) removed: Vec<String>,
    /// True if resources that are not in it do not exist: clusters and listeners in the state of the world.
    pub(super) is_all: bool,
}

/// A resource of a response.
#[derive(Debug)]
pub(super) struct Sent {
    /// The name beside the resource, which only the delta variant has.
    pub(super) name: Option<String>,
    pub(super) version: String,
    pub(super) content: Any,
}

#[derive(Debug, Clone)]
pub(super) struct Held<T> {
    version: String,
    pub(super) value: T,
    /// Differences from Envoy. Errors name parts that are rejected while the others serve.
    problems: Problems,
    /// The encoded resource that is read as `value` after a restart. Empty if none is kept.
    form: Vec<u8>,
    /// True if it is that of before a restart, and the control plane has not sent it since.
    is_restored: bool,
}

/// A resource with its warnings, or the problems that reject it.
type ReadResult<T> = Result<(T, Problems), Problems>;

/// The functions for one type of resource.
pub(super) struct Functions<M, T> {
    pub(super) kind: ResourceType,
    /// The name inside of a resource.
    pub(super) name_of: fn(&M) -> &str,
    /// True if resources are requested by name, so that the one inside must be the same.
    pub(super) is_by_name: bool,
    /// Reads a resource, after the form of it that is held.
    pub(super) read: fn(&M, Option<&T>) -> ReadResult<T>,
    /// Returns the encoded resource that is read in the same way without the one before it, of which this is
    /// the encoded form. `None` if it is the resource itself.
    pub(super) last_good: fn(&M, &T, &[u8]) -> Option<Vec<u8>>,
}

/// The resources of one type.
#[derive(Debug)]
pub(super) struct Table<T> {
    pub(super) held: BTreeMap<String, Held<T>>,
    /// The resources whose newest form is unsupported.
    rejected: BTreeMap<String, Problems>,
    /// The resources that were requested and do not exist.
    pub(super) absent: BTreeSet<String>,
    /// True if there was a response.
    pub(super) is_answered: bool,
    /// True to keep what a restart needs.
    keeps_forms: bool,
}

impl<T> Table<T> {
    pub(super) fn new(keeps_forms: bool) -> Self {
        Self {
            keeps_forms,
            held: BTreeMap::new(),
            rejected: BTreeMap::new(),
            absent: BTreeSet::new(),
            is_answered: false,
        }
    }
}

impl<T: PartialEq> Table<T> {
    /// Applies a response. Returns true if something has changed, and the rejected resources.
    pub(super) fn apply<M: Message + Default>(
        &mut self,
        functions: &Functions<M, T>,
        update: Update,
        most: usize,
    ) -> (bool, Vec<Problem>) {
        let resource_type = functions.kind;
        let mut changed = !self.is_answered;
        self.is_answered = true;
        let mut rejections = Vec::new();
        if update.resources.len() > most {
            let message = format!(
                "{} resources in one answer; at most {most} are taken",
                update.resources.len()
            );
            return (changed, vec![Problem::error("", "too_many", message)]);
        }
        let mut named = BTreeSet::new();
        let mut are_all_named = true;
        for sent in update.resources {
            let any = sent.content;
            let decoded = (any.type_url == resource_type.type_url())
                .then(|| M::decode(any.value.as_slice()).ok())
                .flatten();
            let Some(message) = decoded else {
                are_all_named = false;
                rejections.push(Problem::error(
                    "",
                    "not_decoded",
                    format!(
                        "a resource of type `{}` cannot be decoded as one of type `{}`",
                        shortened(&any.type_url, 100),
                        resource_type.type_url()
                    ),
                ));
                continue;
            };
            let inside = (functions.name_of)(&message);
            let name = match sent.name {
                Some(name) if functions.is_by_name && !name.is_empty() => name,
                _ => inside.to_owned(),
            };
            if !named.insert(name.clone()) {
                rejections.push(Problem::error(
                    "",
                    "twice",
                    format!("`{}` is there twice", shortened(&name, 100)),
                ));
                continue;
            }
            let is_known = self.held.contains_key(&name) || self.rejected.contains_key(&name);
            if !is_known && !update.is_all && self.held.len() + self.rejected.len() >= most {
                rejections.push(Problem::error(
                    "",
                    "too_many",
                    format!(
                        "`{}` is one too many; at most {most} resources of a type are taken",
                        shortened(&name, 100)
                    ),
                ));
                continue;
            }
            self.absent.remove(&name);
            let before = self.held.get(&name);
            let read = match inside == name {
                true => (functions.read)(&message, before.map(|held| &held.value)),
                false => Err(other_name(resource_type, &name, inside).into()),
            };
            match read {
                Ok((value, problems)) => {
                    let form = match self.keeps_forms {
                        true => {
                            let before = before.map_or(&[][..], |held| &held.form);
                            let good = (functions.last_good)(&message, &value, before);
                            good.unwrap_or(any.value)
                        }
                        false => Vec::new(),
                    };
                    rejections.extend(problems.errors().cloned());
                    changed |= self.rejected.remove(&name).is_some();
                    let same = (self.held.get(&name))
                        .is_some_and(|held| held.value == value && held.problems == problems);
                    changed |= !same;
                    let held = Held {
                        version: sent.version,
                        value,
                        problems,
                        form,
                        is_restored: false,
                    };
                    self.held.insert(name, held);
                }
                Err(problems) => {
                    rejections.extend(problems.errors().cloned());
                    changed = true;
                    self.rejected.insert(name, problems);
                }
            }
        }
        let gone: Vec<String> = match update.is_all {
            // What cannot be decoded may be any of them.
            true if !are_all_named => Vec::new(),
            true => (self.held.keys().chain(self.rejected.keys()))
                .filter(|name| !named.contains(*name))
                .cloned()
                .collect(),
            false => update.removed,
        };
        for name in gone {
            changed |= self.held.remove(&name).is_some() | self.rejected.remove(&name).is_some();
            changed |= self.absent.insert(name);
        }
        (changed, rejections)
    }

    /// Restores resources of before a restart, until the control plane sends or removes them.
    pub(super) fn restore<M: Message + Default>(
        &mut self,
        functions: &Functions<M, T>,
        forms: &[Any],
    ) {
        let of_kind = forms
            .iter()
            .filter(|form| form.type_url == functions.kind.type_url());
        for form in of_kind {
            // What another version of this program cannot read is lost.
            let Ok(message) = M::decode(form.value.as_slice()) else {
                continue;
            };
            let name = (functions.name_of)(&message).to_owned();
            if let Ok((value, problems)) = (functions.read)(&message, None) {
                let held = Held {
                    version: String::new(),
                    value,
                    problems,
                    form: form.value.clone(),
                    is_restored: true,
                };
                self.held.insert(name, held);
            }
        }
    }

    /// Returns what a restart needs.
    pub(super) fn forms(&self, kind: ResourceType) -> impl Iterator<Item = Any> {
        let held = self.held.values().filter(|held| !held.form.is_empty());
        held.map(move |held| Any {
            type_url: kind.type_url().to_owned(),
            value: held.form.clone(),
        })
    }

    /// Returns the resources that the control plane has sent, with their names.
    pub(super) fn sent(&self) -> impl Iterator<Item = (&String, &T)> {
        let sent = self.held.iter().filter(|(_, held)| !held.is_restored);
        sent.map(|(name, held)| (name, &held.value))
    }

    /// Removes the resources that are no longer needed.
    pub(super) fn keep(&mut self, wanted: &BTreeSet<String>) {
        self.held.retain(|name, _| wanted.contains(name));
        self.rejected.retain(|name, _| wanted.contains(name));
        self.absent.retain(|name| wanted.contains(name));
    }

    /// Returns true if the control plane has said nothing of a needed resource.
    pub(super) fn lacks(&self, name: &str) -> bool {
        self.held.get(name).is_none_or(|held| held.is_restored)
            && !self.rejected.contains_key(name)
            && !self.absent.contains(name)
    }

    /// Returns the versions. That of a resource of which a part is rejected is empty, so that it is sent
    /// again, and rejected again, on each stream. The name is there, so that its removal is reported.
    pub(super) fn versions(&self) -> impl Iterator<Item = (String, String)> {
        let of_rejected = (self.rejected.keys())
            .filter(|name| !self.held.contains_key(*name))
            .map(|name| (name.clone(), String::new()));
        (self.held.iter())
            .map(|(name, held)| match held.problems.has_errors() {
                true => (name.clone(), String::new()),
                false => (name.clone(), held.version.clone()),
            })
            .chain(of_rejected)
    }

    /// Returns the errors of a resource: those of its newest form, of which nothing serves, and those of
    /// the parts of its current one that are rejected.
    pub(super) fn errors_of(&self, name: &str) -> Problems {
        let of_rejected = self.rejected.get(name).into_iter();
        let of_held = self.held.get(name).map(|held| &held.problems);
        let problems = of_rejected.chain(of_held);
        problems.flat_map(Problems::errors).cloned().collect()
    }

    /// Returns the names of the rejected resources of which nothing is held.
    pub(super) fn lost(&self) -> impl Iterator<Item = &String> {
        let rejected = self.rejected.keys();
        rejected.filter(|name| !self.held.contains_key(*name))
    }

    pub(super) fn problems(&self) -> impl Iterator<Item = Problem> {
        let of_held = self.held.values().flat_map(|held| held.problems.iter());
        self.rejected
            .values()
            .flat_map(Problems::iter)
            .chain(of_held)
            .cloned()
    }
}

fn other_name(kind: ResourceType, name: &str, inside: &str) -> Problem {
    let (name, inside) = (shortened(name, 100), shortened(inside, 100));
    let message = format!("the resource `{name}` has the name `{inside}` inside");
    let of_kind = match kind {
        ResourceType::Route => "/route_configuration",
        _ => "/endpoints",
    };
    Problem::error(pointer_to(of_kind, &name), "other_name", message)
}

/// Combines equal warnings of many resources into one: a fleet may have thousands of similar clusters.
pub(super) fn gathered(problems: impl Iterator<Item = Problem>) -> Vec<Problem> {
    let mut found: Vec<(Problem, usize)> = Vec::new();
    let mut known: HashMap<(Cow<'static, str>, String), usize> = HashMap::new();
    for problem in problems {
        if problem.severity == Severity::Warning {
            let alike = (problem.code.clone(), problem.message.clone());
            let at = *known.entry(alike).or_insert(found.len());
            if let Some((_, more)) = found.get_mut(at) {
                *more += 1;
                continue;
            }
        }
        found.push((problem, 0));
    }
    let told = |(mut problem, more): (Problem, usize)| {
        match more {
            0 => {}
            1 => problem.message.push_str("; and at one more place"),
            more => problem.message += &format!("; and at {more} more places"),
        }
        problem
    };
    found.into_iter().map(told).collect()
}
