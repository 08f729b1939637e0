//! The combined labels of a service's instances.

use std::collections::BTreeMap;

use discovery_core::Labels;
use proxy_model::{Problem, Problems, pointer_to};

use super::destination::SCHEME;
use crate::options::ServiceOptions;
use crate::traefik;
use crate::watch::ServiceInstance;

/// Maximum number of labels of one service that are read.
const MOST_LABELS: usize = 10_000;

/// The combined labels of a service's instances. The first instance with a label wins.
#[derive(Debug, Default)]
pub(super) struct CombinedLabels {
    /// Our labels with their prefix.
    pub(super) labels: Labels,
    /// Traefik's tags.
    pub(super) traefik: BTreeMap<String, String>,
    /// Number of instances with contradicting values, by the label's folded key.
    contradicted: BTreeMap<String, usize>,
    /// Folded keys of the labels.
    known: BTreeMap<String, String>,
}

impl CombinedLabels {
    /// Adds the labels of one instance.
    pub(super) fn add(&mut self, instance: &ServiceInstance, options: &ServiceOptions) {
        for (key, value) in labels_of(instance, options) {
            let folded = key.to_ascii_lowercase();
            // The scheme belongs to each instance, and is not a label of the dialect.
            if strip_prefix(&folded, &options.label_prefix) == Some(SCHEME) {
                continue;
            }
            match self.known.get(&folded) {
                Some(known) if *known != value => {
                    *self.contradicted.entry(folded).or_default() += 1;
                }
                Some(_) => {}
                None if self.known.len() < MOST_LABELS => {
                    self.known.insert(folded, value.clone());
                    self.labels.insert(key, value);
                }
                None => {}
            }
        }
        for (key, value) in pairs_of_tags(instance) {
            if traefik::is_traefik(key) && self.traefik.len() < MOST_LABELS {
                let entry = self.traefik.entry(key.to_owned());
                entry.or_insert_with(|| value.to_owned());
            }
        }
    }

    /// Returns a warning for each contradicted label.
    pub(super) fn problems(&self) -> Problems {
        let contradicted = self.contradicted.iter();
        contradicted
            .map(|(key, count)| {
                let message = format!(
                    "{count} instances differ; the first in the own datacenter, by node and id, counts"
                );
                Problem::warning(pointer_to("", key), "contradicting_labels", message)
            })
            .collect()
    }
}

/// The labels of one instance with their prefix, those of the metadata first.
pub(super) fn labels_of<'i>(
    instance: &'i ServiceInstance,
    options: &'i ServiceOptions,
) -> impl Iterator<Item = (String, String)> + 'i {
    let prefix = options.label_prefix.as_str();
    let of_meta = instance.meta.iter().filter_map(move |(key, value)| {
        let key = match strip_prefix(key, prefix) {
            Some(_) => key.clone(),
            None => spelled_out(key, prefix)?,
        };
        Some((key, value.clone()))
    });
    let of_tags = pairs_of_tags(instance)
        .filter(move |(key, _)| strip_prefix(key, prefix).is_some())
        .map(|(key, value)| (key.to_owned(), value.to_owned()));
    of_meta.chain(of_tags)
}

/// The tags as keys and values. A tag without a value is one that is true.
pub(super) fn pairs_of_tags(instance: &ServiceInstance) -> impl Iterator<Item = (&str, &str)> {
    let tags = instance.tags.iter();
    tags.map(|tag| {
        let (key, value) = tag.split_once('=').unwrap_or((tag, "true"));
        (key.trim(), value)
    })
}

/// Keys of metadata have no dots: `proxy_routes_main_headers_0_name` is `proxy.routes.main.headers.[0].name`.
fn spelled_out(key: &str, prefix: &str) -> Option<String> {
    let flat = prefix.replace('.', "_");
    let rest = strip_prefix(key, &flat)?;
    let parts = rest.split('_').map(|part| {
        let is_index = !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
        match is_index {
            true => format!("[{part}]"),
            false => part.to_owned(),
        }
    });
    Some(format!("{prefix}{}", parts.collect::<Vec<_>>().join(".")))
}

pub(super) fn strip_prefix<'k>(key: &'k str, prefix: &str) -> Option<&'k str> {
    let head = key.get(..prefix.len())?;
    head.eq_ignore_ascii_case(prefix)
        .then(|| &key[prefix.len()..])
}
