//! Agents that die, forget, and hang.

use discovery_consul::client::HealthStatus;
use discovery_consul::watch::ShrinkGuard;
use discovery_core::SourceState;
use testkit::consul::Consul;

use crate::live::support::{NEVER, Published, client_of, options, served, watch};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_datacenter_that_dies_keeps_its_destinations_and_the_own_one_goes_on() {
    let Some(consul) = Consul::find() else { return };
    let sas = consul.datacenter("sas").start().await;
    let mut vla = consul.datacenter("vla").join(&sas).start().await;
    sas.wait_for_datacenter("vla").await;
    let (here, there) = (client_of(&sas), client_of(&vla));
    here.register(&served("web", "web", 8001)).await.unwrap();
    there.register(&served("web", "web", 8002)).await.unwrap();
    let published = Published::start(options(&sas));
    let both = [("sas/sas-1/web", 8001, 0), ("vla/vla-1/web", 8002, 1)];
    published.service("web", &both).await;

    vla.kill().await;
    published.problem("datacenter_failing", true).await;
    published.service("web", &both).await;
    here.update_check("web", HealthStatus::Critical, "")
        .await
        .unwrap();
    published.service("web", &both[1..]).await;

    // It is back with nothing in its memory, and with a younger history.
    vla.restart().await;
    sas.wait_for_datacenter("vla").await;
    there.register(&served("web", "web", 8003)).await.unwrap();
    published
        .service("web", &[("vla/vla-1/web", 8003, 1)])
        .await;
    published.problem("datacenter_failing", false).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_that_is_started_again_takes_nothing_away_until_services_are_back() {
    let Some(consul) = Consul::find() else { return };
    let mut sas = consul.datacenter("sas").start().await;
    let client = client_of(&sas);
    // A long history, so that the next one is behind it.
    for nth in 0..40_u16 {
        client.kv_put("history", nth.to_string()).await.unwrap();
    }
    let ids = ["web-1", "web-2", "web-3"];
    for (nth, id) in (1..).zip(ids) {
        client
            .register(&served("web", id, 8000 + nth))
            .await
            .unwrap();
    }
    // As long as it takes on a busy machine until all are back.
    let shrink = ShrinkGuard::default().with_settle(NEVER);
    let published = Published::start(options(&sas).with_watch(watch().with_shrink(shrink)));
    let all = [
        ("sas/sas-1/web-1", 8001, 0),
        ("sas/sas-1/web-2", 8002, 0),
        ("sas/sas-1/web-3", 8003, 0),
    ];
    published.service("web", &all).await;
    let changes = published.state().status.changes;

    sas.restart().await;
    published.problem("removal_held", true).await;
    published.service("web", &all).await;
    for (nth, id) in (1..).zip(ids) {
        client
            .register(&served("web", id, 8000 + nth))
            .await
            .unwrap();
    }
    published.problem("removal_held", false).await;
    published.service("web", &all).await;
    assert_eq!(
        published.state().status.changes,
        changes,
        "nobody has noticed"
    );

    // And the watch works on the new history.
    client
        .update_check("web-2", HealthStatus::Critical, "")
        .await
        .unwrap();
    published.service("web", &[all[0], all[2]]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_an_agent_has_forgotten_for_good_goes_after_a_while() {
    let Some(consul) = Consul::find() else { return };
    let mut sas = consul.datacenter("sas").start().await;
    let client = client_of(&sas);
    for nth in 1..4_u16 {
        client
            .register(&served("web", &format!("web-{nth}"), 8000 + nth))
            .await
            .unwrap();
    }
    let published = Published::start(options(&sas));
    published
        .when("all", |state| {
            crate::live::support::destinations_of(state, "web").is_some_and(|all| all.len() == 3)
        })
        .await;
    sas.restart().await;
    client
        .register(&served("web", "web-9", 8009))
        .await
        .unwrap();
    published
        .service("web", &[("sas/sas-1/web-9", 8009, 0)])
        .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_that_hangs_is_noticed_and_followed_when_it_goes_on() {
    let Some(consul) = Consul::find() else { return };
    let sas = consul.datacenter("sas").start().await;
    let client = client_of(&sas);
    client
        .register(&served("web", "web-1", 8001))
        .await
        .unwrap();
    let published = Published::start(options(&sas));
    published
        .service("web", &[("sas/sas-1/web-1", 8001, 0)])
        .await;
    sas.suspend();
    published.is(SourceState::Failing).await;
    published
        .service("web", &[("sas/sas-1/web-1", 8001, 0)])
        .await;
    sas.resume();
    client
        .register(&served("web", "web-2", 8002))
        .await
        .unwrap();
    let both = [("sas/sas-1/web-1", 8001, 0), ("sas/sas-1/web-2", 8002, 0)];
    published.service("web", &both).await;
    published.is(SourceState::Live).await;
}
