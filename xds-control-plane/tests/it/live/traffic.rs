use testkit::time::{eventually, guarded};

use super::fleet::{ControlPlane, Datacenters2, Envoy, SUFFIX, check, instance, register};

const REGISTRY: &str = "
services:
- name: shop
  provides: [{name: http}]
  branches:
  - {name: fix1, canary_percent: 20}
";

/// Cases R07, R08, R12, R13, R14, R19 and R34, with requests.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_go_where_the_registry_says() {
    let Some(envoy) = Envoy::find() else { return };
    let Some(consul) = Datacenters2::start().await else {
        return;
    };
    let _main = instance(&consul.sas, "shop-http", "main", &[]).await;
    let _branch = instance(&consul.sas, "shop-fix1-http", "branch", &[]).await;
    let plane = ControlPlane::start(&consul.sas, REGISTRY).await;
    let envoy = Envoy::start(&envoy, plane.address).await;
    let shop = format!("shop-http.{SUFFIX}");
    let branch = format!("shop-fix1-http.{SUFFIX}");
    envoy.until(&branch, (200, "branch")).await;
    assert_eq!(
        envoy.get(&format!("{branch}:80"), None).await,
        (200, "branch".to_owned())
    );
    assert_eq!(envoy.get("nobody.example", None).await.0, 404);

    for (header, value, expected) in [
        ("x-branch-name", "fix1", "branch"),
        ("x-branch-name", "FIX1", "branch"),
        ("x-sticky-uid", "1", "main"),
        ("x-sticky-uid", "yes", "main"),
        ("x-sticky-uid", "Yes", "main"),
        ("x-sticky-uid", "true", "main"),
        ("x-sticky-uid", "True", "main"),
    ] {
        for _ in 0..10 {
            let answer = envoy.get(&shop, Some((header, value))).await;
            assert_eq!(answer, (200, expected.to_owned()), "{header}: {value}");
        }
    }

    // A fifth of everybody else. Of 500, 100 are expected, with a standard deviation of 9.
    let mut shares = [0_u32; 3];
    for (share, header) in shares.iter_mut().zip([
        None,
        Some(("x-branch-name", "fix12")),
        Some(("x-sticky-uid", "YES")),
    ]) {
        for _ in 0..500 {
            let (status, name) = envoy.get(&shop, header).await;
            assert_eq!(status, 200);
            *share += u32::from(name == "branch");
        }
    }
    for share in shares {
        assert!((40..=160).contains(&share), "{shares:?}");
    }
    assert_eq!(envoy.stat("cluster_manager.cds.update_rejected").await, 0);
    assert_eq!(envoy.stat("http.front.rds.main.update_rejected").await, 0);
}

/// Cases E04, K01, K04 and K16: seen in the responses of Envoy.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_happens_in_consul_happens_to_requests() {
    let Some(envoy) = Envoy::find() else { return };
    let Some(mut consul) = Datacenters2::start().await else {
        return;
    };
    let near = instance(&consul.sas, "shop-http", "near", &[]).await;
    let _far = instance(&consul.vla, "shop-http", "far", &[]).await;
    let legacy = instance(&consul.sas, "legacy", "legacy", &[]).await;
    let only_far = instance(&consul.vla, "only-far", "only-far", &["domain-far.example"]).await;
    let registry = "services: [{name: shop, provides: [{name: http}]}]";
    let plane = ControlPlane::start(&consul.sas, registry).await;
    let envoy = Envoy::start(&envoy, plane.address).await;
    let shop = format!("shop-http.{SUFFIX}");
    envoy.until(&shop, (200, "near")).await;
    envoy.until("far.example", (200, "only-far")).await;
    let answers = |domain: &'static str, expected: &'static str| {
        let envoy = &envoy;
        move || async move { envoy.get(domain, None).await == (200, expected.to_owned()) }
    };

    // The own datacenter has no instance left: the others get the requests.
    check(&consul.sas, &near, "fail").await;
    let domain: &'static str = shop.clone().leak();
    eventually("an instance turns critical", answers(domain, "far")).await;
    check(&consul.sas, &near, "pass").await;
    eventually("it passes again", answers(domain, "near")).await;

    // A tag makes a host.
    assert_eq!(envoy.get("legacy.example", None).await.0, 404);
    register(&consul.sas, "legacy", &legacy, &["domain-legacy.example"]).await;
    eventually("a tag is added", answers("legacy.example", "legacy")).await;

    // The other datacenter dies: what was known of it stays, and changes here flow.
    consul.vla.kill().await;
    let mut status = plane.pipeline.status();
    let is_told = status.wait_for(|status| {
        status.sources.iter().any(|source| {
            source
                .problems
                .iter()
                .any(|problem| problem.starts_with("vla"))
        })
    });
    guarded("the other datacenter to be told", is_told)
        .await
        .unwrap();
    assert_eq!(
        envoy.get("far.example", None).await,
        (200, "only-far".to_owned())
    );
    let late = instance(&consul.sas, "late", "late", &["domain-late.example"]).await;
    eventually(
        "a service is added meanwhile",
        answers("late.example", "late"),
    )
    .await;
    assert_eq!(envoy.stat("cluster_manager.cds.update_rejected").await, 0);
    drop((only_far, late));
}

/// Case C15: a removed service responds with 404 and never with 503, and an added one with 200 or 404.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn services_come_and_go_without_a_503() {
    let Some(envoy) = Envoy::find() else { return };
    let Some(consul) = Datacenters2::start().await else {
        return;
    };
    let _shop = instance(&consul.sas, "shop-http", "shop", &[]).await;
    let _cart = instance(&consul.sas, "cart-http", "cart", &[]).await;
    let both = "services: [{name: shop, provides: [{name: http}]}, {name: cart, provides: [{name: http}]}]";
    let one = "services: [{name: shop, provides: [{name: http}]}]";
    let plane = ControlPlane::start(&consul.sas, both).await;
    let envoy = Envoy::start(&envoy, plane.address).await;
    let (shop, cart) = (format!("shop-http.{SUFFIX}"), format!("cart-http.{SUFFIX}"));
    envoy.until(&shop, (200, "shop")).await;
    envoy.until(&cart, (200, "cart")).await;
    for (registry, expected) in [(one, 404), (both, 200), (one, 404)] {
        plane.registry(registry);
        let reached = async {
            loop {
                let (status, _) = envoy.get(&cart, None).await;
                assert!(status == 200 || status == 404, "{status}");
                assert_eq!(envoy.get(&shop, None).await.0, 200);
                if status == expected {
                    break;
                }
            }
        };
        guarded(format!("a status of {expected}"), reached).await;
    }
    assert!(plane.snapshots().borrow().is_some());
}

/// A canary loses its share before its last endpoint, so that no request goes to a missing endpoint.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_canary_goes_without_a_503() {
    let Some(envoy) = Envoy::find() else { return };
    let Some(consul) = Datacenters2::start().await else {
        return;
    };
    let _main = instance(&consul.sas, "shop-http", "main", &[]).await;
    let canary = instance(&consul.sas, "shop-fix1-http", "canary", &[]).await;
    let registry = REGISTRY.replace("20", "50");
    let plane = ControlPlane::start(&consul.sas, &registry).await;
    let envoy = Envoy::start(&envoy, plane.address).await;
    let (shop, branch) = (
        format!("shop-http.{SUFFIX}"),
        format!("shop-fix1-http.{SUFFIX}"),
    );
    envoy.until(&branch, (200, "canary")).await;
    envoy.until(&shop, (200, "canary")).await;
    check(&consul.sas, &canary, "fail").await;
    let mut requests = 0;
    let gone = async {
        // Requests for the canary itself fail, since it has no instance.
        while envoy.get(&branch, None).await.0 != 503 {
            for _ in 0..5 {
                let (status, text) = envoy.get(&shop, None).await;
                assert_eq!(status, 200, "{text} after {requests} requests");
                requests += 1;
            }
        }
    };
    guarded("the canary to go", gone).await;
    assert!(requests > 0, "it goes after a time without a share");
    for _ in 0..20 {
        assert_eq!(envoy.get(&shop, None).await, (200, "main".to_owned()));
    }
}
