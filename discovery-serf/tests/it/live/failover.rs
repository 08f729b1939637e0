//! Tests of agents that stop responding, with others beside them.

use std::time::Duration;

use discovery_core::SourceState;
use testkit::serf::Serf;
use testkit::time::eventually;

use crate::live::support::{Published, announcing, options, url};

#[tokio::test]
async fn another_agent_is_asked_when_the_first_is_gone() {
    let Some(serf) = Serf::find() else { return };
    let mut first = serf.agent("gateway-1").start().await;
    let second = serf.agent("gateway-2").join(&first).start().await;
    let orders = announcing(serf.agent("orders-1"), "orders", 5001);
    let orders = orders.join(&first).start().await;
    for gateway in [&first, &second] {
        gateway.wait_for("orders-1", "alive").await;
    }
    let published = Published::start(options(&[&first, &second]));
    let address = url(&orders, 5001);
    published
        .service("orders", Some(&[("orders-5001", &address)]))
        .await;
    assert_eq!(agent_of(&published), first.rpc_addr().to_string());
    let before = published.state();

    first.kill().await;
    let other = second.rpc_addr().to_string();
    // Nothing that is published changes, so nothing signals it.
    eventually("the other agent is asked", || async {
        agent_of(&published) == other
    })
    .await;
    assert_eq!(published.state().status.state, SourceState::Live);
    assert_eq!(published.state().config, before.config);
    assert_eq!(published.changes(), before.status.changes);

    orders.set_tag("http-port", "5002").await;
    let moved = url(&orders, 5002);
    published
        .service("orders", Some(&[("orders-5001", &moved)]))
        .await;
}

#[tokio::test]
async fn an_agent_that_hangs_is_left_for_another() {
    let Some(serf) = Serf::find() else { return };
    let first = serf.agent("gateway-1").start().await;
    let second = serf.agent("gateway-2").join(&first).start().await;
    let orders = announcing(serf.agent("orders-1"), "orders", 5001);
    let orders = orders.join(&first).start().await;
    for gateway in [&first, &second] {
        gateway.wait_for("orders-1", "alive").await;
    }
    // Only an unanswered request shows that an agent hangs.
    let options = options(&[&first, &second])
        .with_reconcile_interval(Duration::from_secs(1))
        .with_request_timeout(Duration::from_secs(1));
    let published = Published::start(options);
    let address = url(&orders, 5001);
    published
        .service("orders", Some(&[("orders-5001", &address)]))
        .await;
    let before = published.state();

    first.suspend();
    let other = second.rpc_addr().to_string();
    // Nothing that is published changes, so nothing signals it.
    eventually("the other agent is asked", || async {
        agent_of(&published) == other
    })
    .await;
    assert_eq!(published.state().status.state, SourceState::Live);
    assert_eq!(published.state().config, before.config);
    assert_eq!(published.changes(), before.status.changes);
    first.resume();
}

#[tokio::test]
async fn what_was_known_serves_while_the_only_agent_hangs() {
    let Some(serf) = Serf::find() else { return };
    let gateway = serf.agent("gateway").start().await;
    let orders = announcing(serf.agent("orders-1"), "orders", 5001);
    let orders = orders.join(&gateway).start().await;
    gateway.wait_for("orders-1", "alive").await;
    let options = options(&[&gateway])
        .with_reconcile_interval(Duration::from_secs(1))
        .with_request_timeout(Duration::from_secs(1));
    let published = Published::start(options);
    let address = url(&orders, 5001);
    published
        .service("orders", Some(&[("orders-5001", &address)]))
        .await;
    let before = published.state();

    gateway.suspend();
    let failing = published.when_in(SourceState::Failing).await;
    assert_eq!(failing.config, before.config);
    gateway.resume();
    let live = published.when_in(SourceState::Live).await;
    assert_eq!(live.config, before.config);
    assert_eq!(published.changes(), before.status.changes);
}

/// Returns the agent of the last result.
fn agent_of(published: &Published) -> String {
    let agent = published.discoverer.agent();
    agent.map_or_else(|| "none".to_owned(), |agent| agent.to_string())
}
