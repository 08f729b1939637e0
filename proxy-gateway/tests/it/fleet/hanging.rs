//! A hung replica of the control plane, which neither responds nor ends.

use testkit::consul::Consul;

use crate::fleet::consul::register;
use crate::fleet::page::file;
use crate::fleet::programs::{ControlPlane, Envoy, Gateway};
use crate::fleet::traffic::{Traffic, until_answered};

const NODES: [&str; 2] = ["envoy-1", "gateway-1"];

/// The connections of a hung replica stay open, and the kernel accepts new ones for it: only pings reveal it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_replica_that_hangs_is_left_and_no_request_fails() {
    let (Some(envoy), Some(plane), Some(consul)) =
        (Envoy::find(), ControlPlane::find(), Consul::find())
    else {
        return;
    };
    let sas = consul.datacenter("sas").start().await;
    let _first = register(&sas, "shop-http", "first", &[]).await;
    let _branch = register(&sas, "shop-fix1-http", "branch", &[]).await;
    let _wiki = register(&sas, "wiki", "wiki", &["domain-wiki.example"]).await;
    let folder = tempfile::tempdir().expect("there is room for a folder");
    let registry = folder.path().join("registry.yaml");
    std::fs::write(&registry, file("registry.yaml", &[])).expect("the folder is ours");
    let start = async || ControlPlane::start(&plane, &registry, &sas.url()).await;
    let (hanging, mut other) = (start().await, start().await);
    let planes = [hanging.address, other.address];

    // All of them connect to the replica that is going to hang.
    other.stop().await;
    let gateway = Gateway::start("gateway-1", planes).await;
    let envoy = Envoy::start(&envoy, "envoy-1", planes).await;
    let proxies = [("gateway-1", gateway.address), ("envoy-1", envoy.address)];
    for (_, proxy) in proxies {
        until_answered(proxy, "shop-fix1-http.example", "branch").await;
        until_answered(proxy, "shop-http.example", "first").await;
        until_answered(proxy, "wiki.example", "wiki").await;
    }
    hanging.until_it_has(&NODES).await;
    other.restart().await;
    let traffic = proxies.map(|(name, proxy)| Traffic::start(name, proxy));
    for one in &traffic {
        one.until_seen("first").await;
    }

    hanging.suspend();
    let _second = register(&sas, "shop-http", "second", &[]).await;
    other.until_it_has(&NODES).await;
    for one in &traffic {
        one.until_seen("second").await;
    }

    // It resumes without clients, and notices the changes.
    hanging.resume();
    hanging.until_it_has(&[]).await;
    other.stop().await;
    let _third = register(&sas, "shop-http", "third", &[]).await;
    hanging.until_it_has(&NODES).await;
    for one in traffic {
        one.until_seen("third").await;
        one.more(25).await;
        one.end().await;
    }
    assert_eq!(hanging.rejections().await, 0);
}
