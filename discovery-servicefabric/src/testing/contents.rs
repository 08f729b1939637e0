//! The content of a cluster.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use crate::id::id_of;
use crate::model::{
    Application, ApplicationType, Extension, Parameter, Partition, PartitionInformation,
    PartitionKind, PartitionStatus, Property, PropertyKind, PropertyValue, Replica, ReplicaRole,
    ReplicaStatus, ResolvedEndpoint, ResolvedPartition, Service, ServiceKind, ServiceStatus,
    ServiceType,
};

/// The content of a [`FakeCluster`](super::FakeCluster). Lists are keyed by the argument of their call:
/// services by the id of their application, partitions by that of their service, replicas by that of their
/// partition.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Contents {
    /// Types of applications.
    pub application_types: Vec<ApplicationType>,
    /// Types of services, by name and version of the application type.
    pub service_types: BTreeMap<(String, String), Vec<ServiceType>>,
    /// Service manifests by name.
    pub manifests: BTreeMap<String, String>,
    /// Applications.
    pub applications: Vec<Application>,
    /// Services.
    pub services: BTreeMap<String, Vec<Service>>,
    /// Partitions.
    pub partitions: BTreeMap<String, Vec<Partition>>,
    /// Replicas.
    pub replicas: BTreeMap<String, Vec<Replica>>,
    /// Replicas that are about to close, which the naming service no longer resolves.
    pub draining: Vec<i64>,
    /// Properties, by the id of their name.
    pub properties: BTreeMap<String, Vec<Property>>,
}

impl Contents {
    /// Adds an application type with defaults of parameters.
    pub fn application_type<'a>(
        &mut self,
        name: &str,
        version: &str,
        defaults: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> &mut Self {
        self.application_types.push(ApplicationType {
            name: name.to_owned(),
            version: version.to_owned(),
            default_parameter_list: parameters(defaults),
            ..ApplicationType::default()
        });
        self.service_types
            .entry((name.to_owned(), version.to_owned()))
            .or_default();
        self
    }

    /// Adds a type of services with labels in the extension `YARP-preview`.
    pub fn service_type<'a>(
        &mut self,
        application_type: &str,
        version: &str,
        name: &str,
        labels: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> &mut Self {
        let extension = ("YARP-preview", labels_xml(labels));
        self.service_type_with(application_type, version, name, Some(vec![extension]))
    }

    /// Adds a type of services with these extensions. `None` if the gateway sends none.
    pub fn service_type_with(
        &mut self,
        application_type: &str,
        version: &str,
        name: &str,
        extensions: Option<Vec<(&str, String)>>,
    ) -> &mut Self {
        let mut service_type = ServiceType {
            service_manifest_name: "Pkg".to_owned(),
            ..ServiceType::default()
        };
        let description = &mut service_type.service_type_description;
        name.clone_into(&mut description.service_type_name);
        description.extensions = extensions.map(|extensions| {
            let made = extensions.into_iter().map(|(key, value)| Extension {
                key: key.to_owned(),
                value,
            });
            made.collect()
        });
        self.service_types
            .entry((application_type.to_owned(), version.to_owned()))
            .or_default()
            .push(service_type);
        self
    }

    /// Adds an application.
    pub fn application<'a>(
        &mut self,
        name: &str,
        type_name: &str,
        version: &str,
        own: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> &mut Self {
        let id = id_of(name);
        self.services.entry(id.clone()).or_default();
        self.applications.push(Application {
            id,
            name: name.to_owned(),
            type_name: type_name.to_owned(),
            type_version: version.to_owned(),
            parameters: parameters(own),
            ..Application::default()
        });
        self
    }

    /// Adds a stateless service to the application whose name it begins with: its partitions with the ids and addresses
    /// of their instances, each with one listener called `web`.
    pub fn stateless<'a>(
        &mut self,
        name: &str,
        type_name: &str,
        partitions: impl IntoIterator<Item = (&'a str, Vec<(i64, &'a str)>)>,
    ) -> &mut Self {
        let partitions = partitions.into_iter().map(|(id, instances)| {
            let instances = instances
                .into_iter()
                .map(|(id, address)| replica(ServiceKind::Stateless, id, &published(address)));
            (id, instances.collect())
        });
        self.service(name, type_name, ServiceKind::Stateless, partitions)
    }

    /// Adds a stateful service, the first replica of each partition as the primary.
    pub fn stateful<'a>(
        &mut self,
        name: &str,
        type_name: &str,
        partitions: impl IntoIterator<Item = (&'a str, Vec<(i64, &'a str)>)>,
    ) -> &mut Self {
        let partitions = partitions.into_iter().map(|(id, replicas)| {
            let replicas = replicas.into_iter().enumerate().map(|(at, (id, address))| {
                let mut made = replica(ServiceKind::Stateful, id, &published(address));
                made.replica_role = match at {
                    0 => ReplicaRole::Primary,
                    _ => ReplicaRole::ActiveSecondary,
                };
                made
            });
            (id, replicas.collect())
        });
        self.service(name, type_name, ServiceKind::Stateful, partitions)
    }

    /// Adds a service with these partitions and replicas to the application whose name it begins with.
    pub fn service<'a>(
        &mut self,
        name: &str,
        type_name: &str,
        kind: ServiceKind,
        partitions: impl IntoIterator<Item = (&'a str, Vec<Replica>)>,
    ) -> &mut Self {
        let application = self
            .applications
            .iter()
            .filter(|application| name.starts_with(&application.name))
            .map(|application| application.id.clone())
            .max_by_key(String::len)
            .unwrap_or_default();
        let id = id_of(name);
        let mut all = Vec::new();
        for (partition, replicas) in partitions {
            all.push(Partition {
                service_kind: kind.clone(),
                partition_information: PartitionInformation {
                    service_partition_kind: PartitionKind::Singleton,
                    id: partition.to_owned(),
                    ..PartitionInformation::default()
                },
                partition_status: PartitionStatus::Ready,
                ..Partition::default()
            });
            self.replicas.insert(partition.to_owned(), replicas);
        }
        if let [_, _, ..] = all[..] {
            for (at, partition) in (0..).zip(&mut all) {
                let information = &mut partition.partition_information;
                information.service_partition_kind = PartitionKind::Int64Range;
                information.low_key = Some(at * 100);
                information.high_key = Some(at * 100 + 99);
            }
        }
        self.partitions.insert(id.clone(), all);
        self.services.entry(application).or_default().push(Service {
            id,
            name: name.to_owned(),
            type_name: type_name.to_owned(),
            manifest_version: "1.0".to_owned(),
            service_kind: kind,
            service_status: ServiceStatus::Active,
            ..Service::default()
        });
        self
    }

    /// Takes a service away, with everything below it.
    pub fn remove_service(&mut self, name: &str) -> &mut Self {
        for services in self.services.values_mut() {
            services.retain(|service| service.name != name);
        }
        for partition in self.partitions.remove(&id_of(name)).into_iter().flatten() {
            self.replicas.remove(&partition.partition_information.id);
        }
        self
    }

    /// Replaces the instances of a partition: their ids and addresses.
    pub fn instances(&mut self, partition: &str, instances: &[(i64, &str)]) -> &mut Self {
        let made = instances
            .iter()
            .map(|(id, address)| replica(ServiceKind::Stateless, *id, &published(address)));
        self.replicas.insert(partition.to_owned(), made.collect());
        self
    }

    /// Returns the results of the naming service, by partition.
    pub(super) fn named(&self) -> BTreeMap<String, ResolvedPartition> {
        let all = self.replicas.iter().map(|(partition, replicas)| {
            let named = replicas.iter().filter(|replica| {
                !replica.address.is_empty() && !self.draining.contains(&replica.replica_id)
            });
            let endpoints: Vec<_> = named
                .map(|replica| ResolvedEndpoint {
                    address: replica.address.clone(),
                    ..ResolvedEndpoint::default()
                })
                .collect();
            let answer = ResolvedPartition {
                version: format!("v{}", endpoints.len()),
                endpoints,
                ..ResolvedPartition::default()
            };
            (partition.clone(), answer)
        });
        all.collect()
    }

    /// Sets a property of a service's name to a text.
    pub fn property(&mut self, service: &str, name: &str, text: &str) -> &mut Self {
        let value = PropertyValue {
            kind: PropertyKind::String,
            data: text.into(),
        };
        let properties = self.properties.entry(id_of(service)).or_default();
        properties.retain(|property| property.name != name);
        properties.push(Property {
            name: name.to_owned(),
            value: Some(value),
        });
        self
    }
}

/// A replica that is ready.
pub(crate) fn replica(kind: ServiceKind, id: i64, address: &str) -> Replica {
    Replica {
        service_kind: kind,
        replica_id: id,
        replica_status: ReplicaStatus::Ready,
        address: address.to_owned(),
        ..Replica::default()
    }
}

/// The address of a replica: that of its listener `web`, or a list of listeners in JSON as it is written.
fn published(address: &str) -> String {
    match address.starts_with('{') {
        true => address.to_owned(),
        false => listener("web", address),
    }
}

/// The address of a replica with one listener.
pub(crate) fn listener(name: &str, address: &str) -> String {
    serde_json::json!({ "Endpoints": { name: address } }).to_string()
}

/// Labels as a manifest has them.
pub(crate) fn labels_xml<'a>(labels: impl IntoIterator<Item = (&'a str, &'a str)>) -> String {
    let escaped = |text: &str| {
        text.replace('&', "&amp;")
            .replace('<', "&lt;")
            .replace('"', "&quot;")
    };
    let mut xml =
        String::from("<Labels xmlns=\"http://schemas.microsoft.com/2015/03/fabact-no-schema\">");
    for (key, value) in labels {
        let _ = write!(
            xml,
            "<Label Key=\"{}\">{}</Label>",
            escaped(key),
            escaped(value)
        );
    }
    xml.push_str("</Labels>");
    xml
}

fn parameters<'a>(pairs: impl IntoIterator<Item = (&'a str, &'a str)>) -> Vec<Parameter> {
    pairs
        .into_iter()
        .map(|(key, value)| Parameter {
            key: key.to_owned(),
            value: value.to_owned(),
        })
        .collect()
}
