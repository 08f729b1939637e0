//! Tests of the requests to an agent over its lifetime.

use discovery_core::{LabelsParser, Parsed, ServiceContent};

use super::*;
use crate::generate::{CatalogService, ServiceTags};

#[tokio::test(start_paused = true)]
async fn an_agent_agrees_to_send_events_before_it_is_asked_for_members() {
    let agent = agent();
    agent.delay("stream", seconds(3));
    let _running = Running::start(&discoverer(&agent));
    agent.wait_for_calls("stream", 1).await;
    sleep(millis(2_999)).await;
    assert_eq!(agent.all_calls(), ["handshake", "stream"]);
    agent.wait_for_calls("members", 1).await;
    assert_eq!(agent.all_calls(), ["handshake", "stream", "members"]);
}

#[tokio::test(start_paused = true)]
async fn a_quiet_cycle_is_one_question() {
    let agent = agent();
    let discoverer = discoverer(&agent);
    assert_eq!(cycle(&discoverer).await, ALL);
    for _ in 0..5 {
        agent.forget_calls();
        assert_eq!(cycle(&discoverer).await, ALL);
        assert_eq!(agent.all_calls(), ["members"]);
    }
    assert_eq!(agent.connections(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_quiet_hour_is_a_question_every_half_minute_and_no_publication() {
    let agent = agent();
    let running = Running::serving(&discoverer(&agent)).await;
    let mut states = running.provider.subscribe();
    states.mark_unchanged();
    agent.forget_calls();
    sleep(HOUR).await;
    let calls = agent.all_calls();
    assert!((105..=135).contains(&calls.len()), "{}", calls.len());
    assert!(calls.iter().all(|call| call == "members"), "{calls:?}");
    assert!(!states.has_changed().unwrap());
    let state = running.state();
    assert_eq!(state.status.changes, 1);
    assert_eq!(state.status.cycles as usize, calls.len() + 1);
}

#[tokio::test(start_paused = true)]
async fn dropping_the_handles_closes_the_connection() {
    let agent = agent();
    let discoverer = discoverer(&agent);
    cycle(&discoverer).await;
    assert_eq!(agent.connections(), 1);
    let clone = discoverer.clone();
    drop(discoverer);
    tokio::task::yield_now().await;
    assert_eq!(cycle(&clone).await, ALL);
    assert_eq!(agent.calls("handshake"), 1);
    agent.forget_calls();
    drop(clone);
    let closed = timeout(seconds(1), agent.wait_for_connections(0)).await;
    assert!(closed.is_ok());
    // The stream ends a moment before the connection, so the agent may receive that.
    let calls = agent.all_calls();
    assert!(calls.iter().all(|call| call == "stop"), "{calls:?}");
}

#[tokio::test(start_paused = true)]
async fn dropping_the_provider_ends_runner_and_connection() {
    let agent = agent();
    let running = Running::serving(&discoverer(&agent)).await;
    drop(running);
    let closed = timeout(seconds(1), agent.wait_for_connections(0)).await;
    assert!(closed.is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_cycle_that_is_cut_off_leaves_nothing_behind() {
    let agent = agent();
    agent.delay("members", seconds(2));
    let discoverer = discoverer(&agent);
    for cut in [millis(1), seconds(1), millis(1999)] {
        assert!(timeout(cut, discoverer.discover()).await.is_err());
        let closed = timeout(seconds(10), agent.wait_for_connections(0)).await;
        assert!(closed.is_ok(), "{cut:?}");
    }
    assert_eq!(cycle(&discoverer).await, ALL);
    assert_eq!(agent.connections(), 1);
}

#[tokio::test(start_paused = true)]
async fn members_are_those_with_a_service_if_only_those_are_asked_for() {
    let agent = agent();
    let options = SerfOptions::default().with_prefilter_members(true);
    let discoverer = with_options(&agent, options);
    assert_eq!(cycle(&discoverer).await, ALL);
    assert_eq!(
        agent.all_calls(),
        ["handshake", "stream", "members-filtered"]
    );
    let nodes = |discoverer: &SerfDiscoverer| -> Vec<String> {
        let left_out = discoverer.left_out();
        left_out
            .iter()
            .map(|left| left.member.to_string())
            .collect()
    };
    assert_eq!(nodes(&discoverer), [""; 0], "`gw` is not seen");
    agent.fail("orders2");
    assert_eq!(cycle(&discoverer).await, [ALL[0], ALL[2]]);
    assert_eq!(nodes(&discoverer), ["orders2"]);
}

#[tokio::test(start_paused = true)]
async fn what_is_left_out_is_said_with_a_reason() {
    let agent = agent();
    let discoverer = discoverer(&agent);
    assert_eq!(discoverer.left_out(), []);
    assert_eq!(discoverer.agent(), None);
    agent.fail("orders1");
    cycle(&discoverer).await;
    let left_out = discoverer.left_out();
    let failed = left_out.iter().find(|left| &*left.member == "orders1");
    let failed = failed.expect("it is left out");
    assert_eq!(failed.service.as_deref(), Some("orders"));
    assert!(failed.reason.contains("failed"), "{}", failed.reason);
    assert_eq!(discoverer.agent().as_deref(), Some("127.0.0.1:7373"));
}

#[tokio::test(start_paused = true)]
async fn ten_thousand_members_are_one_question() {
    let agent = AgentInMemory::new("gw");
    let members = (0..10_000_u32).map(|number| {
        let mut member = instance("orders", 0);
        member.name = format!("orders-{number}").into();
        member.address = Some(Ipv4Addr::from(0x0a00_0000 + number).into());
        member
    });
    agent.set_members(members);
    let discoverer = discoverer(&agent);
    assert_eq!(cycle(&discoverer).await.len(), 10_000);
    assert_eq!(agent.calls("members"), 1);
}

/// The real thing, in real time.
#[tokio::test]
async fn agents_are_reached_over_tcp() {
    let agent = agent();
    let address = agent.listen().await.unwrap().to_string();
    let options = SerfOptions::of([address.as_str()]);
    let discoverer = SerfDiscoverer::new(options);
    assert_eq!(cycle(&discoverer).await, ALL);
    assert_eq!(discoverer.agent().as_deref(), Some(&*address));
    agent.join(instance("payments", 4));
    timeout(seconds(60), discoverer.changed()).await.unwrap();
    assert_eq!(cycle(&discoverer).await.len(), 4);
    agent.stop();
    timeout(seconds(60), discoverer.changed()).await.unwrap();
    let error = discoverer.discover().await.unwrap_err();
    assert!(error.chain().contains(&address), "{}", error.chain());
    assert_eq!(discoverer.agent(), None);
    agent.start();
    assert_eq!(cycle(&discoverer).await.len(), 4);
}

/// Serves one service in the usual way, does not serve another one, and panics at the rest.
struct Picky(ServiceTags);

impl LabelsParser<CatalogService<'_>> for Picky {
    fn parse(&self, name: &str, described: &CatalogService<'_>) -> Parsed {
        match name {
            "orders" => self.0.parse(name, described),
            "payments" => Parsed::not_enabled(),
            _ => panic!("as the test says"),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn the_parser_decides_about_each_service_alone() {
    let agent = agent();
    agent.put(instance("broken", 4));
    let discoverer = discoverer(&agent).with_parser(Picky(ServiceTags::default()));
    let discovery = discoverer.discover().await.unwrap();
    let told: Vec<_> = discovery
        .services
        .iter()
        .map(|service| (&*service.name, &service.content))
        .collect();
    let [
        ("broken", ServiceContent::Failed),
        ("orders", ServiceContent::Config(orders)),
        ("payments", ServiceContent::NotEnabled),
    ] = told[..]
    else {
        panic!("{told:?}");
    };
    assert_eq!(orders.clusters[0].destinations.len(), 2);
    assert_eq!(discovery.services[0].problems.errors().count(), 1);
}
