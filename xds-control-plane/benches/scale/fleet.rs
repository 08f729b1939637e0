//! A fleet's services, as a registry and a Consul would know them, and the snapshots that become of them.

use std::collections::BTreeMap;
use std::sync::Arc;

use xds_control_plane::assemble::ResourceBuilder;
use xds_control_plane::pipeline::PipelineOptions;
use xds_control_plane::snapshot::Snapshot;
use xds_control_plane::translate::{
    Branch, Catalog, CatalogService, Instance, Known, Protocol, Provides, RegistryService,
    Translator,
};

/// The route configuration that all virtual hosts are in.
pub(crate) const ROUTES: &str = "main";
/// The branch of the first service that gets a share of its requests.
const CANARY: &str = "service-00000-canary-http";

fn name(service: usize) -> String {
    format!("service-{service:05}-http")
}

/// Returns the clusters of this many services.
pub(crate) fn clusters(services: usize) -> impl Iterator<Item = String> {
    (0..services)
        .map(name)
        .chain(std::iter::once(CANARY.to_owned()))
}

/// A service of the registry, with a branch that gets this share of its requests.
fn registered(service: usize, canary_percent: Option<u32>) -> Arc<RegistryService> {
    let provides = Provides {
        name: "http".into(),
        protocol: Protocol::Http,
    };
    let canary = canary_percent.map(|canary_percent| Branch {
        name: "canary".into(),
        is_running: true,
        provides: None,
        canary_percent,
    });
    Arc::new(RegistryService {
        name: format!("service-{service:05}").into(),
        is_running: true,
        provides: vec![provides],
        branches: canary.into_iter().collect(),
    })
}

/// The data of the sources, and the pipeline's parts that make snapshots of it.
pub(crate) struct Fleet {
    known: Known,
    instances: usize,
    translator: Translator,
    assembler: ResourceBuilder,
}

impl Fleet {
    pub(crate) fn new(services: usize, instances: usize) -> Self {
        let options = PipelineOptions::default();
        let mut known = Known::default();
        for service in 0..services {
            let canary = (service == 0).then_some(1);
            known.registry.push(registered(service, canary));
        }
        let mut fleet = Self {
            known,
            instances,
            translator: Translator::new(options.translate),
            assembler: ResourceBuilder::new(options.assemble),
        };
        let mut catalog = Catalog {
            own: "sas".into(),
            ..Catalog::default()
        };
        for service in 0..services {
            let of_service = fleet.instances(service, 1, 1);
            catalog.services.insert(name(service).into(), of_service);
        }
        let of_canary = fleet.instances(services, 1, 1);
        catalog.services.insert(CANARY.into(), of_canary);
        fleet.known.catalog = Arc::new(catalog);
        fleet
    }

    /// The instances of a service, all at `port` except the first, which is at `first`.
    fn instances(&self, service: usize, port: u16, first: u16) -> Arc<CatalogService> {
        let instances = (0..self.instances).map(|instance| Instance {
            node: format!("node-{instance}").into(),
            id: format!("{service}-{instance}").into(),
            address: format!("10.{}.{}.{instance}", service / 250, service % 250).into(),
            port: if instance == 0 { first } else { port },
            tags: Vec::new(),
            is_live: true,
        });
        Arc::new(CatalogService {
            datacenters: BTreeMap::from([("sas".into(), instances.collect())]),
            ..CatalogService::default()
        })
    }

    /// Changes one endpoint of the first service.
    pub(crate) fn change_one(&mut self, port: u16) {
        let changed = self.instances(0, 1, port);
        let catalog = Arc::make_mut(&mut self.known.catalog);
        catalog.services.insert(name(0).into(), changed);
    }

    /// Changes one endpoint of every service.
    pub(crate) fn change_all(&mut self, port: u16) {
        for service in 0..self.known.registry.len() {
            let changed = self.instances(service, 1, port);
            let catalog = Arc::make_mut(&mut self.known.catalog);
            catalog.services.insert(name(service).into(), changed);
        }
    }

    /// Changes the share of requests that a branch gets, and with it one virtual host.
    pub(crate) fn change_share(&mut self, percent: u32) {
        self.known.registry[0] = registered(0, Some(percent));
    }

    /// The snapshot of everything.
    pub(crate) fn assemble(&mut self) -> Arc<Snapshot> {
        let translation = self.translator.translate(&self.known);
        self.assembler.assemble(&translation.services).snapshot
    }

    /// The next one, by the lane for endpoints.
    pub(crate) fn update_endpoints(&mut self) -> Arc<Snapshot> {
        let translation = self.translator.translate(&self.known);
        self.assembler
            .update_endpoints(&translation.services)
            .snapshot
    }
}
