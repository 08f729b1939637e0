//! Agents that lose what they knew, and events that never come.

use std::time::Duration;

use discovery_core::SourceState;
use discovery_serf::client::{Event, EventFilter, EventStream, SerfClient};
use discovery_serf::{HoldOptions, MemberStatus};
use testkit::serf::Serf;
use testkit::time::eventually;

use crate::live::support::{NEVER, Published, announcing, client_of, options, url};

#[tokio::test]
async fn a_restart_of_the_agent_changes_nothing() {
    let Some(serf) = Serf::find() else { return };
    let orders = announcing(serf.agent("orders-1"), "orders", 5001);
    let orders = orders.start().await;
    let mut gateway = serf.agent("gateway").join(&orders).start().await;
    gateway.wait_for("orders-1", "alive").await;
    let hold = HoldOptions::default().with_settle(NEVER);
    let published = Published::start(options(&[&gateway]).with_hold(hold));
    let address = url(&orders, 5001);
    published
        .service("orders", Some(&[("orders-5001", &address)]))
        .await;
    let before = published.state();

    gateway.kill().await;
    published.when_in(SourceState::Failing).await;
    assert_eq!(published.state().config, before.config);

    // The agent responds before it has joined, so it may be polled while it knows no node but itself.
    gateway.restart().await;
    published.when_in(SourceState::Live).await;
    gateway.wait_for("orders-1", "alive").await;
    published
        .when("everything is confirmed", |state| state.problems.is_empty())
        .await;
    assert_eq!(published.state().config, before.config);
    assert_eq!(published.changes(), before.status.changes);

    // And events are heard again.
    orders.set_tag("http-port", "5002").await;
    let moved = url(&orders, 5002);
    published
        .service("orders", Some(&[("orders-5001", &moved)]))
        .await;
}

#[tokio::test]
async fn an_agent_that_knows_nobody_yet_is_not_believed() {
    let Some(serf) = Serf::find() else { return };
    // It joins no node by itself, so after a restart it knows no other node.
    let mut gateway = serf.agent("gateway").start().await;
    let orders = announcing(serf.agent("orders-1"), "orders", 5001);
    let orders = orders.join(&gateway).start().await;
    gateway.wait_for("orders-1", "alive").await;
    let hold = HoldOptions::default().with_settle(NEVER);
    let published = Published::start(options(&[&gateway]).with_hold(hold));
    let address = url(&orders, 5001);
    published
        .service("orders", Some(&[("orders-5001", &address)]))
        .await;
    let before = published.state();

    // Asleep, so that it does not make itself known to the gateway again.
    orders.suspend();
    gateway.restart().await;
    let held = published
        .when("what is missing is held", |state| {
            !state.problems.is_empty()
        })
        .await;
    let codes: Vec<_> = held.problems.iter().map(|problem| &*problem.code).collect();
    assert_eq!(codes, ["removal_held"]);
    assert_eq!(gateway.members().await.len(), 1);
    assert_eq!(held.config, before.config);

    orders.resume();
    let client = client_of(&gateway).await;
    let address = orders.gossip_addr().to_string();
    client.join(&[address.as_str()], false).await.unwrap();
    let over = published
        .when("nothing is held any more", |state| {
            state.problems.is_empty()
        })
        .await;
    assert_eq!(over.config, before.config);
    assert_eq!(published.changes(), before.status.changes);
}

/// A node that fails and returns within the second in which an agent collects events is in none of them,
/// even if its tags have changed.
#[tokio::test]
async fn a_change_that_no_event_tells_is_found_by_the_timer() {
    /// Number of attempts: on a busy machine the member may be back too late, and then an event tells the change.
    const ATTEMPTS: u16 = 4;

    let Some(serf) = Serf::find() else { return };
    let gateway = serf.agent("gateway").start().await;
    let orders = announcing(serf.agent("orders-1"), "orders", 5000);
    let mut orders = orders.join(&gateway).start().await;
    gateway.wait_for("orders-1", "alive").await;
    let client = client_of(&gateway).await;
    let options = options(&[&gateway]).with_reconcile_interval(Duration::from_secs(2));
    let published = Published::start(options);
    for port in 5001..5001 + ATTEMPTS {
        orders.kill().await;
        eventually("the crash is seen", || async {
            status_of(&client, "orders-1").await == MemberStatus::Failed
        })
        .await;
        // The event of the crash is still being held back, for a second.
        let mut events = client.stream(&EventFilter::members()).await.unwrap();
        orders.start_with_tag("http-port", &port.to_string());
        orders.restart().await;
        let address = url(&orders, port);
        published
            .service("orders", Some(&[("orders-5000", &address)]))
            .await;
        if !is_told(&mut events, "orders-1").await {
            return;
        }
    }
    println!(
        "an event has told each of {ATTEMPTS} changes: the machine is too busy to show one that none tells"
    );
}

async fn status_of(client: &SerfClient, name: &str) -> MemberStatus {
    let members = client.members().await.unwrap();
    let member = members.into_iter().find(|member| &*member.name == name);
    member.unwrap().status
}

/// Returns true if an event about this node comes within the longest time for which agents collect them.
async fn is_told(events: &mut EventStream, name: &str) -> bool {
    let told = async {
        loop {
            let event = events.next().await.unwrap().unwrap();
            if let Event::Member { members, .. } = event
                && members.iter().any(|member| &*member.name == name)
            {
                return;
            }
        }
    };
    tokio::time::timeout(Duration::from_secs(4), told)
        .await
        .is_ok()
}
