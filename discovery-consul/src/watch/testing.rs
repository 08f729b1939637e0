//! Shared parts of this module's tests.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::instance::ServiceInstance;
use super::state::{ServiceState, Services};
use crate::client::{HealthStatus, ServiceWeights};

/// Returns one service with this many instances.
pub(super) fn services_with(name: &str, instances: usize) -> Services {
    let instance = |nth: usize| ServiceInstance {
        node: "n1".to_owned(),
        id: format!("{name}-{nth:03}"),
        address: "10.0.0.1".to_owned(),
        port: 80,
        wan: None,
        tags: Vec::new(),
        meta: BTreeMap::new(),
        weights: ServiceWeights::default(),
        status: HealthStatus::Passing,
    };
    let instances = (0..instances).map(instance).collect();
    Services::from([(name.into(), Arc::new(ServiceState { instances }))])
}
