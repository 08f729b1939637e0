//! Tests that changes in a cluster are published because of the event, not of the timer.

use testkit::serf::Serf;

use crate::live::support::{Published, announcing, options, url};

#[tokio::test]
async fn joins_tags_and_leaves_are_published_by_their_events() {
    let Some(serf) = Serf::find() else { return };
    let gateway = serf.agent("gateway").start().await;
    let first = announcing(serf.agent("orders-1"), "orders", 5001);
    let first = first.join(&gateway).start().await;
    gateway.wait_for("orders-1", "alive").await;
    let published = Published::start(options(&[&gateway]));
    let first_url = url(&first, 5001);
    let one = ("orders-5001", first_url.as_str());
    published.service("orders", Some(&[one])).await;

    let second = announcing(serf.agent("orders-2"), "orders", 5002);
    let mut second = second.join(&gateway).start().await;
    let two = url(&second, 5002);
    let two = ("orders-5002", two.as_str());
    published.service("orders", Some(&[one, two])).await;

    second.set_tag("http-port", "5003").await;
    let moved = url(&second, 5003);
    let moved = ("orders-5002", moved.as_str());
    published.service("orders", Some(&[one, moved])).await;

    second.leave().await;
    published.service("orders", Some(&[one])).await;

    first.delete_tag("service").await;
    published.service("orders", None).await;
}

#[tokio::test]
async fn a_crash_is_published_by_its_event() {
    let Some(serf) = Serf::find() else { return };
    let gateway = serf.agent("gateway").start().await;
    let orders = announcing(serf.agent("orders-1"), "orders", 5001);
    let _orders = orders.join(&gateway).start().await;
    let payments = announcing(serf.agent("payments-1"), "payments", 6001);
    let mut payments = payments.join(&gateway).start().await;
    for name in ["orders-1", "payments-1"] {
        gateway.wait_for(name, "alive").await;
    }
    let published = Published::start(options(&[&gateway]));
    let both = published
        .when("both services", |state| {
            let config = state.config.as_ref();
            config.is_some_and(|config| config.clusters.len() == 2)
        })
        .await;

    payments.kill().await;
    // The cluster takes its own time to detect a crash. The source only promises to follow its event.
    gateway.wait_for("payments-1", "failed").await;
    published.service("payments", None).await;
    let orders =
        |state: &discovery_core::ProviderState| state.config.as_ref().unwrap().clusters[0].clone();
    assert_eq!(orders(&published.state()), orders(&both));

    payments.restart().await;
    let address = url(&payments, 6001);
    published
        .service("payments", Some(&[("payments-6001", &address)]))
        .await;
    assert_eq!(published.state().config, both.config);
}

#[tokio::test]
async fn an_event_that_changes_nothing_publishes_nothing() {
    let Some(serf) = Serf::find() else { return };
    let gateway = serf.agent("gateway").start().await;
    let orders = announcing(serf.agent("orders-1"), "orders", 5001);
    let orders = orders.join(&gateway).start().await;
    gateway.wait_for("orders-1", "alive").await;
    let published = Published::start(options(&[&gateway]));
    let address = url(&orders, 5001);
    published
        .service("orders", Some(&[("orders-5001", &address)]))
        .await;
    let changes = published.changes();

    // The agents gossip this and report it in an event, and again with each later event of any node.
    orders.set_tag("http-port", "5001").await;
    published.next_cycle().await;
    assert_eq!(published.changes(), changes);
}
