//! Several agents.

use super::*;

#[tokio::test(start_paused = true)]
async fn the_next_agent_is_asked_at_once_when_one_does_not_answer() {
    let (first, second) = (agent(), agent());
    first.stop();
    let network = Network::of([("a:7373", &first), ("b:7373", &second)]);
    let discoverer = network.discoverer(&["a", "b"]);
    let start = Instant::now();
    assert_eq!(cycle(&discoverer).await, ALL);
    assert!(start.elapsed() < millis(100));
    assert_eq!(discoverer.agent().as_deref(), Some("b:7373"));
    // It stays with the one that responds.
    first.start();
    for _ in 0..3 {
        cycle(&discoverer).await;
    }
    assert_eq!(first.all_calls(), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn agents_take_turns_when_they_fail() {
    let agents = [agent(), agent(), agent()];
    let [a, b, c] = &agents;
    let network = Network::of([("a:7373", a), ("b:7373", b), ("c:7373", c)]);
    let discoverer = network.discoverer(&["a", "b", "c"]);
    let running = Running::serving(&discoverer).await;
    let revision = running.state().revision;
    for (lost, next, address) in [(a, b, "b:7373"), (b, c, "c:7373"), (c, a, "a:7373")] {
        next.forget_calls();
        lost.restart();
        let asked = timeout(seconds(1), next.wait_for_calls("members", 1)).await;
        assert!(asked.is_ok(), "by event");
        sleep(seconds(1)).await;
        assert_eq!(next.all_calls(), ["handshake", "stream", "members"]);
        assert_eq!(discoverer.agent().as_deref(), Some(address));
        assert_eq!(running.state().status.state, SourceState::Live);
        assert_eq!(running.state().revision, revision);
    }
    assert_eq!(running.state().status.changes, 1);
    assert!(running.state().status.last_error.is_none());
}

#[tokio::test(start_paused = true)]
async fn an_agent_that_is_behind_takes_nothing_away_at_once() {
    let (first, behind) = (agent(), AgentInMemory::new("new"));
    let network = Network::of([("a:7373", &first), ("b:7373", &behind)]);
    let running = Running::serving(&network.discoverer(&["a", "b"])).await;
    first.stop();
    behind.wait_for_calls("members", 1).await;
    sleep(seconds(5)).await;
    assert_eq!(running.serves(), ALL);
    assert_eq!(running.problems(), ["removal_held"]);
    populate(&behind);
    running.until(|state| state.problems.is_empty()).await;
    assert_eq!(running.serves(), ALL);
    assert_eq!(running.state().status.changes, 1);
}

#[tokio::test(start_paused = true)]
async fn when_none_answers_each_is_named_with_what_to_do() {
    let (down, stalled, strange, locked) = (agent(), agent(), agent(), agent());
    down.stop();
    stalled.stall();
    strange.impersonate(Some(b"HTTP/1.1 400 Bad Request\r\n\r\n"));
    locked.demand_key(Some("sekrit".into()));
    let network = Network::of([
        ("down:7373", &down),
        ("stalled:7373", &stalled),
        ("strange:7373", &strange),
        ("locked:7373", &locked),
    ]);
    let discoverer = network.discoverer(&["down", "stalled", "strange", "locked", "nowhere"]);
    let error = discoverer.discover().await.unwrap_err();
    assert_eq!(error.kind(), discovery_core::DiscoverErrorKind::Transient);
    let message = error.chain();
    for (agent, advice) in [
        ("down:7373", "`-rpc-addr`"),
        ("stalled:7373", "overloaded"),
        ("strange:7373", "RPC address of a Serf agent"),
        ("locked:7373", "set `AuthKey` or `AuthKeyFile`"),
        ("nowhere:7373", "`-rpc-addr`"),
    ] {
        let after = message.split_once(agent);
        let after = after.unwrap_or_else(|| panic!("{agent} in {message}")).1;
        let part = after.split(". serf agent").next().unwrap();
        assert!(part.contains(advice), "{agent}: {part}");
    }
    assert_eq!(discoverer.agent(), None);
}

#[tokio::test(start_paused = true)]
async fn a_cycle_that_is_cut_off_goes_on_with_the_next_agent() {
    let (stalled, good) = (agent(), agent());
    stalled.stall();
    let network = Network::of([("a:7373", &stalled), ("b:7373", &good)]);
    let discoverer = network.discoverer(&["a", "b"]);
    let cut = timeout(seconds(1), discoverer.discover()).await;
    assert!(cut.is_err());
    let start = Instant::now();
    assert_eq!(cycle(&discoverer).await, ALL);
    assert!(start.elapsed() < seconds(1));
}

#[test]
fn there_is_time_for_every_agent() {
    let limit = |agents: usize| {
        let options = SerfOptions::of(vec!["a"; agents]);
        SerfDiscoverer::new(options)
            .runner_options()
            .discover_timeout
    };
    // 16 s for each agent, another one for the existing connection, and 74 s for a response of 64 MiB.
    assert_eq!(limit(1), seconds(2 * 16 + 74));
    assert_eq!(limit(10), seconds(11 * 16 + 74));
    let small = SerfOptions::default().with_max_frame(1 << 20);
    let least = SerfDiscoverer::new(small).runner_options();
    assert_eq!(least.discover_timeout, seconds(60));
}
