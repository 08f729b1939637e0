//! Placement constraints of services that are created and updated by calls.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use servicefabric_emulator::gateway::Emulator;
use servicefabric_emulator::topology::Topology;

use super::{Gateway, SETTLED, text};

const TWO_TYPES: &str = r#"
    [cluster]
    nodes = [
        { node_type = "A" }, { node_type = "A" }, { node_type = "A" },
        { node_type = "B" }, { node_type = "B" }, { node_type = "B" },
    ]

    [[application_types]]
    name = "ShopType"
    service_types.WebType = {}
    service_types.CartType = { kind = "stateful", persisted = true }

    [applications.Shop]
    type = "ShopType"
"#;

async fn gateway() -> Gateway {
    let topology = Topology::from_toml(TWO_TYPES).expect("it describes a cluster");
    let builder = Emulator::builder(topology).listen("127.0.0.1:0");
    Gateway::of(builder.manual_time()).await
}

/// Returns the description of a service.
fn service(kind: &str, name: &str, constraints: Option<&str>) -> Value {
    let mut service = json!({
        "ServiceName": format!("fabric:/Shop/{name}"), "ServiceKind": kind,
        "PartitionDescription": {"PartitionScheme": "Singleton"},
    });
    let more = match kind {
        "Stateless" => json!({"ServiceTypeName": "WebType", "InstanceCount": 3}),
        _ => json!({
            "ServiceTypeName": "CartType", "TargetReplicaSetSize": 3, "MinReplicaSetSize": 2,
            "HasPersistedState": true,
        }),
    };
    let fields = more.as_object().expect("it is an object").clone();
    service
        .as_object_mut()
        .expect("it is an object")
        .extend(fields);
    if let Some(constraints) = constraints {
        service["PlacementConstraints"] = json!(constraints);
    }
    service
}

/// Returns the types of the nodes that have ready replicas of a service, and the number of replicas.
async fn node_types(gateway: &Gateway, name: &str) -> (BTreeSet<String>, usize) {
    gateway.emulator.advance(SETTLED);
    let partition = gateway.partition(&format!("Shop~{name}")).await;
    let replicas = gateway
        .items(&format!("/Partitions/{partition}/$/GetReplicas"))
        .await;
    let ready: Vec<_> = replicas
        .iter()
        .filter(|replica| replica["ReplicaStatus"] == "Ready")
        .collect();
    let mut types = BTreeSet::new();
    for replica in &ready {
        let node = text(&replica["NodeName"]);
        let node = gateway.get(&format!("/Nodes/{node}")).await;
        types.insert(text(&node.json["Type"]));
    }
    (types, ready.len())
}

fn only(name: &str, count: usize) -> (BTreeSet<String>, usize) {
    ([name.to_owned()].into(), count)
}

const CREATE: &str = "/Applications/Shop/$/GetServices/$/Create";

#[tokio::test]
async fn constraints_of_a_created_service_are_honoured_and_shown() {
    let gateway = gateway().await;
    for (kind, name) in [("Stateless", "Web"), ("Stateful", "Cart")] {
        let body = service(kind, name, Some("NodeType == B"));
        gateway.post(CREATE, body).await.expect_empty(202);
        assert_eq!(node_types(&gateway, name).await, only("B", 3), "{name}");
        let path = format!("/Services/Shop~{name}/$/GetDescription");
        let shown = gateway.get(&path).await;
        assert_eq!(shown.json["PlacementConstraints"], "NodeType == B");
    }
    // An empty text is no constraint, as from clients that always send the member.
    let body = service("Stateless", "Free", Some(""));
    gateway.post(CREATE, body).await.expect_empty(202);
    assert_eq!(node_types(&gateway, "Free").await.1, 3);
}

#[tokio::test]
async fn constraints_of_an_update_move_what_they_forbid() {
    let gateway = gateway().await;
    for (kind, name) in [("Stateless", "Web"), ("Stateful", "Cart")] {
        let body = service(kind, name, Some("NodeType == A"));
        gateway.post(CREATE, body).await.expect_empty(202);
        assert_eq!(node_types(&gateway, name).await, only("A", 3), "{name}");
        let update = format!("/Services/Shop~{name}/$/Update");
        let with = |constraints: &str| {
            json!({
                "ServiceKind": kind, "Flags": "32", "PlacementConstraints": constraints,
            })
        };
        gateway
            .post(&update, with("NodeType == B"))
            .await
            .expect_empty(200);
        assert_eq!(node_types(&gateway, name).await, only("B", 3), "{name}");
        let path = format!("/Services/Shop~{name}/$/GetDescription");
        let shown = gateway.get(&path).await;
        assert_eq!(shown.json["PlacementConstraints"], "NodeType == B");
        // What cannot be read changes nothing, and says why.
        for bad in ["(", "NodeType ==", "NodeType = B"] {
            let reply = gateway.post(&update, with(bad)).await;
            reply.expect_error(400, "E_INVALIDARG");
            let shown = gateway.get(&path).await;
            assert_eq!(shown.json["PlacementConstraints"], "NodeType == B", "{bad}");
        }
        // An update of something else keeps them.
        let other = json!({"ServiceKind": kind, "Flags": "0"});
        gateway.post(&update, other).await.expect_empty(200);
        assert_eq!(node_types(&gateway, name).await, only("B", 3), "{name}");
    }
}

#[tokio::test]
async fn constraints_that_cannot_be_read_create_nothing() {
    let gateway = gateway().await;
    for bad in ["(", "NodeType ==", "NodeType = B"] {
        let body = service("Stateless", "Web", Some(bad));
        let reply = gateway.post(CREATE, body).await;
        reply.expect_error(400, "E_INVALIDARG");
        let path = "/Applications/Shop/$/GetServices/Shop~Web";
        gateway.get(path).await.expect_empty(204);
    }
}
