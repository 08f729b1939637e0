//! Reading the section `ReverseProxy`.

use std::collections::HashSet;
use std::hash::Hash;

use indexmap::IndexMap;
use serde::{Deserialize, Deserializer, de};

use super::node::{Node, parse_document};
use super::reader::ObjectReader;
use super::{cluster, route};
use crate::config::{ClusterConfig, DestinationConfig, ProxyConfig, RouteConfig};
use crate::id::{ClusterId, RouteId};
use crate::problem::{Problem, Problems};
use crate::suggest::shortened;

/// The section's name.
const SECTION: &str = "ReverseProxy";

/// The readable part of a section.
#[derive(Debug, Default)]
pub(crate) struct Reading {
    /// The configuration, with every part that could be read at least partly.
    pub(crate) config: ProxyConfig,
    /// Routes of it that have a mistake.
    pub(crate) bad_routes: HashSet<RouteId>,
    /// Clusters of it that have a mistake.
    pub(crate) bad_clusters: HashSet<ClusterId>,
}

impl Reading {
    /// Routes and clusters without a mistake.
    fn good(mut self) -> ProxyConfig {
        let (routes, clusters) = (&self.bad_routes, &self.bad_clusters);
        self.config.routes.retain(|id, _| !routes.contains(id));
        self.config.clusters.retain(|id, _| !clusters.contains(id));
        self.config
    }
}

/// Reads the routes and clusters of `section`, whose pointer is `pointer`.
///
/// A route or cluster with a mistake anywhere in it is left out and reported in `problems`. The second of
/// two ids that differ only in case is left out too.
pub fn read_config(section: &Node, pointer: &str, problems: &mut Problems) -> ProxyConfig {
    read_section(section, pointer, problems).good()
}

/// Reads the section `ReverseProxy` of a whole document, such as `appsettings.json`. Other sections are
/// ignored.
///
/// # Errors
///
/// Returns all problems, with pointers from the document's root. Values are not checked yet:
/// [`Snapshot::compile`](crate::Snapshot::compile) does that.
pub fn read_reverse_proxy(text: &str) -> Result<ProxyConfig, Problems> {
    let document = parse_document(text)?;
    let Some(section) = document.get(SECTION) else {
        let problem = Problem::error(
            "",
            "missing_section",
            format!("the document has no section `{SECTION}`"),
        );
        let is_section = ["Routes", "Clusters"]
            .iter()
            .any(|key| document.get(key).is_some());
        return Err(match is_section {
            true => problem.with_suggestion(format!(
                "put `Routes` and `Clusters` into `\"{SECTION}\": {{ … }}`"
            )),
            false => problem,
        }
        .into());
    };
    let pointer = document.spelled(&format!("/{SECTION}"));
    without_errors(|problems| read_config(section, &pointer, problems))
}

/// Reads one route.
pub fn read_route(node: &Node, pointer: &str, problems: &mut Problems) -> Option<RouteConfig> {
    whole(problems, |problems| {
        ObjectReader::read(node, pointer, problems, route::read)
    })
}

/// Reads one cluster.
pub fn read_cluster(node: &Node, pointer: &str, problems: &mut Problems) -> Option<ClusterConfig> {
    whole(problems, |problems| {
        ObjectReader::read(node, pointer, problems, cluster::read)
    })
}

pub(crate) fn read_section(section: &Node, pointer: &str, problems: &mut Problems) -> Reading {
    let mut reading = Reading::default();
    ObjectReader::read(section, pointer, problems, |section| {
        section.skip("$schema");
        let routes = by_name(section, "Routes", false, route::read, |id| {
            reading.bad_routes.insert(id.into());
        });
        let clusters = by_name(section, "Clusters", true, cluster::read, |id| {
            reading.bad_clusters.insert(id.into());
        });
        reading.config.routes = with_ids(routes);
        reading.config.clusters = with_ids(clusters);
    });
    reading
}

/// Reads an object by id; also a list, as before YARP 1.0. `bad` gets the ids of entries with mistakes. An entry
/// that cannot be read is empty. So is one that is `null`, with a warning, if `null_counts`.
fn by_name<T: Default>(
    section: &mut ObjectReader<'_, '_>,
    key: &'static str,
    null_counts: bool,
    read: impl Fn(&mut ObjectReader<'_, '_>) -> T,
    mut bad: impl FnMut(&str),
) -> Vec<(String, T)> {
    if !matches!(section.peek(key), Some(Node::List(_))) {
        let entries = section.all_entries(key, null_counts, |id, node, pointer, problems| {
            if matches!(node, Node::Null) {
                let message = format!("`{}` is `null`, which is read as `{{}}`", shortened(id));
                problems.push(Problem::warning(pointer, "null_entry", message));
                return Some(T::default());
            }
            let errors_before = problems.error_count();
            let value = ObjectReader::read(node, pointer, problems, |reader| read(reader));
            if problems.error_count() > errors_before {
                bad(id);
            }
            Some(value.unwrap_or_default())
        });
        return entries.unwrap_or_default();
    }
    section.skip(key);
    let pointer = section.pointer_to(key);
    let message = format!("`{key}` is a list, as in an earlier format");
    section.problems().push(
        Problem::error(pointer, "old_format", message).with_suggestion(format!(
            "write an object by id: `\"{key}\": {{ \"id\": {{ … }} }}`"
        )),
    );
    Vec::new()
}

fn with_ids<I: From<String> + Hash + Eq, T>(entries: Vec<(String, T)>) -> IndexMap<I, T> {
    let entries = entries.into_iter();
    entries.map(|(name, value)| (name.into(), value)).collect()
}

/// Returns the result of `read`, or `None` if `read` reported an error.
fn whole<T>(problems: &mut Problems, read: impl FnOnce(&mut Problems) -> Option<T>) -> Option<T> {
    let errors_before = problems.error_count();
    let value = read(problems)?;
    (problems.error_count() == errors_before).then_some(value)
}

fn without_errors<T>(read: impl FnOnce(&mut Problems) -> T) -> Result<T, Problems> {
    let mut problems = Problems::new();
    let value = read(&mut problems);
    if problems.has_errors() {
        return Err(problems);
    }
    Ok(value)
}

impl ProxyConfig {
    /// Reads a document whose root is the section `ReverseProxy`: an object with `Routes` and `Clusters`.
    ///
    /// # Errors
    ///
    /// Returns all problems of the form. Values are not checked yet:
    /// [`Snapshot::compile`](crate::Snapshot::compile) does that.
    pub fn from_json(text: &str) -> Result<Self, Problems> {
        let document = parse_document(text)?;
        without_errors(|problems| read_config(&document, "", problems))
    }
}

impl<'de> Deserialize<'de> for ProxyConfig {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let node = Node::deserialize(deserializer)?;
        without_errors(|problems| read_config(&node, "", problems)).map_err(de::Error::custom)
    }
}

macro_rules! deserialize_with {
    ($type:ty, $read:expr) => {
        impl<'de> Deserialize<'de> for $type {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let node = Node::deserialize(deserializer)?;
                let read = |problems: &mut Problems| ObjectReader::read(&node, "", problems, $read);
                match without_errors(read) {
                    Ok(Some(value)) => Ok(value),
                    Ok(None) => Err(de::Error::custom("expected an object")),
                    Err(problems) => Err(de::Error::custom(problems)),
                }
            }
        }
    };
}

deserialize_with!(RouteConfig, route::read);
deserialize_with!(ClusterConfig, cluster::read);
deserialize_with!(DestinationConfig, cluster::destination);
