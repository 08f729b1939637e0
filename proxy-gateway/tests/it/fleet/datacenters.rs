//! The loss of a whole datacenter: its Consul, and its instances.

use testkit::consul::Consul;
use testkit::time::eventually;

use crate::fleet::consul::{deregister, register};
use crate::fleet::page::file;
use crate::fleet::programs::{ControlPlane, Envoy, Gateway};
use crate::fleet::traffic::{get, until_answered};

const SHOP: &str = "shop-http.example";

/// The control plane survives the loss of its Consul. Its priorities let an Envoy fail over to the other
/// datacenter by itself: it checks the endpoints, without any notification.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_instances_of_the_other_one_take_the_requests() {
    let (Some(envoy), Some(plane), Some(consul)) =
        (Envoy::find(), ControlPlane::find(), Consul::find())
    else {
        return;
    };
    let mut sas = consul.datacenter("sas").start().await;
    let vla = consul.datacenter("vla").join(&sas).start().await;
    sas.wait_for_datacenter("vla").await;
    let early = register(&sas, "shop-http", "early", &[]).await;
    let folder = tempfile::tempdir().expect("there is room for a folder");
    let registry = folder.path().join("registry.yaml");
    std::fs::write(&registry, file("registry.yaml", &[])).expect("the folder is ours");
    let plane = ControlPlane::start(&plane, &registry, &sas.url()).await;
    let planes = [plane.address; 2];
    let envoy = Envoy::start(&envoy, "envoy-1", planes).await;
    until_answered(envoy.address, SHOP, "early").await;

    // Endpoints of a cluster that never had a request are checked once a minute (`no_traffic_interval`). This
    // one has had some, so new ones are checked at the normal interval.
    let near = register(&sas, "shop-http", "near", &[]).await;
    let _far = register(&vla, "shop-http", "far", &[]).await;
    let known = "cluster\\.shop-http\\.membership_total";
    let healthy = "cluster\\.shop-http\\.membership_healthy";
    let are = async |count| {
        (envoy.stat(known).await, envoy.stat(healthy).await) == (Some(count), Some(count))
    };
    eventually("all are known and well", async || are(3).await).await;
    deregister(&sas, &early).await;
    eventually("two are left", async || are(2).await).await;
    for _ in 0..20 {
        let answer = get(envoy.address, SHOP, None).await;
        assert_eq!(answer, Some((200, "near".to_owned())));
    }

    sas.kill().await;
    near.origin.stop().await;
    until_answered(envoy.address, SHOP, "far").await;
    for _ in 0..20 {
        let answer = get(envoy.address, SHOP, None).await;
        assert_eq!(answer, Some((200, "far".to_owned())));
    }
    // No endpoint was removed: the last known state of the lost datacenter stays.
    assert_eq!(
        envoy.stat("cluster\\.shop-http\\.membership_total").await,
        Some(2)
    );
    // A proxy that starts now is served from it as well.
    let late = Gateway::start("gateway-1", planes).await;
    until_answered(late.address, SHOP, "far").await;
}
