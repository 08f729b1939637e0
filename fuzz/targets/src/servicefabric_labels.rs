//! Labels of a Service Fabric service, with its partitions and the published addresses of its
//! replicas.

use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;

use discovery_core::{Labels, LabelsParser};
use discovery_servicefabric::labels::{
    LabelOptions, ListenerMode, ParsedService, PartitionMode, ReplicaSelection, RoleRouting,
    YarpLabels,
};
use discovery_servicefabric::model::{PartitionInformation, Replica, ReplicaStatus, ServiceKind};
use discovery_servicefabric::{PartitionDescription, ServiceDescription};
use proxy_model::config::{PartitionHash, PartitionKey, ProxyConfig};
use proxy_model::{CompileOptions, Severity, Snapshot, pointer_to};

use crate::config::check_round_trip;
use crate::input::{check_wording, text};

/// Maximum number of clusters, routes and destinations of a service.
const MAX_GENERATED: usize = 200;

/// Maximum number of problems of a service: 100 problems of labels, a note that there were more,
/// and one for its size.
const MAX_PROBLEMS: usize = 102;

/// Fuzzes a service, one fact per line:
///
/// ```text
/// kind Stateful
/// option insecure
/// partition p1 Int64Range 0 9          (an id, a kind, and keys or a name)
/// replica 101 Primary Ready https://…  (of the partition above)
/// YARP.Enable=true                     (a label)
/// ```
///
/// * The same service gives the same result in any order of its partitions and replicas.
/// * Every problem has the location of a label, or of all labels. Their number is bounded. A
///   rejected service results in nothing.
/// * An accepted service compiles, keeps to the size limit, and has no address with a scheme that
///   is not allowed.
pub fn servicefabric_labels(data: &[u8]) {
    let text = text(data);
    let (service, options) = read(&text);
    let insecure = options.insecure_http;
    let parser = YarpLabels::new(options);
    let parsed = parser.parse(&service.name, &service);
    assert_eq!(parser.parse(&service.name, &service), parsed);
    if ids_are_distinct(&service) {
        assert_eq!(
            parser.parse(&service.name, &turned(&service)),
            parsed,
            "the order matters"
        );
    }
    check_said(&service, &parsed);
    let Some(config) = &parsed.config else {
        assert!(!parsed.problems.has_errors(), "{}", parsed.problems);
        return;
    };
    if parsed.problems.has_errors() {
        assert_eq!(**config, ProxyConfig::default());
        return;
    }
    check_addresses(config, insecure);
    let destinations = config.clusters.values().map(|c| c.destinations.len());
    let size = config.clusters.len() + config.routes.len() + destinations.sum::<usize>();
    assert!(size <= MAX_GENERATED, "{size} of {MAX_GENERATED}");
    if let Err(problems) = Snapshot::compile(Arc::clone(config), &CompileOptions::default()) {
        // Only the operator of the proxy knows which policies exist.
        for problem in problems.errors() {
            let of_policy =
                problem.code.starts_with("unknown_") && problem.code.ends_with("_policy");
            assert!(of_policy, "{problem}");
        }
    }
    check_round_trip(config);
}

/// Asserts the form of the reported problems.
fn check_said(service: &ServiceDescription, parsed: &ParsedService) {
    assert!(parsed.problems.len() <= MAX_PROBLEMS);
    let pointers: HashSet<String> = service
        .labels
        .keys()
        .map(|key| pointer_to("", key))
        .collect();
    for problem in &parsed.problems {
        let known = problem.pointer.is_empty() || pointers.contains(&problem.pointer);
        assert!(known, "{problem:?} is at no label");
        check_wording(problem);
    }
    let replicas: usize = service.partitions.iter().map(|p| p.replicas.len()).sum();
    assert!(parsed.replicas.len() <= replicas);
    for outcome in &parsed.replicas {
        if let Err(reason) = &outcome.result {
            assert!(!reason.is_empty() && reason.len() < 2_000, "{reason}");
            assert!(!reason.contains(char::is_control), "{reason:?}");
        }
    }
}

fn check_addresses(config: &ProxyConfig, insecure: bool) {
    let destinations = config
        .clusters
        .values()
        .flat_map(|c| c.destinations.values());
    for destination in destinations {
        for address in [Some(&destination.address), destination.health.as_ref()] {
            let Some(address) = address else { continue };
            let allowed =
                address.starts_with("https://") || (insecure && address.starts_with("http://"));
            assert!(allowed, "{address}");
        }
    }
}

fn ids_are_distinct(service: &ServiceDescription) -> bool {
    let ids: BTreeSet<String> = service
        .partitions
        .iter()
        .map(|partition| partition.information.id.to_lowercase())
        .collect();
    let replicas_are_distinct = service.partitions.iter().all(|partition| {
        let ids: BTreeSet<i64> = partition.replicas.iter().map(|r| r.replica_id).collect();
        ids.len() == partition.replicas.len()
    });
    ids.len() == service.partitions.len() && replicas_are_distinct
}

fn turned(service: &ServiceDescription) -> ServiceDescription {
    let mut turned = service.clone();
    turned.partitions.reverse();
    for partition in &mut turned.partitions {
        partition.replicas.reverse();
    }
    turned
}

fn read(text: &str) -> (ServiceDescription, LabelOptions) {
    let mut kind = ServiceKind::Stateless;
    let mut options = LabelOptions::default().with_max_generated(MAX_GENERATED);
    let mut partitions: Vec<PartitionDescription> = Vec::new();
    let mut labels = Labels::new();
    for line in text.lines() {
        let mut words = line.split(' ');
        match words.next() {
            Some("kind") => kind = ServiceKind::from(words.next().unwrap_or_default()),
            Some("option") => options = with_option(options, words.next().unwrap_or_default()),
            Some("partition") => partitions.push(partition(words)),
            Some("replica") => {
                if let Some(partition) = partitions.last_mut() {
                    partition.replicas.push(replica(words));
                }
            }
            _ => {
                if let Some((key, value)) = line.split_once('=') {
                    labels.insert(key.to_owned(), value.to_owned());
                }
            }
        }
    }
    (
        ServiceDescription::new("fabric:/Shop/Web", kind, labels, partitions),
        options,
    )
}

fn with_option(options: LabelOptions, name: &str) -> LabelOptions {
    match name {
        "insecure" => options.with_insecure_http(true),
        "strict" => options.with_unknown_labels(Severity::Error),
        "default-route" => options.with_default_route(true),
        "path-prefix" => options.with_path_prefix(true),
        "per-listener" => options.with_listener_mode(ListenerMode::PerListener),
        "per-partition" => options.with_partition_mode(PartitionMode::PerPartition),
        "methods" => options.with_role_routing(RoleRouting::Methods),
        "primary" => options.with_replica_selection(ReplicaSelection::PrimaryOnly),
        "key" => {
            let key = PartitionKey {
                header: Some("X-Key".to_owned()),
                ..PartitionKey::default()
            };
            options
                .with_partition_mode(PartitionMode::Key)
                .with_partition_key(key, PartitionHash::Fnv1a64)
        }
        _ => options,
    }
}

fn partition<'a>(mut words: impl Iterator<Item = &'a str>) -> PartitionDescription {
    let mut information = PartitionInformation::default();
    words
        .next()
        .unwrap_or_default()
        .clone_into(&mut information.id);
    information.service_partition_kind = words.next().unwrap_or_default().into();
    if let Some(first) = words.next() {
        information.low_key = first.parse().ok();
        information.name = information.low_key.is_none().then(|| first.to_owned());
    }
    information.high_key = words.next().and_then(|last| last.parse().ok());
    PartitionDescription::new(information, Vec::new())
}

fn replica<'a>(mut words: impl Iterator<Item = &'a str>) -> Replica {
    let mut replica = Replica::default();
    replica.replica_id = words
        .next()
        .and_then(|id| id.parse().ok())
        .unwrap_or_default();
    replica.replica_role = words.next().unwrap_or_default().into();
    replica.replica_status = words.next().map_or(ReplicaStatus::Ready, Into::into);
    replica.address = words.collect::<Vec<_>>().join(" ");
    replica
}
