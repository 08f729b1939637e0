mod cases;
mod darkness;
mod endpoints;
mod hostile;
mod listeners;
mod options;
mod partitions;
mod properties;
mod reference;
mod roles;
mod table;
mod traffic;

use std::sync::Arc;

use discovery_core::{Labels, LabelsParser};
use proxy_model::config::{ClusterConfig, ProxyConfig, RouteConfig};
use proxy_model::{ClusterId, CompileOptions, DestinationId, RouteId, Snapshot};

use super::*;
use crate::model::{PartitionInformation, PartitionKind, Replica, ReplicaRole, ReplicaStatus};
use crate::service::PartitionDescription;

/// The address of the instance that most tests have.
const ADDRESS: &str =
    r#"{"Endpoints":{"http":"http://10.0.0.1:80","https":"https://10.0.0.1:443"}}"#;

fn labels(pairs: &[(&str, &str)]) -> Arc<Labels> {
    let owned = |&(key, value): &(&str, &str)| (key.to_owned(), value.to_owned());
    Arc::new(pairs.iter().map(owned).collect())
}

fn replica(id: i64, address: &str) -> Replica {
    Replica {
        replica_id: id,
        replica_status: ReplicaStatus::Ready,
        address: address.to_owned(),
        ..Replica::default()
    }
}

fn with_role(id: i64, role: ReplicaRole) -> Replica {
    Replica {
        replica_role: role,
        ..replica(id, &format!("https://10.0.0.{id}"))
    }
}

fn singleton(replicas: Vec<Replica>) -> PartitionDescription {
    let information = PartitionInformation {
        service_partition_kind: PartitionKind::Singleton,
        id: "P1".to_owned(),
        ..PartitionInformation::default()
    };
    PartitionDescription::new(information, replicas)
}

fn range(id: &str, low: i64, high: i64, replicas: Vec<Replica>) -> PartitionDescription {
    let information = PartitionInformation {
        service_partition_kind: PartitionKind::Int64Range,
        id: id.to_owned(),
        low_key: Some(low),
        high_key: Some(high),
        ..PartitionInformation::default()
    };
    PartitionDescription::new(information, replicas)
}

fn named(id: &str, name: &str, replicas: Vec<Replica>) -> PartitionDescription {
    let information = PartitionInformation {
        service_partition_kind: PartitionKind::Named,
        id: id.to_owned(),
        name: Some(name.to_owned()),
        ..PartitionInformation::default()
    };
    PartitionDescription::new(information, replicas)
}

/// `fabric:/App/Web` with these labels beside the one that enables it.
fn service(
    kind: ServiceKind,
    pairs: &[(&str, &str)],
    partitions: Vec<PartitionDescription>,
) -> ServiceDescription {
    let mut all = vec![("YARP.Enable", "true")];
    all.extend(pairs);
    ServiceDescription {
        name: "fabric:/App/Web".into(),
        application: "fabric:/App".into(),
        application_type: "AppType".into(),
        service_type: "WebType".into(),
        kind,
        labels: labels(&all),
        partitions,
    }
}

/// A stateless service with one instance and these labels.
fn web(pairs: &[(&str, &str)]) -> ServiceDescription {
    let instance = replica(101, ADDRESS);
    service(
        ServiceKind::Stateless,
        pairs,
        vec![singleton(vec![instance])],
    )
}

fn parse(service: &ServiceDescription) -> ParsedService {
    YarpLabels::default().parse(&service.name, service)
}

fn problems(parsed: &ParsedService) -> Vec<String> {
    parsed.problems.iter().map(ToString::to_string).collect()
}

/// The configuration of a service with which nothing is wrong, and which compiles.
#[track_caller]
fn good(parser: &YarpLabels, service: &ServiceDescription) -> ProxyConfig {
    let parsed = parser.parse(&service.name, service);
    assert_eq!(problems(&parsed), Vec::<String>::new());
    let config = parsed.config.expect("it is enabled");
    assert_compiles(&config);
    ProxyConfig::clone(&config)
}

#[track_caller]
fn assert_compiles(config: &ProxyConfig) {
    let options = CompileOptions::default()
        .with_filters(["first", "second"])
        .with_layers(["outer"]);
    let compiled = Snapshot::compile(Arc::new(config.clone()), &options);
    compiled.unwrap_or_else(|problems| panic!("{problems}\n{config:#?}"));
}

/// Returns the errors of a rejected service, which has no configuration.
#[track_caller]
fn rejected(service: &ServiceDescription) -> Vec<String> {
    let parsed = parse(service);
    assert!(parsed.problems.has_errors(), "{:?}", parsed.problems);
    assert_eq!(parsed.config.as_deref(), Some(&ProxyConfig::default()));
    problems(&parsed)
}

fn addresses(cluster: &ClusterConfig) -> Vec<(&str, &str)> {
    let destinations = cluster.destinations.iter();
    destinations
        .map(|(id, destination)| (id.as_str(), destination.address.as_str()))
        .collect()
}

fn cluster_ids(config: &ProxyConfig) -> Vec<&str> {
    config.clusters.keys().map(|id| id.as_str()).collect()
}

fn route_ids(config: &ProxyConfig) -> Vec<&str> {
    config.routes.keys().map(|id| id.as_str()).collect()
}

fn route<'c>(config: &'c ProxyConfig, id: &str) -> &'c RouteConfig {
    let ids = route_ids(config);
    config
        .routes
        .get(&RouteId::from(id))
        .unwrap_or_else(|| panic!("no route {id} among {ids:?}"))
}
