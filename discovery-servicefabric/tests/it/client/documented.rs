//! Tests of discovery with responses from the product's documentation, written down here and not made by
//! this project's emulator: an emulator that misreads the documentation would agree with a client that does
//! so, too.

use std::sync::Arc;
use std::time::Duration;

use discovery_core::{ServiceOutcome, SourceState};
use discovery_servicefabric::{ServiceFabric, ServiceFabricOptions};
use parking_lot::Mutex;
use proxy_model::{Problem, Problems, Snapshot, pointer_to};
use serde_json::{Value, json};

use super::support::{Act, Gateway, Seen, error, ok, page, text};

/// The changes of responses in a test: the beginning of a path, and the replacement.
type Changes = Arc<Mutex<Vec<(&'static str, Act)>>>;

const LABELS: &str = "<Labels xmlns=\"http://schemas.microsoft.com/2015/03/fabact-no-schema\">\
    <Label Key=\"YARP.Enable\">true</Label>\
    <Label Key=\"YARP.Routes.all.Hosts\">[Host]</Label>\
    <Label Key=\"YARP.Backend.SessionAffinity.Enabled\">true</Label>\
    <Label Key=\"YARP.Backend.ServiceFabric.PartitionMode\">PerPartition</Label></Labels>";

const LOW: &str = "6a2ac3ae-6e0a-4a4b-9d3c-a0b9c5e0d001";
const HIGH: &str = "6a2ac3ae-6e0a-4a4b-9d3c-a0b9c5e0d002";

/// `fabric:/Voting/Data`, a stateful service of two ranges with two replicas each.
fn documented(seen: &Seen) -> Act {
    let path = seen.target().split('?').next().unwrap_or_default();
    let partition = |id: &str, low: &str, high: &str| {
        json!({
            "ServiceKind": "Stateful",
            "PartitionInformation": {"ServicePartitionKind": "Int64Range", "Id": id, "LowKey": low, "HighKey": high},
            "TargetReplicaSetSize": 2, "MinReplicaSetSize": 1, "HealthState": "Ok", "PartitionStatus": "Ready",
            "LastQuorumLossDuration": "PT0S",
            "PrimaryEpoch": {"ConfigurationVersion": "12884901891", "DataLossVersion": "131130633631721136"}
        })
    };
    let replicas = |host: &str| {
        let replica = |role: &str, id: &str, node: &str| {
            json!({
                "ServiceKind": "Stateful", "ReplicaRole": role, "ReplicaId": id, "ReplicaStatus": "Ready",
                "HealthState": "Ok", "NodeName": node, "LastInBuildDurationInSeconds": "0",
                "Address": format!("{{\"Endpoints\":{{\"\":\"https:\\/\\/{host}{id}:30001\\/\"}}}}")
            })
        };
        page(
            json!([
                replica("Primary", "131130633641724721", "_Node_0"),
                replica("ActiveSecondary", "131130633641724722", "_Node_1")
            ]),
            "",
        )
    };
    match (seen.method.as_str(), path) {
        ("GET", "/ApplicationTypes") => page(
            json!([{
                "Name": "VotingType", "Version": "1.0.0", "Status": "Available", "StatusDetails": "",
                "ApplicationTypeDefinitionKind": "ServiceFabricApplicationPackage",
                "DefaultParameterList": [{"Key": "Host", "Value": "voting.example"}]
            }]),
            "",
        ),
        ("GET", "/Applications") => page(
            json!([{
                "Id": "Voting", "Name": "fabric:/Voting", "TypeName": "VotingType", "TypeVersion": "1.0.0",
                "Status": "Ready", "Parameters": [], "HealthState": "Ok",
                "ApplicationDefinitionKind": "ServiceFabricApplicationDescription"
            }]),
            "",
        ),
        ("GET", "/ApplicationTypes/VotingType/$/GetServiceTypes") => ok(json!([{
            "ServiceManifestName": "DataPkg", "ServiceManifestVersion": "1.0.0", "IsServiceGroup": false,
            "ServiceTypeDescription": {
                "Kind": "Stateful", "IsStateful": true, "ServiceTypeName": "DataType", "PlacementConstraints": "",
                "LoadMetrics": [], "ServicePlacementPolicies": [], "HasPersistedState": true,
                "Extensions": [{"Key": "YARP-preview", "Value": LABELS}]
            }
        }])),
        ("GET", "/Applications/Voting/$/GetServices") => page(
            json!([{
                "Id": "Voting~Data", "ServiceKind": "Stateful", "Name": "fabric:/Voting/Data", "TypeName": "DataType",
                "ManifestVersion": "1.0.0", "HasPersistedState": true, "HealthState": "Ok", "ServiceStatus": "Active",
                "IsServiceGroup": false
            }]),
            "",
        ),
        ("GET", "/Services/Voting~Data/$/GetPartitions") => page(
            json!([
                partition(LOW, "-9223372036854775808", "-1"),
                partition(HIGH, "0", "9223372036854775807")
            ]),
            "",
        ),
        ("GET", path) if path == format!("/Partitions/{LOW}/$/GetReplicas") => replicas("low"),
        ("GET", path) if path == format!("/Partitions/{HIGH}/$/GetReplicas") => replicas("high"),
        ("POST", "/Services/Voting~Data/$/ReportHealth") => text(200, ""),
        _ => error(400, "E_INVALIDARG"),
    }
}

fn gateway() -> (Gateway, Changes) {
    let changes = Changes::default();
    let other = Arc::clone(&changes);
    let gateway = Gateway::new(move |seen| {
        let changes = other.lock();
        let changed = changes
            .iter()
            .find(|(path, _)| seen.target().starts_with(path));
        changed.map_or_else(|| documented(seen), |(_, act)| act.clone())
    });
    (gateway, changes)
}

fn discovery(gateway: &Gateway) -> ServiceFabric {
    let options = ServiceFabricOptions::default()
        .with_discovery_period(Duration::from_secs(5))
        .with_full_refresh_period(Duration::from_secs(30));
    ServiceFabric::new(gateway.client()).options(options)
}

fn replicas_of(partition: &str) -> &'static str {
    match partition {
        LOW => "/Partitions/6a2ac3ae-6e0a-4a4b-9d3c-a0b9c5e0d001/$/GetReplicas",
        _ => "/Partitions/6a2ac3ae-6e0a-4a4b-9d3c-a0b9c5e0d002/$/GetReplicas",
    }
}

async fn seconds(seconds: u64) {
    tokio::time::sleep(Duration::from_secs(seconds)).await;
}

#[tokio::test(start_paused = true)]
async fn a_service_is_served_and_what_is_not_honoured_is_reported_to_the_cluster() {
    let (gateway, _) = gateway();
    let unsupported = |snapshot: &Snapshot| -> Problems {
        let affine = snapshot
            .clusters()
            .iter()
            .filter(|cluster| cluster.config().session_affinity.is_some());
        affine
            .map(|cluster| {
                let pointer = pointer_to("/Clusters", cluster.id().as_str()) + "/SessionAffinity";
                Problem::warning(pointer, "unsupported", "requests go to any destination")
            })
            .collect()
    };
    let provider = discovery(&gateway)
        .unsupported(unsupported)
        .runner()
        .start();
    seconds(1).await;
    let state = provider.state();
    assert_eq!(state.status.state, SourceState::Live);
    let config = state.config.as_ref().expect("there is an answer");
    assert_eq!(config.clusters.len(), 2);
    let addresses: Vec<_> = config
        .clusters
        .values()
        .flat_map(|c| c.destinations.values())
        .map(|d| &*d.address)
        .collect();
    assert_eq!(addresses.len(), 4);
    assert!(
        addresses.contains(&"https://low131130633641724721:30001/"),
        "{addresses:?}"
    );
    assert_eq!(
        config.routes[0].r#match.hosts.as_deref(),
        Some(&["voting.example".to_owned()][..])
    );
    let problem = state.problems.iter().next().expect("it is said");
    assert!(
        problem
            .pointer
            .ends_with("/YARP.Backend.SessionAffinity.Enabled"),
        "{problem}"
    );

    let seen = gateway.seen();
    let report = seen
        .iter()
        .find(|seen| seen.method == "POST")
        .expect("it is reported");
    let body: Value = serde_json::from_str(&report.body).unwrap();
    assert_eq!(body["HealthState"], "Warning");
    let description = body["Description"].as_str().unwrap_or_default();
    assert!(
        description.contains("YARP.Backend.SessionAffinity.Enabled"),
        "{description}"
    );
    assert!(
        report.target().contains("Immediate=true"),
        "{}",
        report.target()
    );
}

#[tokio::test(start_paused = true)]
async fn one_partition_that_cannot_be_read_at_the_start_takes_no_other_away() {
    let (gateway, changes) = gateway();
    let busy = || error(503, "FABRIC_E_RECONFIGURATION_PENDING");
    changes.lock().push((replicas_of(HIGH), busy()));
    let provider = discovery(&gateway).runner().start();
    seconds(10).await;
    let count = || -> Vec<usize> {
        let state = provider.state();
        let config = state.config.clone().unwrap_or_default();
        config
            .clusters
            .values()
            .map(|cluster| cluster.destinations.len())
            .collect()
    };
    assert_eq!(count(), [2, 0]);
    let report = provider
        .reports()
        .borrow()
        .clone()
        .expect("there was a round");
    assert!(matches!(
        report.services[0].outcome,
        ServiceOutcome::Accepted { .. }
    ));
    changes.lock().clear();
    seconds(15).await;
    assert_eq!(count(), [2, 2]);
}

/// A body that parses but is not a valid response must not remove anything.
#[tokio::test(start_paused = true)]
async fn answers_that_make_no_sense_take_nothing_away() {
    for (path, act) in [
        (
            "/Applications?",
            ok(json!({"ContinuationToken": "", "Items": null})),
        ),
        (
            "/Applications/Voting/$/GetServices",
            ok(json!({"ContinuationToken": "", "Items": null})),
        ),
        ("/Applications/Voting/$/GetServices", text(204, "")),
        (
            "/Applications/Voting/$/GetServices",
            page(json!([{"Id": "x"}]), ""),
        ),
        (
            "/Applications/Voting/$/GetServices",
            page(
                json!([{"Name": "fabric:/Other/A", "TypeName": "VotingDataType"}]),
                "",
            ),
        ),
        (
            "/Services/Voting~Data/$/GetPartitions",
            page(json!([{}]), ""),
        ),
        (
            "/ApplicationTypes/VotingType/$/GetServiceTypes",
            ok(json!([{"ServiceManifestName": "DataPkg"}])),
        ),
        (
            "/ApplicationTypes/VotingType/$/GetServiceTypes",
            text(204, ""),
        ),
        ("/ApplicationTypes?", page(json!([{"Name": null}]), "")),
        (replicas_of(LOW), page(json!([{"ReplicaId": "1"}]), "")),
        (
            replicas_of(LOW),
            page(
                json!([{"ReplicaStatus": "Ready", "Address": "https://liar:1"}]),
                "",
            ),
        ),
        (replicas_of(LOW), text(204, "")),
    ] {
        let (gateway, changes) = gateway();
        let provider = discovery(&gateway).runner().start();
        seconds(1).await;
        let before = provider.state().config.clone().expect("there is an answer");
        changes.lock().push((path, act));
        seconds(60).await;
        let state = provider.state();
        assert_eq!(state.config.as_ref(), Some(&before), "{path}");
        assert_eq!(state.status.state, SourceState::Partial, "{path}");
        changes.lock().clear();
        seconds(60).await;
        assert_eq!(provider.state().status.state, SourceState::Live, "{path}");
    }
}

#[tokio::test(start_paused = true)]
async fn reports_that_are_rejected_are_a_problem_of_the_source() {
    let (gateway, changes) = gateway();
    changes
        .lock()
        .push(("/Services/Voting~Data/$/ReportHealth", text(403, "")));
    let provider = discovery(&gateway).runner().start();
    seconds(12).await;
    let state = provider.state();
    assert_eq!(
        state.status.state,
        SourceState::Live,
        "what is served is up to date"
    );
    let problem = state
        .problems
        .iter()
        .find(|p| p.code == "health_reports_refused");
    assert!(problem.expect("it is said").message.contains("403"));
}

/// Returns the pointers to all values in a document except the document itself.
fn pointers(value: &Value, at: &str, found: &mut Vec<String>) {
    let below: Vec<(String, &Value)> = match value {
        Value::Object(object) => object.iter().map(|(key, one)| (key.clone(), one)).collect(),
        Value::Array(list) => (0..)
            .zip(list)
            .map(|(index, one): (usize, _)| (index.to_string(), one))
            .collect(),
        _ => return,
    };
    for (key, one) in below {
        let pointer = format!("{at}/{}", key.replace('~', "~0").replace('/', "~1"));
        pointers(one, &pointer, found);
        found.push(pointer);
    }
}

/// Returns the document without the value, or with another one in its place.
fn changed(document: &Value, pointer: &str, to: Option<&Value>) -> Value {
    let mut document = document.clone();
    let (parent, key) = pointer.rsplit_once('/').unwrap();
    let key = key.replace("~1", "/").replace("~0", "~");
    match document.pointer_mut(parent).unwrap() {
        Value::Object(object) => match to {
            Some(to) => drop(object.insert(key, to.clone())),
            None => drop(object.remove(&key)),
        },
        Value::Array(list) => match to {
            Some(to) => list[key.parse::<usize>().unwrap()] = to.clone(),
            None => drop(list.remove(key.parse().unwrap())),
        },
        _ => {}
    }
    document
}

/// Every value of every answer is left out, null, or of another type, one at a time. Only values that a gateway could
/// truly mean have an effect.
#[tokio::test(start_paused = true)]
async fn no_value_that_is_missing_or_of_a_wrong_type_takes_a_destination_away() {
    let paths = [
        "/ApplicationTypes?",
        "/Applications?",
        "/ApplicationTypes/VotingType/$/GetServiceTypes",
        "/Applications/Voting/$/GetServices",
        "/Services/Voting~Data/$/GetPartitions",
        replicas_of(LOW),
    ];
    // A gateway may list fewer items, know another status, and have no address of a replica.
    let may_be = |pointer: &str, to: Option<&Value>| {
        let is_item = pointer
            .rsplit('/')
            .next()
            .is_some_and(|last| last.parse::<u8>().is_ok());
        (is_item && to.is_none())
            || (pointer.ends_with("/Address") && to.is_none_or(Value::is_null))
            || (pointer.ends_with("/ReplicaStatus") && to == Some(&json!(17)))
    };
    let mut tried = 0;
    for path in paths {
        let seen = Seen {
            method: "GET".to_owned(),
            uri: format!("{path}?").replace("??", "?"),
            authorization: None,
            content_type: None,
            body: String::new(),
            at: tokio::time::Instant::now(),
        };
        let Act::Answer(answer) = documented(&seen) else {
            panic!("{path}");
        };
        let document: Value = serde_json::from_slice(answer.body()).unwrap();
        let mut all = Vec::new();
        pointers(&document, "", &mut all);
        for pointer in all {
            for to in [
                None,
                Some(json!(null)),
                Some(json!(17)),
                Some(json!({})),
                Some(json!([true])),
            ] {
                let (gateway, changes) = gateway();
                let provider = discovery(&gateway).runner().start();
                seconds(1).await;
                let destinations = || {
                    let config = provider.state().config.clone().unwrap_or_default();
                    let clusters = config.clusters.values();
                    clusters
                        .map(|cluster| cluster.destinations.len())
                        .sum::<usize>()
                };
                assert_eq!(destinations(), 4);
                changes
                    .lock()
                    .push((path, ok(changed(&document, &pointer, to.as_ref()))));
                seconds(45).await;
                let is_true = may_be(&pointer, to.as_ref());
                assert!(is_true || destinations() == 4, "{path} {pointer} {to:?}");
                tried += 1;
            }
        }
    }
    assert!(tried > 300, "{tried}");
}
