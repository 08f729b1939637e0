//! The data of one datacenter, with the index of the last change of each part.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use crate::client::{HealthStatus, ServiceDefinition};

/// The data of one datacenter.
#[derive(Clone, Debug)]
pub(super) struct Store {
    pub(super) name: String,
    /// The last change of anything.
    index: u64,
    /// The last change of any instance.
    catalog: u64,
    /// The last change of any check.
    checks: u64,
    /// The last change of any key.
    keys: u64,
    instances: BTreeMap<Key, Instance>,
    of_service: BTreeMap<String, BTreeSet<Key>>,
    services: BTreeMap<String, u64>,
    nodes_in_maintenance: BTreeMap<String, u64>,
    values: BTreeMap<String, (Vec<u8>, u64)>,
}

/// Node and id.
type Key = (String, String);

#[derive(Clone, Debug)]
struct Instance {
    definition: ServiceDefinition,
    status: HealthStatus,
    checked: u64,
}

impl Store {
    /// Creates a datacenter whose history begins at this index.
    pub(super) fn new(name: &str, index: u64) -> Self {
        Self {
            name: name.to_owned(),
            index,
            catalog: index,
            checks: index,
            keys: index,
            instances: BTreeMap::new(),
            of_service: BTreeMap::new(),
            services: BTreeMap::new(),
            nodes_in_maintenance: BTreeMap::new(),
            values: BTreeMap::new(),
        }
    }

    fn tick(&mut self) -> u64 {
        self.index += 1;
        self.index
    }

    /// Registers an instance. Like in real servers, a known instance keeps the state of its check, and the
    /// row of the check does not change with a port or metadata, although the index of the checks does.
    pub(super) fn register(&mut self, node: &str, definition: ServiceDefinition) {
        let index = self.tick();
        self.catalog = index;
        self.services.insert(definition.name.clone(), index);
        let key = (node.to_owned(), definition.effective_id().to_owned());
        let before = self.instances.get(&key).filter(|before| {
            let id = |definition: &ServiceDefinition| {
                let check = definition.check.as_ref();
                check.map(|check| check.id.clone())
            };
            id(&before.definition) == id(&definition) && before.definition.name == definition.name
        });
        let is_same_row = before.is_some_and(|before| before.definition.tags == definition.tags);
        let status = match (before, &definition.check) {
            (Some(before), _) => before.status,
            (None, Some(check)) => check.status,
            (None, None) => HealthStatus::Passing,
        };
        let checked = before.filter(|_| is_same_row).map(|before| before.checked);
        if definition.check.is_some() {
            self.checks = index;
        }
        let instance = Instance {
            definition,
            status,
            checked: checked.unwrap_or(index),
        };
        let name = instance.definition.name.clone();
        if let Some(before) = self.instances.insert(key.clone(), instance) {
            self.forget(&before.definition.name, &key);
        }
        self.of_service.entry(name).or_default().insert(key);
    }

    fn forget(&mut self, service: &str, key: &Key) {
        if let Some(keys) = self.of_service.get_mut(service) {
            keys.remove(key);
        }
    }

    /// Removes an instance. Returns true if it existed.
    pub(super) fn deregister(&mut self, node: &str, id: &str) -> bool {
        let key = (node.to_owned(), id.to_owned());
        let Some(gone) = self.instances.remove(&key) else {
            return false;
        };
        self.forget(&gone.definition.name, &key);
        let index = self.tick();
        self.catalog = index;
        self.services.insert(gone.definition.name, index);
        if gone.definition.check.is_some() {
            self.checks = index;
        }
        true
    }

    /// Sets the status of a check. Returns true if the check exists.
    pub(super) fn set_check(&mut self, check: &str, status: HealthStatus) -> bool {
        let index = self.index + 1;
        let mut is_there = false;
        for instance in self.instances.values_mut() {
            let id = instance.definition.check.as_ref().map(|check| &check.id);
            if id.is_some_and(|id| id == check) {
                is_there = true;
                if instance.status != status {
                    instance.status = status;
                    instance.checked = index;
                    self.services
                        .insert(instance.definition.name.clone(), index);
                    self.index = index;
                    self.checks = index;
                }
            }
        }
        is_there
    }

    pub(super) fn set_node_maintenance(&mut self, node: &str, is_on: bool) {
        let index = self.tick();
        self.checks = index;
        match is_on {
            true => self.nodes_in_maintenance.insert(node.to_owned(), index),
            false => self.nodes_in_maintenance.remove(node),
        };
        for ((on, _), instance) in &self.instances {
            if on == node {
                self.services
                    .insert(instance.definition.name.clone(), index);
            }
        }
    }

    pub(super) fn put(&mut self, key: &str, value: &[u8]) {
        // Writing what is there already is no change.
        if self.values.get(key).is_some_and(|(old, _)| old == value) {
            return;
        }
        let index = self.tick();
        self.keys = index;
        self.values.insert(key.to_owned(), (value.to_vec(), index));
    }

    pub(super) fn delete(&mut self, key: &str) {
        if self.values.remove(key).is_some() {
            self.keys = self.tick();
        }
    }

    /// `/v1/catalog/services`
    pub(super) fn list(&self) -> (u64, Value) {
        let mut services: BTreeMap<&str, Vec<&str>> = BTreeMap::from([("consul", Vec::new())]);
        for instance in self.instances.values() {
            let tags = services.entry(&instance.definition.name).or_default();
            for tag in &instance.definition.tags {
                if !tags.contains(&tag.as_str()) {
                    tags.push(tag);
                }
            }
        }
        (self.catalog, json!(services))
    }

    /// `/v1/health/state/any`
    pub(super) fn checks(&self) -> (u64, Value) {
        let of_instances = self.instances.iter().filter_map(|((node, id), instance)| {
            let check = instance.definition.check.as_ref()?;
            Some(json!({
                "Node": node, "CheckID": check.id, "Status": instance.status.as_str(), "ServiceID": id,
                "ServiceName": instance.definition.name, "ServiceTags": instance.definition.tags,
                "ModifyIndex": instance.checked,
            }))
        });
        let of_nodes = self.nodes_in_maintenance.iter().map(maintenance);
        (self.checks, of_instances.chain(of_nodes).collect())
    }

    /// `/v1/health/service/:name`
    pub(super) fn health(&self, name: &str, passing: bool) -> (u64, Value) {
        let keys = self.of_service.get(name).into_iter().flatten();
        let of_service = keys.filter_map(|key| self.instances.get_key_value(key));
        let entries = of_service.filter_map(|((node, id), instance)| {
            let definition = &instance.definition;
            let in_maintenance = self.nodes_in_maintenance.get_key_value(node);
            let is_passing = instance.status == HealthStatus::Passing && in_maintenance.is_none();
            if passing && !is_passing {
                return None;
            }
            let mut checks: Vec<Value> = in_maintenance.map(maintenance).into_iter().collect();
            if let Some(check) = &definition.check {
                checks.push(json!({
                    "Node": node, "CheckID": check.id, "Status": instance.status.as_str(), "ServiceID": id,
                }));
            }
            let weights = definition.weights.unwrap_or_default();
            let addresses: BTreeMap<_, _> = definition
                .tagged_addresses
                .iter()
                .map(|(name, at)| (name, json!({"Address": at.address, "Port": at.port})))
                .collect();
            Some(json!({
                "Node": {"Node": node, "Address": "10.0.0.1", "Datacenter": self.name, "Meta": null},
                "Service": {
                    "ID": id, "Service": name, "Tags": definition.tags, "Meta": definition.meta,
                    "Address": definition.address, "Port": definition.port, "TaggedAddresses": addresses,
                    "Weights": {"Passing": weights.passing, "Warning": weights.warning},
                },
                "Checks": checks,
            }))
        });
        let entries = entries.collect();
        (
            self.services.get(name).copied().unwrap_or(self.catalog),
            entries,
        )
    }

    /// `/v1/kv/:key`. `None` if there is no value.
    pub(super) fn value(&self, key: &str) -> (u64, Option<Value>) {
        match self.values.get(key) {
            Some((value, index)) => (*index, Some(json!([pair(key, value, *index)]))),
            None => (self.keys, None),
        }
    }

    /// `/v1/kv/:prefix?recurse`. `None` if there are no values.
    pub(super) fn values(&self, prefix: &str) -> (u64, Option<Value>) {
        let pairs: Vec<_> = self
            .values
            .iter()
            .filter(|(key, _)| key.starts_with(prefix))
            .map(|(key, (value, index))| pair(key, value, *index))
            .collect();
        (self.keys, (!pairs.is_empty()).then(|| json!(pairs)))
    }
}

fn maintenance((node, index): (&String, &u64)) -> Value {
    json!({
        "Node": node, "CheckID": "_node_maintenance", "Status": "critical", "ServiceID": "", "ServiceName": "",
        "ServiceTags": [], "ModifyIndex": index,
    })
}

fn pair(key: &str, value: &[u8], index: u64) -> Value {
    use base64::Engine;
    let encoded = base64::engine::general_purpose::STANDARD.encode(value);
    let value = (!value.is_empty()).then_some(encoded);
    json!({"Key": key, "Value": value, "Flags": 0, "ModifyIndex": index})
}
