//! The resources of one type, as far as they were accepted.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashMap};

use discovery_core::text::shortened;
use prost::Message;
use proxy_model::{Problem, Problems, Severity};
use xds_types::pb::google::protobuf::Any;

use xds_types::ResourceType;

/// The content of one response, of either variant of the protocol.
#[derive(Debug, Default)]
pub(super) struct Update {
    /// Version and content.
    pub(super) resources: Vec<(String, Any)>,
    /// Names of the resources that no longer exist.
    pub(super) removed: Vec<String>,
    /// True if resources that are not in it do not exist: clusters and listeners in the state of the world.
    pub(super) is_all: bool,
}

#[derive(Debug, Clone)]
pub(super) struct Held<T> {
    version: String,
    pub(super) value: T,
    /// Differences from Envoy. Errors name parts that are rejected while the others serve.
    problems: Problems,
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
}

impl<T> Default for Table<T> {
    fn default() -> Self {
        Self {
            held: BTreeMap::new(),
            rejected: BTreeMap::new(),
            absent: BTreeSet::new(),
            is_answered: false,
        }
    }
}

/// Reads a resource, after the form of it that is held.
type ReadOne<M, T> = fn(&M, Option<&T>) -> Result<(T, Problems), Problems>;

impl<T: PartialEq> Table<T> {
    /// Applies a response. Returns true if something has changed, and the rejected resources.
    pub(super) fn apply<M: Message + Default>(
        &mut self,
        resource_type: ResourceType,
        update: Update,
        name_of: fn(&M) -> &str,
        read: ReadOne<M, T>,
        most: usize,
    ) -> (bool, Vec<Problem>) {
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
        for (version, any) in update.resources {
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
            let name = name_of(&message).to_owned();
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
            match read(&message, self.held.get(&name).map(|held| &held.value)) {
                Ok((value, problems)) => {
                    rejections.extend(problems.errors().cloned());
                    changed |= self.rejected.remove(&name).is_some();
                    let same = (self.held.get(&name))
                        .is_some_and(|held| held.value == value && held.problems == problems);
                    changed |= !same;
                    let held = Held {
                        version,
                        value,
                        problems,
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

    /// Removes the resources that are no longer needed.
    pub(super) fn keep(&mut self, wanted: &BTreeSet<String>) {
        self.held.retain(|name, _| wanted.contains(name));
        self.rejected.retain(|name, _| wanted.contains(name));
        self.absent.retain(|name| wanted.contains(name));
    }

    /// Returns true if nothing is known of a needed resource.
    pub(super) fn lacks(&self, name: &str) -> bool {
        !self.held.contains_key(name)
            && !self.rejected.contains_key(name)
            && !self.absent.contains(name)
    }

    /// Returns the versions of the resources, except partly rejected ones: those must be sent again, and rejected
    /// again, on each stream.
    pub(super) fn versions(&self) -> impl Iterator<Item = (String, String)> {
        (self.held.iter())
            .filter(|(_, held)| !held.problems.has_errors())
            .map(|(name, held)| (name.clone(), held.version.clone()))
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
