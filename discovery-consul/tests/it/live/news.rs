//! Tests that changes in real datacenters are published.

use discovery_consul::client::{HealthStatus, ServiceDefinition};
use testkit::consul::Consul;

use crate::live::support::{Published, client_of, destinations_of, served, waiting_for_news};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn flips_ports_tags_and_bare_instances_are_followed() {
    let Some(consul) = Consul::find() else { return };
    let sas = consul.datacenter("sas").start().await;
    let client = client_of(&sas);
    client
        .register(&served("web", "web-1", 8001))
        .await
        .unwrap();
    client
        .register(&served("web", "web-2", 8002))
        .await
        .unwrap();
    let published = Published::start(waiting_for_news(&sas));
    let both = [("sas/sas-1/web-1", 8001, 0), ("sas/sas-1/web-2", 8002, 0)];
    published.service("web", &both).await;

    client
        .update_check("web-1", HealthStatus::Critical, "")
        .await
        .unwrap();
    published.service("web", &both[1..]).await;
    client
        .update_check("web-1", HealthStatus::Passing, "")
        .await
        .unwrap();
    published.service("web", &both).await;

    client
        .register(&served("web", "web-2", 8012))
        .await
        .unwrap();
    let moved = [("sas/sas-1/web-1", 8001, 0), ("sas/sas-1/web-2", 8012, 0)];
    published.service("web", &moved).await;

    // Only the list of services shows a service without a check.
    let bare = ServiceDefinition::new("web", 8003).with_id("web-3");
    client.register(&bare).await.unwrap();
    let three = [moved[0], moved[1], ("sas/sas-1/web-3", 8003, 0)];
    published.service("web", &three).await;
    client.deregister("web-3").await.unwrap();
    published.service("web", &moved).await;

    // A service that opts in, and one that is removed.
    client
        .register(&ServiceDefinition::new("late", 8004))
        .await
        .unwrap();
    client
        .register(&ServiceDefinition::new("late", 8004).with_tag("proxy.enable"))
        .await
        .unwrap();
    published
        .service("late", &[("sas/sas-1/late", 8004, 0)])
        .await;
    client.deregister("late").await.unwrap();
    published
        .when("it is gone", |state| {
            destinations_of(state, "late").is_none()
        })
        .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_datacenters_are_one_service_with_two_tiers() {
    let Some(consul) = Consul::find() else { return };
    let sas = consul.datacenter("sas").start().await;
    let vla = consul.datacenter("vla").join(&sas).start().await;
    sas.wait_for_datacenter("vla").await;
    let (here, there) = (client_of(&sas), client_of(&vla));
    here.register(&served("web", "web", 8001)).await.unwrap();
    there.register(&served("web", "web", 8002)).await.unwrap();
    let published = Published::start(waiting_for_news(&sas));
    let both = [("sas/sas-1/web", 8001, 0), ("vla/vla-1/web", 8002, 1)];
    published.service("web", &both).await;
    let seen_from_there = Published::start(waiting_for_news(&vla));
    let turned = [("sas/sas-1/web", 8001, 1), ("vla/vla-1/web", 8002, 0)];
    seen_from_there.service("web", &turned).await;

    there
        .update_check("web", HealthStatus::Critical, "")
        .await
        .unwrap();
    published.service("web", &both[..1]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_services_are_found_within_the_limit_of_connections() {
    let Some(consul) = Consul::find() else { return };
    let sas = consul.datacenter("sas").start().await;
    // More than an agent takes as connections, had each service one of its own.
    for nth in 0..300 {
        let body = format!(
            r#"{{"Node": "node-{nth}", "Address": "10.0.0.1",
                "Service": {{"Service": "s{nth}", "Port": 80, "Tags": ["proxy.enable=true"]}}}}"#
        );
        sas.call("PUT", "/v1/catalog/register", &body).await.json();
    }
    let published = Published::start(waiting_for_news(&sas));
    let state = published
        .when("all", |state| {
            state
                .config
                .as_ref()
                .is_some_and(|config| config.clusters.len() == 300)
        })
        .await;
    assert!(state.problems.is_empty(), "{:?}", state.problems);
}
