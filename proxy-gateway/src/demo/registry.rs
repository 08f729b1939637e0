//! The demo's registry: what an orchestrator knows about its services, and a discoverer that reads it.

use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use discovery_core::{DiscoverError, DiscoveredService, Discoverer, Discovery};
use indexmap::IndexMap;
use proxy_model::config::DestinationConfig;
use tokio::sync::Notify;

use super::instance::Instance;

/// A service as the demo's orchestrator sees it.
#[derive(Debug, Default)]
pub(super) struct Service {
    pub(super) labels: IndexMap<String, String>,
    pub(super) instances: Vec<Instance>,
}

/// Services by name. Cheap to clone; clones share the services.
#[derive(Clone, Debug, Default)]
pub(super) struct Registry(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    services: Mutex<IndexMap<&'static str, Service>>,
    changed: Notify,
}

impl Registry {
    /// Changes the services and lets the discoverer know.
    pub(super) fn update<T>(
        &self,
        change: impl FnOnce(&mut IndexMap<&'static str, Service>) -> T,
    ) -> T {
        let result = change(
            &mut self
                .0
                .services
                .lock()
                .unwrap_or_else(PoisonError::into_inner),
        );
        self.0.changed.notify_one();
        result
    }

    fn discovered(&self) -> Discovery {
        let services = self
            .0
            .services
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        services
            .iter()
            .map(|(name, service)| {
                DiscoveredService::labelled(
                    *name,
                    service.labels.clone(),
                    service.instances.iter().map(|instance| {
                        let destination = DestinationConfig {
                            address: format!("http://{}/", instance.address()),
                            ..DestinationConfig::default()
                        };
                        (instance.name(), destination)
                    }),
                )
            })
            .collect()
    }
}

#[async_trait]
impl Discoverer for Registry {
    fn name(&self) -> &str {
        "demo"
    }

    async fn discover(&self) -> Result<Discovery, DiscoverError> {
        Ok(self.discovered())
    }

    async fn changed(&self) {
        self.0.changed.notified().await;
    }
}
