//! Nodes of a Service Fabric cluster whose gateway is written here, from the reference of the REST API and not from the
//! emulator of this family: one that misreads the reference would agree with a client that does so, too.
#![cfg(all(feature = "consul", feature = "serf", feature = "servicefabric"))]

use std::sync::Arc;

use http::header::CONTENT_TYPE;
use http::{HeaderValue, Request, Response, StatusCode};
use parking_lot::Mutex;
use serde_json::{Value, json};
use testkit::origin::{Incoming, Origin};
use testkit::peers;
use testkit::time::eventually;

use super::ended;
use super::nodes_from::Files;

const PARTITION: &str = "b2f1c2a4-58f2-4a3e-9f0a-5d2c7e1f0001";

const LABELS: &str = "<Labels xmlns=\"http://schemas.microsoft.com/2015/03/fabact-no-schema\">\
    <Label Key=\"YARP.Enable\">true</Label>\
    <Label Key=\"YARP.Routes.proxy.Hosts\">shop.example</Label></Labels>";

/// The instances of `fabric:/Shop/Proxy`: id, status and address. `None`: the call for them fails.
type Instances = Arc<Mutex<Option<Vec<(&'static str, &'static str, &'static str)>>>>;

fn page(items: &Value) -> (StatusCode, Value) {
    let body = json!({"ContinuationToken": "", "Items": items});
    (StatusCode::OK, body)
}

fn rejection(status: StatusCode, code: &str) -> (StatusCode, Value) {
    (status, json!({"Error": {"Code": code, "Message": code}}))
}

fn answer(path: &str, instances: &Instances) -> (StatusCode, Value) {
    match path {
        "/ApplicationTypes" => page(&json!([{
            "Name": "ShopType", "Version": "1.0.0", "Status": "Available", "StatusDetails": "",
            "ApplicationTypeDefinitionKind": "ServiceFabricApplicationPackage", "DefaultParameterList": []
        }])),
        "/Applications" => page(&json!([{
            "Id": "Shop", "Name": "fabric:/Shop", "TypeName": "ShopType", "TypeVersion": "1.0.0", "Status": "Ready",
            "Parameters": [], "HealthState": "Ok", "ApplicationDefinitionKind": "ServiceFabricApplicationDescription"
        }])),
        "/ApplicationTypes/ShopType/$/GetServiceTypes" => {
            let types = json!([{
                "ServiceManifestName": "ProxyPkg", "ServiceManifestVersion": "1.0.0", "IsServiceGroup": false,
                "ServiceTypeDescription": {
                    "Kind": "Stateless", "IsStateful": false, "ServiceTypeName": "ProxyType", "PlacementConstraints": "",
                    "LoadMetrics": [], "ServicePlacementPolicies": [], "UseImplicitHost": false,
                    "Extensions": [{"Key": "YARP-preview", "Value": LABELS}]
                }
            }]);
            (StatusCode::OK, types)
        }
        "/Applications/Shop/$/GetServices" => page(&json!([{
            "Id": "Shop~Proxy", "ServiceKind": "Stateless", "Name": "fabric:/Shop/Proxy", "TypeName": "ProxyType",
            "ManifestVersion": "1.0.0", "HealthState": "Ok", "ServiceStatus": "Active", "IsServiceGroup": false
        }])),
        "/Services/Shop~Proxy/$/GetPartitions" => page(&json!([{
            "ServiceKind": "Stateless", "InstanceCount": -1, "HealthState": "Ok", "PartitionStatus": "Ready",
            "PartitionInformation": {"ServicePartitionKind": "Singleton", "Id": PARTITION}
        }])),
        path if path == format!("/Partitions/{PARTITION}/$/GetReplicas") => {
            let Some(instances) = &*instances.lock() else {
                let busy = StatusCode::SERVICE_UNAVAILABLE;
                return rejection(busy, "FABRIC_E_RECONFIGURATION_PENDING");
            };
            let shown = instances.iter().map(|(id, status, address)| {
                json!({
                    "ServiceKind": "Stateless", "InstanceId": id, "ReplicaStatus": status, "HealthState": "Ok",
                    "NodeName": format!("_Node_{id}"), "LastInBuildDurationInSeconds": "0",
                    "Address": format!("{{\"Endpoints\":{{\"\":\"http:\\/\\/{address}:30080\\/\"}}}}")
                })
            });
            page(&shown.collect())
        }
        // The health of the whole cluster, which an old gateway does not have.
        _ => rejection(StatusCode::BAD_REQUEST, "E_INVALIDARG"),
    }
}

fn gateway(instances: &Instances) -> Origin {
    let instances = Arc::clone(instances);
    Origin::start(move |request: Request<Incoming>| {
        let (status, body) = answer(request.uri().path(), &instances);
        async move {
            let mut response = Response::new(testkit::body::full(body.to_string()));
            *response.status_mut() = status;
            let json = HeaderValue::from_static("application/json; charset=utf-8");
            response.headers_mut().insert(CONTENT_TYPE, json);
            response
        }
    })
}

#[tokio::test]
async fn instances_are_members_as_the_reference_of_the_api_describes_them() {
    let instances = Instances::default();
    let ready = |id, address| (id, "Ready", address);
    *instances.lock() = Some(vec![
        ready("133000000000000001", "10.40.0.7"),
        ready("133000000000000002", "10.40.0.8"),
        ("133000000000000003", "Down", "10.40.0.9"),
    ]);
    let gateway = gateway(&instances);
    let source = format!(
        "ServiceFabricDiscovery:\n  Gateways: ['{}']\n  DiscoverInsecureHttpDestinations: true\n  DiscoveryPeriod: 1s\n",
        gateway.url()
    );
    let files = Files::new();
    let unknown = files.plan(&source, "fabric:/Shop/Other").await;
    ended(&unknown, 1);
    assert!(
        unknown.stderr.contains("known are fabric:/Shop/Proxy"),
        "{}",
        unknown.stderr
    );
    let mut apply = files.command("apply", &source, "fabric:/Shop/Proxy");
    apply.arg("--watch");
    let mut watching = peers::spawn(apply);
    watching.wait_for_output("shop/web: 20.0.0.1").await;
    let members = |expected: [bool; 4]| {
        ["10.40.0.7", "10.40.0.8", "10.40.0.9", "10.40.0.10"].map(|one| files.has_member(one))
            == expected
    };
    eventually("both are members", async || {
        members([true, true, false, false])
    })
    .await;

    // An instance moves while the instances are unknown; the move is seen once they are known again.
    *instances.lock() = None;
    let seen = gateway.traffic().requests();
    eventually("it is asked in vain", async || {
        gateway.traffic().requests() > seen + 8
    })
    .await;
    assert!(members([true, true, false, false]));
    *instances.lock() = Some(vec![
        ready("133000000000000002", "10.40.0.8"),
        ready("133000000000000004", "10.40.0.10"),
    ]);
    eventually("the pool follows", async || {
        members([false, true, false, true])
    })
    .await;
    watching.terminate();
    assert_eq!(watching.wait().await.code(), Some(0));
}
