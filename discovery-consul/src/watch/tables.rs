//! The last results of the two blocking queries, and the services that the next results touch. Pure.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use crate::client::{Check, HealthStatus, ServiceTags};

/// The services of the last result.
#[derive(Debug, Default)]
pub(super) struct ServiceTable {
    last: Arc<ServiceTags>,
    has_seen_consul: bool,
}

/// The service of Consul's own servers. A token that may read it always sees it.
const CONSUL: &str = "consul";

impl ServiceTable {
    /// Applies the next result. Returns the services that are new, removed, or have other tags.
    pub(super) fn replace(&mut self, next: Arc<ServiceTags>) -> BTreeSet<Arc<str>> {
        let differs = |this: &ServiceTags, name: &str, tags: &[String]| {
            let before = this
                .get(name)
                .map(|tags| tags.iter().collect::<BTreeSet<_>>());
            before != Some(tags.iter().collect())
        };
        let changed = next
            .iter()
            .filter(|(name, tags)| differs(&self.last, name, tags))
            .map(|(name, _)| name.as_str().into());
        let gone = self
            .last
            .keys()
            .filter(|name| !next.contains_key(*name))
            .map(|name| name.as_str().into());
        let touched = changed.chain(gone).collect();
        self.has_seen_consul |= next.contains_key(CONSUL);
        self.last = next;
        touched
    }

    /// Returns true if the servers hide services that they have shown before.
    pub(super) fn is_hidden(&self) -> bool {
        self.has_seen_consul && !self.last.contains_key(CONSUL)
    }

    /// Returns true if the last result is empty.
    pub(super) fn is_blank(&self) -> bool {
        self.last.is_empty()
    }

    /// Returns true if the service is in the last result.
    pub(super) fn lists(&self, name: &str) -> bool {
        self.last.contains_key(name)
    }

    pub(super) fn names(&self) -> impl Iterator<Item = Arc<str>> {
        self.last.keys().map(|name| name.as_str().into())
    }
}

/// The checks of the last result.
#[derive(Debug, Default)]
pub(super) struct CheckTable {
    rows: HashMap<(String, String), Row>,
}

#[derive(Debug, PartialEq)]
struct Row {
    status: HealthStatus,
    service: Arc<str>,
    tags: Vec<String>,
    modified: u64,
}

/// The services and nodes that a result touches.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Touched {
    /// Services whose checks have changed.
    pub(super) services: BTreeSet<Arc<str>>,
    /// Nodes whose own checks have changed, and with them all services on them.
    pub(super) nodes: BTreeSet<String>,
    /// The indexes at which the existing rows changed.
    indexes: HashSet<u64>,
    /// True if rows were removed.
    has_removals: bool,
}

impl Touched {
    pub(super) fn is_empty(&self) -> bool {
        self.services.is_empty() && self.nodes.is_empty()
    }

    /// Returns true if the change that moved the list of services to `wake` is also visible in these rows.
    /// Checks are registered together with their instance, under one index.
    pub(super) fn explains(&self, wake: u64, answered: u64) -> bool {
        self.indexes.contains(&wake) || (self.has_removals && answered >= wake)
    }
}

impl CheckTable {
    /// Applies the next result. Returns the services and nodes that it touches.
    pub(super) fn replace(&mut self, checks: &[Check]) -> Touched {
        let mut before = std::mem::take(&mut self.rows);
        self.rows.reserve(checks.len());
        let mut touched = Touched::default();
        for check in checks {
            let key = (check.node.clone(), check.id.clone());
            let mut tags = check.service_tags.clone();
            tags.sort_unstable();
            let row = Row {
                status: check.status,
                service: check.service_name.as_str().into(),
                tags,
                modified: check.modify_index,
            };
            let old = before.remove(&key);
            if old.as_ref() != Some(&row) {
                touched.indexes.insert(row.modified);
                touched.add(&key.0, &row);
                if let Some(old) = old {
                    touched.add(&key.0, &old);
                }
            }
            self.rows.insert(key, row);
        }
        for ((node, _), row) in &before {
            touched.has_removals = true;
            touched.add(node, row);
        }
        touched
    }

    /// The services with a check on one of these nodes.
    pub(super) fn services_on<'t>(
        &'t self,
        nodes: &'t BTreeSet<String>,
    ) -> impl Iterator<Item = Arc<str>> + 't {
        let rows = self.rows.iter();
        rows.filter(|((node, _), row)| !row.service.is_empty() && nodes.contains(node))
            .map(|(_, row)| Arc::clone(&row.service))
    }
}

impl Touched {
    fn add(&mut self, node: &str, row: &Row) {
        match row.service.is_empty() {
            true => self.nodes.insert(node.to_owned()),
            false => self.services.insert(Arc::clone(&row.service)),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn services(list: &[(&str, &[&str])]) -> Arc<ServiceTags> {
        let entry = |(name, tags): &(&str, &[&str])| {
            let tags = tags.iter().map(|tag| (*tag).to_owned()).collect();
            ((*name).to_owned(), tags)
        };
        Arc::new(list.iter().map(entry).collect())
    }

    fn names(set: &BTreeSet<Arc<str>>) -> Vec<&str> {
        set.iter().map(|name| &**name).collect()
    }

    #[test]
    fn new_gone_and_retagged_services_are_touched() {
        let mut table = ServiceTable::default();
        let first = table.replace(services(&[("a", &["x", "y"]), ("b", &[]), ("consul", &[])]));
        assert_eq!(names(&first), ["a", "b", "consul"]);
        let same = table.replace(services(&[("a", &["y", "x"]), ("b", &[]), ("consul", &[])]));
        assert!(same.is_empty(), "the order of tags means nothing");
        let next = table.replace(services(&[("a", &["x"]), ("c", &[]), ("consul", &[])]));
        assert_eq!(names(&next), ["a", "b", "c"]);
    }

    #[test]
    fn a_list_that_has_lost_consul_itself_is_hidden() {
        let mut table = ServiceTable::default();
        table.replace(services(&[("a", &[])]));
        assert!(!table.is_hidden(), "a token may never have seen it");
        table.replace(services(&[("a", &[]), ("consul", &[])]));
        assert!(!table.is_hidden());
        table.replace(services(&[]));
        assert!(table.is_hidden());
        table.replace(services(&[("consul", &[])]));
        assert!(!table.is_hidden());
    }

    fn check(node: &str, id: &str, service: &str, status: HealthStatus, modified: u64) -> Check {
        let text = format!(
            r#"{{"Node": "{node}", "CheckID": "{id}", "Status": "{status}", "ServiceID": "{service}",
                "ServiceName": "{service}", "ServiceTags": null, "ModifyIndex": {modified}}}"#
        );
        serde_json::from_str(&text).unwrap()
    }

    #[test]
    fn rows_touch_their_service_and_checks_of_nodes_all_on_the_node() {
        use HealthStatus::{Critical, Passing};
        let web = |status, modified| check("n1", "web", "web", status, modified);
        let db = check("n1", "db", "db", Passing, 11);
        let elsewhere = check("n2", "web", "web", Passing, 12);
        let mut table = CheckTable::default();
        let all = [web(Passing, 10), db.clone(), elsewhere.clone()];
        assert_eq!(names(&table.replace(&all).services), ["db", "web"]);
        assert!(table.replace(&all).is_empty());

        let flipped = table.replace(&[web(Critical, 13), db.clone(), elsewhere.clone()]);
        assert_eq!(names(&flipped.services), ["web"]);
        assert!(flipped.explains(13, 13) && !flipped.explains(12, 13));

        // Only the index of a row has moved: a registration with another port.
        let again = table.replace(&[web(Critical, 14), db.clone(), elsewhere.clone()]);
        assert_eq!(names(&again.services), ["web"]);

        let node = check("n1", "_node_maintenance", "", Critical, 15);
        let rows = [web(Critical, 14), db, elsewhere.clone(), node];
        let maintained = table.replace(&rows);
        assert!(maintained.services.is_empty());
        let on_node: BTreeSet<_> = table.services_on(&maintained.nodes).collect();
        assert_eq!(names(&on_node), ["db", "web"]);

        let gone = table.replace(&[elsewhere]);
        assert_eq!(names(&gone.services), ["db", "web"]);
        assert!(gone.explains(16, 16) && !gone.explains(17, 16));
    }
}
