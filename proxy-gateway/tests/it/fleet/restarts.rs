//! No request fails, whatever is killed, restarted, registered and deregistered.

use testkit::consul::Consul;

use crate::fleet::consul::{deregister, register};
use crate::fleet::page::file;
use crate::fleet::programs::{ControlPlane, Envoy, Gateway};
use crate::fleet::traffic::{ASKED, Traffic, get, until_answered};

const NODES: [&str; 4] = ["envoy-1", "envoy-2", "gateway-1", "gateway-2"];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_request_fails_while_replicas_and_gateways_are_replaced() {
    let (Some(envoy), Some(plane), Some(consul)) =
        (Envoy::find(), ControlPlane::find(), Consul::find())
    else {
        return;
    };
    let sas = consul.datacenter("sas").start().await;
    let first = register(&sas, "shop-http", "first", &[]).await;
    let _second = register(&sas, "shop-http", "second", &[]).await;
    let _branch = register(&sas, "shop-fix1-http", "branch", &[]).await;
    let _wiki = register(&sas, "wiki", "wiki", &["domain-wiki.example"]).await;

    // The fleet: all gateways know both replicas.
    let folder = tempfile::tempdir().expect("there is room for a folder");
    let registry = folder.path().join("registry.yaml");
    std::fs::write(&registry, file("registry.yaml", &[])).expect("the folder is ours");
    let start = async || ControlPlane::start(&plane, &registry, &sas.url()).await;
    let (one, two) = (start().await, start().await);
    let planes = [one.address, two.address];
    let mut replaced = Gateway::start("gateway-1", planes).await;
    let gateway = Gateway::start("gateway-2", planes).await;
    let envoys = [
        Envoy::start(&envoy, "envoy-1", planes).await,
        Envoy::start(&envoy, "envoy-2", planes).await,
    ];
    let proxies = [
        ("gateway-1", replaced.address),
        ("gateway-2", gateway.address),
        ("envoy-1", envoys[0].address),
        ("envoy-2", envoys[1].address),
    ];
    for (_, proxy) in proxies {
        until_answered(proxy, "shop-fix1-http.example", "branch").await;
        until_answered(proxy, "wiki.example", "wiki").await;
        for (host, branch, may_answer) in ASKED {
            let header = branch.map(|branch| ("x-branch-name", branch));
            let (status, said) = get(proxy, host, header).await.expect("it answers");
            assert_eq!(status, 200, "{proxy} {host}");
            assert!(may_answer.contains(&&*said), "{proxy} {host}: {said}");
        }
    }
    let traffic = proxies.map(|(name, proxy)| Traffic::start(name, proxy));
    for one in &traffic {
        one.until_seen("first").await;
        one.until_seen("second").await;
    }

    // The replica that most of them use is killed; they switch to the other one.
    let (mut killed, mut other) = match one.nodes().await.len() >= 2 {
        true => (one, two),
        false => (two, one),
    };
    assert!(killed.nodes().await.len() >= 2);
    assert_eq!(killed.rejections().await, 0);
    killed.kill().await;
    // An instance joins meanwhile.
    let _third = register(&sas, "shop-http", "third", &[]).await;
    other.until_it_has(&NODES).await;
    for one in &traffic {
        one.until_seen("third").await;
    }

    // One gateway is restarted.
    let before = replaced.id();
    replaced.replace().await;
    assert_ne!(replaced.id(), before);
    other.until_it_has(&NODES).await;
    for one in &traffic {
        one.more(25).await;
    }

    // An instance is deregistered. It ends when it gets no more requests.
    deregister(&sas, &first).await;
    for one in &traffic {
        one.until_unseen("first").await;
    }
    first.origin.stop().await;

    // The killed replica returns, and the other one is stopped as for an upgrade.
    killed.restart().await;
    assert_eq!(other.rejections().await, 0);
    other.stop().await;
    let _fourth = register(&sas, "shop-http", "fourth", &[]).await;
    killed.until_it_has(&NODES).await;
    for one in &traffic {
        one.until_seen("fourth").await;
    }

    assert_eq!(killed.rejections().await, 0);

    // Without any replica nothing changes.
    killed.kill().await;
    for one in traffic {
        one.more(25).await;
        one.end().await;
    }
    for envoy in &envoys {
        for counter in [
            "cluster_manager.cds.update_rejected",
            "listener_manager.lds.update_rejected",
            "http.http.rds.main.update_rejected",
        ] {
            let rejected = envoy.stat(counter).await;
            assert_eq!(rejected, Some(0), "{counter}: {}", envoy.output());
        }
        let taken = envoy.stat("http.http.rds.main.update_success").await;
        assert!(taken > Some(0), "{taken:?}");
    }
}
