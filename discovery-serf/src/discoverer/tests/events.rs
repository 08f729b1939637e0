//! Tests of the way from an event to a publication.

use super::*;
use crate::client::{Event, MemberEventKind};

/// A discoverer that no timer helps.
fn by_event_only(agent: &AgentInMemory) -> SerfDiscoverer {
    let options = SerfOptions::default().with_reconcile_interval(HOUR);
    with_options(agent, options)
}

#[tokio::test(start_paused = true)]
async fn whatever_happens_is_published_by_event() {
    let agent = agent();
    let running = Running::serving(&by_event_only(&agent)).await;
    sleep(seconds(60)).await;
    let soon = seconds(1);

    agent.join(instance("payments", 4));
    let with_4 = [ALL[0], ALL[1], ALL[2], "payments=10.0.0.4:5000"];
    assert!(running.until_serves(&with_4).await <= soon, "join");

    let mut tags = instance("payments", 4).tags;
    tags.insert("http-port", "6000");
    agent.retag("payments4", tags);
    let moved = [ALL[0], ALL[1], ALL[2], "payments=10.0.0.4:6000"];
    assert!(running.until_serves(&moved).await <= soon, "update");

    agent.leave("payments4");
    assert!(running.until_serves(&ALL).await <= soon, "leave");

    agent.fail("orders1");
    assert!(running.until_serves(&ALL[1..]).await <= soon, "failed");

    agent.remove("orders2");
    agent.emit(MemberEventKind::Reap, &["orders1"]);
    assert!(running.until_serves(&ALL[2..]).await <= soon, "reap");
}

#[tokio::test(start_paused = true)]
async fn a_lost_event_is_repaired_by_the_interval() {
    let agent = agent();
    let running = Running::serving(&discoverer(&agent)).await;
    let mut back = instance("orders", 1);
    back.tags.insert("http-port", "5001");
    agent.put(back);
    let took = running
        .until_serves(&["orders=10.0.0.1:5001", ALL[1], ALL[2]])
        .await;
    assert!((seconds(26)..=seconds(34)).contains(&took), "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn repeated_events_make_one_cycle_and_no_publication() {
    let agent = agent();
    let running = Running::serving(&by_event_only(&agent)).await;
    let mut states = running.provider.subscribe();
    sleep(seconds(10)).await;
    states.mark_unchanged();
    agent.forget_calls();
    for _ in 0..200 {
        agent.emit(MemberEventKind::Update, &["orders1", "payments3"]);
    }
    sleep(seconds(10)).await;
    assert_eq!(agent.all_calls(), ["members"]);
    assert!(!states.has_changed().unwrap());
    assert_eq!(running.state().status.changes, 1);
}

#[tokio::test(start_paused = true)]
async fn a_storm_of_events_makes_a_cycle_a_second_at_most() {
    let agent = agent();
    let _running = Running::serving(&by_event_only(&agent)).await;
    sleep(seconds(10)).await;
    agent.forget_calls();
    for _ in 0..3_000 {
        agent.emit(MemberEventKind::Update, &["orders1"]);
        sleep(millis(10)).await;
    }
    let during = agent.calls("members");
    assert!((20..=31).contains(&during), "{during}");
    sleep(seconds(60)).await;
    let after = agent.calls("members") - during;
    assert!(after <= 1, "{after}");
}

#[tokio::test(start_paused = true)]
async fn an_event_during_a_question_makes_one_more_question_afterwards() {
    let agent = agent();
    let running = Running::serving(&by_event_only(&agent)).await;
    sleep(seconds(10)).await;
    agent.forget_calls();
    // Its response is older than the changes meanwhile.
    agent.delay("members", seconds(2));
    agent.emit(MemberEventKind::Update, &["orders1"]);
    agent.wait_for_calls("members", 1).await;
    for _ in 0..50 {
        agent.emit(MemberEventKind::Update, &["orders1"]);
        sleep(millis(20)).await;
        assert_eq!(agent.calls("members"), 1, "one at a time");
    }
    agent.join(instance("payments", 4));
    running
        .until(|state| destinations(state.config.as_deref().unwrap()).len() == 4)
        .await;
    sleep(seconds(60)).await;
    assert_eq!(agent.calls("members"), 2);
}

#[tokio::test(start_paused = true)]
async fn events_that_nobody_waits_for_take_no_room_and_are_not_lost() {
    let agent = agent();
    let discoverer = by_event_only(&agent);
    cycle(&discoverer).await;
    assert!(timeout(HOUR, discoverer.changed()).await.is_err(), "quiet");
    for _ in 0..200 {
        for _ in 0..100 {
            agent.emit(MemberEventKind::Update, &["orders1"]);
        }
        // The reader keeps up although its events are not used.
        sleep(millis(1)).await;
    }
    agent.put(instance("payments", 4));
    agent.forget_calls();
    let asked = timeout(seconds(1), cycle(&discoverer)).await.unwrap();
    assert_eq!(asked.len(), 4, "the answer does not wait behind events");
    assert_eq!(agent.all_calls(), ["members"]);
    timeout(millis(1), discoverer.changed())
        .await
        .expect("there were events");
    let again = timeout(HOUR, discoverer.changed()).await;
    assert!(again.is_err(), "only that there were some is remembered");
}

#[tokio::test(start_paused = true)]
async fn a_flapping_member_is_followed_at_a_bounded_pace() {
    let agent = agent();
    let running = Running::serving(&by_event_only(&agent)).await;
    sleep(seconds(10)).await;
    agent.forget_calls();
    for _ in 0..100 {
        agent.fail("payments3");
        sleep(millis(150)).await;
        agent.join(instance("payments", 3));
        sleep(millis(150)).await;
    }
    let cycles = agent.calls("members");
    assert!((30..=121).contains(&cycles), "{cycles}");
    running.until_serves(&ALL).await;
    agent.fail("payments3");
    let took = running.until_serves(&ALL[..2]).await;
    assert!(took <= seconds(1), "removals are not dampened: {took:?}");
}

#[tokio::test(start_paused = true)]
async fn events_of_others_are_not_asked_for() {
    let agent = agent();
    let _running = Running::serving(&by_event_only(&agent)).await;
    sleep(seconds(10)).await;
    agent.forget_calls();
    agent.emit_event(&Event::User {
        name: "deploy".into(),
        payload: b"v1".to_vec(),
        logical_time: 1,
        coalesce: false,
    });
    sleep(seconds(60)).await;
    assert_eq!(agent.all_calls(), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn bytes_that_are_no_text_harm_nobody() {
    let agent = agent();
    let running = Running::serving(&by_event_only(&agent)).await;
    let mut strange = instance("strange", 9);
    strange.tags.insert("service", [0xff, 0xfe]);
    strange.tags.insert([0xc3], [0x28]);
    agent.join(strange);
    let took = running
        .until(|state| state.status.cycles > 1 && !state.problems.is_empty())
        .await;
    assert!(took <= seconds(1));
    assert_eq!(running.serves(), ALL);
}

#[tokio::test(start_paused = true)]
async fn an_agent_that_sends_no_events_is_asked_more_often() {
    let agent = agent();
    agent.reject("stream", "Invalid event filter");
    let running = Running::serving(&by_event_only(&agent)).await;
    assert_eq!(running.state().status.state, SourceState::Live);
    assert_eq!(running.problems(), ["no_events"]);
    agent.put(instance("payments", 4));
    let took = running
        .until(|state| destinations(state.config.as_deref().unwrap()).len() == 4)
        .await;
    assert!(took <= seconds(3), "{took:?}");
    // The end of the connection is noticed without events.
    sleep(millis(1500)).await;
    agent.obey("stream");
    agent.restart();
    let took = running.until(|state| state.problems.is_empty()).await;
    assert!(took <= seconds(1), "{took:?}");
}
