//! Snapshots for tests, written as `name=content`.

use std::sync::Arc;

use bytes::Bytes;

use crate::snapshot::{Bodies, Resource, ResourceSet, ResourceType, Snapshot};

pub(crate) type Part = (ResourceType, Arc<ResourceSet>);

pub(crate) fn resource(name: &str, content: &str) -> Arc<Resource> {
    let body = Bytes::copy_from_slice(content.as_bytes());
    Arc::new(Resource::new(name, Bodies::Same(body)))
}

pub(crate) fn part(resource_type: ResourceType, resources: &[&str]) -> Part {
    let set = resources
        .iter()
        .map(|text| {
            let (name, content) = text.split_once('=').unwrap();
            resource(name, content)
        })
        .collect();
    (resource_type, Arc::new(set))
}

pub(crate) fn clusters(resources: &[&str]) -> Part {
    part(ResourceType::Cluster, resources)
}

pub(crate) fn endpoints(resources: &[&str]) -> Part {
    part(ResourceType::Endpoint, resources)
}

pub(crate) fn listeners(resources: &[&str]) -> Part {
    part(ResourceType::Listener, resources)
}

pub(crate) fn routes(resources: &[&str]) -> Part {
    part(ResourceType::Route, resources)
}

pub(crate) fn snapshot(parts: &[Part]) -> Arc<Snapshot> {
    Arc::new(
        parts
            .iter()
            .fold(Snapshot::default(), |snapshot, (resource_type, set)| {
                snapshot.with(*resource_type, Arc::clone(set))
            }),
    )
}
