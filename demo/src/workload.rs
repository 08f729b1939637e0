//! The workload of the cluster's replicas: real HTTP services in this process.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use parking_lot::{Mutex, MutexGuard};
use servicefabric_emulator::cluster::{OpenedReplica, PartitionInformation, ReplicaRef};
use servicefabric_emulator::gateway::{BoxFuture, Endpoints, Workload};

use crate::instance::{About, Instance};

/// The running instances, by replica. Cheap to clone; clones share them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Instances(Arc<Mutex<BTreeMap<ReplicaRef, Instance>>>);

impl Workload for Instances {
    fn open(&self, replica: OpenedReplica) -> BoxFuture<'_, io::Result<Endpoints>> {
        Box::pin(async move {
            let name = replica.service.as_str();
            let (_, service) = name.rsplit_once('/').unwrap_or(("", name));
            let instance = Instance::start(About {
                service: service.to_lowercase(),
                partition: match replica.partition {
                    PartitionInformation::Singleton => None,
                    PartitionInformation::Named(name) => Some(name),
                    PartitionInformation::Int64Range { low, high } => {
                        Some(format!("{low} to {high}"))
                    }
                },
                version: replica.code_version,
                node: replica.node,
                is_ill: AtomicBool::new(false),
            })
            .await?;
            let endpoints = Endpoints::one("http", format!("http://{}/", instance.address()));
            self.running().insert(replica.replica, instance);
            Ok(endpoints)
        })
    }

    fn close<'a>(&'a self, replica: &'a ReplicaRef) -> BoxFuture<'a, ()> {
        // Dropping an instance stops it.
        drop(self.running().remove(replica));
        Box::pin(std::future::ready(()))
    }
}

impl Instances {
    /// Makes one instance of a service ill, or all of them healthy.
    pub(crate) fn set_ill(&self, service: &str, ill: bool) {
        let running = self.running();
        let mut instances = running.values().filter(|one| one.service() == service);
        if ill {
            instances
                .next()
                .into_iter()
                .for_each(|one| one.set_ill(true));
        } else {
            instances.for_each(|one| one.set_ill(false));
        }
    }

    fn running(&self) -> MutexGuard<'_, BTreeMap<ReplicaRef, Instance>> {
        self.0.lock()
    }
}
