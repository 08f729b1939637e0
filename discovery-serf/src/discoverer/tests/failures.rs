//! Tests of failing agents: the configuration continues to serve, the state reports the failure, and
//! everything recovers with the agents.

use super::*;
use crate::client::{ConnectOptions, SerfClient};

#[tokio::test(start_paused = true)]
async fn an_agent_that_is_down_is_tried_until_it_is_up() {
    let agent = agent();
    agent.stop();
    let running = Running::start(&discoverer(&agent));
    running.until_is(SourceState::Failing).await;
    let error = running.error();
    assert!(error.contains("127.0.0.1:7373"), "{error}");
    assert!(error.contains("`-rpc-addr`"), "{error}");
    assert!(running.state().config.is_none());
    sleep(HOUR).await;
    let tries = running.state().status.cycles;
    assert!((1_800..=5_000).contains(&tries), "{tries}");
    agent.start();
    let took = running.until_serves(&ALL).await;
    assert!(took <= seconds(2), "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn what_served_goes_on_while_the_agent_is_away() {
    let agent = agent();
    let running = Running::serving(&discoverer(&agent)).await;
    let before = running.state();
    agent.stop();
    let took = running.until_is(SourceState::Failing).await;
    assert!(
        took <= seconds(1),
        "the end of the connection is an event: {took:?}"
    );
    sleep(seconds(600)).await;
    let away = running.state();
    assert!(away.status.state.is_stale());
    assert_eq!(away.revision, before.revision);
    assert!(running.error().contains("127.0.0.1:7373"));
    agent.forget_calls();
    agent.start();
    running.until_is(SourceState::Live).await;
    assert_eq!(agent.all_calls(), ["handshake", "stream", "members"]);
    assert_eq!(running.state().revision, before.revision);
    assert_eq!(running.state().status.changes, 1);
    assert_eq!(running.problems(), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn a_restart_in_no_time_is_no_failure() {
    let agent = agent();
    let running = Running::serving(&discoverer(&agent)).await;
    agent.forget_calls();
    agent.restart();
    agent.wait_for_calls("members", 1).await;
    sleep(seconds(1)).await;
    assert_eq!(agent.all_calls(), ["handshake", "stream", "members"]);
    let status = &running.state().status;
    assert_eq!(
        (status.state, status.consecutive_failures),
        (SourceState::Live, 0)
    );
    assert_eq!(status.changes, 1);
}

#[tokio::test(start_paused = true)]
async fn what_changed_while_the_agent_was_away_is_found_when_it_is_back() {
    let agent = agent();
    let running = Running::serving(&discoverer(&agent)).await;
    agent.stop();
    running.until_is(SourceState::Failing).await;
    agent.remove("orders1");
    agent.put(instance("payments", 4));
    agent.start();
    running
        .until_serves(&[ALL[1], ALL[2], "payments=10.0.0.4:5000"])
        .await;
    assert_eq!(running.problems(), [""; 0], "this is no reason to doubt");
}

#[tokio::test(start_paused = true)]
async fn an_agent_that_stops_answering_is_given_up() {
    let agent = agent();
    let running = Running::serving(&discoverer(&agent)).await;
    let before = running.state().revision;
    agent.stall();
    // The poll at the interval is the heartbeat: 33 s, 5 s for the response, and 2 s for a handshake.
    let took = running.until_is(SourceState::Failing).await;
    assert!((seconds(25)..=seconds(41)).contains(&took), "{took:?}");
    let error = running.error();
    assert!(error.contains("stopped or overloaded"), "{error}");
    assert!(error.contains("127.0.0.1:7373"), "{error}");
    sleep(seconds(300)).await;
    assert_eq!(running.state().revision, before);
    // Each try was closed again; an agent that is stopped closes none itself.
    assert!(agent.connections() < 160);
    agent.resume();
    let took = running.until_is(SourceState::Live).await;
    assert!(took <= seconds(5), "{took:?}");
    sleep(seconds(60)).await;
    assert_eq!(agent.connections(), 1);
    assert_eq!(running.state().status.changes, 1);
}

#[tokio::test(start_paused = true)]
async fn an_agent_that_hangs_in_any_step_is_given_up_in_time() {
    for (command, limit) in [
        ("handshake", seconds(2)),
        ("stream", seconds(5)),
        ("members", seconds(5)),
    ] {
        let agent = agent();
        agent.delay(command, HOUR);
        let start = Instant::now();
        let error = discoverer(&agent).discover().await.unwrap_err();
        assert_eq!(start.elapsed().as_secs(), limit.as_secs(), "{command}");
        let message = error.chain();
        assert!(message.contains(command), "{message}");
    }
}

#[tokio::test(start_paused = true)]
async fn another_server_on_the_port_is_told_from_an_agent() {
    for answer in [
        &b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n"[..],
        b"SSH-2.0-OpenSSH_9.6\r\n",
        b"\x16\x03\x01\x00\xc4",
        b"\xc1",
        b"\xdf\xff\xff\xff\xff",
        b"",
    ] {
        let agent = agent();
        agent.impersonate(Some(answer));
        let running = Running::start(&discoverer(&agent));
        running.until_is(SourceState::Failing).await;
        let error = running.error();
        assert!(error.contains("127.0.0.1:7373"), "{answer:?}: {error}");
        sleep(seconds(60)).await;
        assert!(agent.connections() <= 1);
        agent.impersonate(None);
        running.until_serves(&ALL).await;
    }
}

#[tokio::test(start_paused = true)]
async fn an_agent_that_leaves_takes_nothing_with_it() {
    let agent = agent();
    let running = Running::serving(&discoverer(&agent)).await;
    let options = ConnectOptions::default();
    let operator = SerfClient::connect_over(agent.connect().unwrap(), &options);
    operator.await.unwrap().leave().await.unwrap();
    running.until_is(SourceState::Failing).await;
    sleep(seconds(60)).await;
    assert_eq!(running.serves(), ALL);
    agent.start();
    running.until_is(SourceState::Live).await;
    assert_eq!(running.serves(), ALL);
}

#[tokio::test(start_paused = true)]
async fn an_empty_cluster_is_an_answer() {
    let agent = AgentInMemory::new("gw");
    agent.set_members([]);
    let running = Running::start(&discoverer(&agent));
    running.until_is(SourceState::Live).await;
    assert_eq!(running.serves(), [""; 0]);
}
