//! Gateways behind a load balancer, with restarts.

use testkit::consul::Consul;

use crate::fleet::balancer::Balancer;
use crate::fleet::consul::{deregister, register};
use crate::fleet::page::file;
use crate::fleet::programs::{ControlPlane, Envoy, Gateway};
use crate::fleet::traffic::{Traffic, until_answered};

const NODES: [&str; 3] = ["envoy-1", "gateway-1", "gateway-2"];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_request_fails_while_gateways_end_and_start_again() {
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
    let plane = ControlPlane::start(&plane, &registry, &sas.url()).await;
    let planes = [plane.address; 2];
    let mut gateways = [
        Gateway::start("gateway-1", planes).await,
        Gateway::start("gateway-2", planes).await,
    ];
    for gateway in &gateways {
        until_answered(gateway.address, "shop-fix1-http.example", "branch").await;
        until_answered(gateway.address, "shop-http.example", "first").await;
        until_answered(gateway.address, "wiki.example", "wiki").await;
    }
    let balancer = Balancer::start(&envoy, [&gateways[0], &gateways[1]]).await;
    let traffic = Traffic::start("balancer", balancer.address);
    traffic.until_seen("first").await;
    for gateway in &mut gateways {
        gateway.stop().await;
        traffic.more(25).await;
        gateway.restart().await;
        balancer.until_all_are_asked().await;
        traffic.more(25).await;
    }
    traffic.end().await;
}

/// A kept configuration is older than that of the others, and the only one if there are no others.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_kept_serves_only_where_nobody_knows_better() {
    let (Some(envoy), Some(plane), Some(consul)) =
        (Envoy::find(), ControlPlane::find(), Consul::find())
    else {
        return;
    };
    let mut sas = consul.datacenter("sas").start().await;
    let first = register(&sas, "shop-http", "first", &[]).await;
    let _second = register(&sas, "shop-http", "second", &[]).await;
    let _branch = register(&sas, "shop-fix1-http", "branch", &[]).await;
    let _wiki = register(&sas, "wiki", "wiki", &["domain-wiki.example"]).await;
    let folder = tempfile::tempdir().expect("there is room for a folder");
    let registry = folder.path().join("registry.yaml");
    std::fs::write(&registry, file("registry.yaml", &[])).expect("the folder is ours");
    let start = async || {
        let patience = "persistAfter: 4s\n";
        ControlPlane::start_with(&plane, &registry, &sas.url(), patience).await
    };
    let (mut one, mut two) = (start().await, start().await);
    let planes = [one.address, two.address];
    let mut gateways = [
        Gateway::start("gateway-1", planes).await,
        Gateway::start("gateway-2", planes).await,
    ];
    let proxy = Envoy::start(&envoy, "envoy-1", planes).await;
    for address in [gateways[0].address, gateways[1].address, proxy.address] {
        until_answered(address, "shop-fix1-http.example", "branch").await;
        until_answered(address, "shop-http.example", "first").await;
        until_answered(address, "wiki.example", "wiki").await;
    }
    let balancer = Balancer::start(&envoy, [&gateways[0], &gateways[1]]).await;
    let traffic = [
        Traffic::start("balancer", balancer.address),
        Traffic::start("envoy-1", proxy.address),
    ];
    for one in &traffic {
        one.until_seen("first").await;
    }

    // A stopped replica keeps its resources on disk. Meanwhile an instance ends, so that a client of the kept
    // resources would fail requests.
    one.stop().await;
    two.until_it_has(&NODES).await;
    deregister(&sas, &first).await;
    for one in &traffic {
        one.until_unseen("first").await;
    }
    first.origin.stop().await;
    one.restart().await;
    assert!(!one.serves_kept().await);
    two.stop().await;
    one.until_it_has(&NODES).await;
    for one in &traffic {
        one.more(100).await;
    }

    // Without any replica each gateway restarts with its kept configuration, and serves all requests while
    // the other restarts.
    one.stop().await;
    for gateway in &mut gateways {
        gateway.stop().await;
        traffic[0].more(25).await;
        gateway.restart().await;
        balancer.until_all_are_asked().await;
    }

    // A replica that starts without Consul serves its kept resources, once the wait is over.
    sas.kill().await;
    one.restart().await;
    assert!(one.serves_kept().await);
    one.until_it_has(&NODES).await;
    for one in traffic {
        one.more(100).await;
        one.end().await;
    }
    assert_eq!(one.rejections().await, 0);
}
