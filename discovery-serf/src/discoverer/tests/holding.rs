//! Agents that come back and know less than before.

use super::*;

/// Serves everything, and then restarts the agent so that it knows only itself.
async fn restarted(agent: &AgentInMemory) -> Running {
    let running = Running::serving(&discoverer(agent)).await;
    sleep(seconds(60)).await;
    agent.forget_calls();
    agent.forget_others();
    agent.restart();
    agent.wait_for_calls("members", 1).await;
    running.until(|state| !state.problems.is_empty()).await;
    running
}

#[tokio::test(start_paused = true)]
async fn an_agent_that_joins_its_cluster_in_time_changes_nothing() {
    let agent = agent();
    let running = restarted(&agent).await;
    let state = running.state();
    assert_eq!(state.status.state, SourceState::Live);
    let problem = state.problems.iter().next().unwrap();
    assert_eq!(problem.code, "removal_held");
    assert_eq!(problem.severity, proxy_model::Severity::Warning);
    for part in ["3 members", "10s"] {
        assert!(problem.message.contains(part), "{}", problem.message);
    }
    sleep(seconds(7)).await;
    let asked = agent.calls("members");
    assert!((6..=9).contains(&asked), "about each second: {asked}");
    populate(&agent);
    let took = running.until(|state| state.problems.is_empty()).await;
    assert!(took <= millis(1_500), "{took:?}");
    assert_eq!(running.serves(), ALL);
    assert_eq!(running.state().status.changes, 1, "nobody saw anything");
    agent.forget_calls();
    sleep(seconds(25)).await;
    assert!(agent.calls("members") <= 1, "it is quiet again");
}

#[tokio::test(start_paused = true)]
async fn an_agent_that_stays_alone_is_believed_in_the_end() {
    let agent = agent();
    let running = restarted(&agent).await;
    let took = running
        .until(|state| destinations(state.config.as_deref().unwrap()).is_empty())
        .await;
    assert!((seconds(9)..=seconds(11)).contains(&took), "{took:?}");
    assert_eq!(running.problems(), [""; 0]);
    assert_eq!(running.state().status.changes, 2);
}

#[tokio::test(start_paused = true)]
async fn what_an_agent_does_know_applies_at_once() {
    let agent = agent();
    let running = restarted(&agent).await;
    agent.join(instance("payments", 4));
    let more = [ALL[0], ALL[1], ALL[2], "payments=10.0.0.4:5000"];
    assert!(running.until_serves(&more).await <= seconds(1), "growth");
    let mut moved = instance("payments", 3);
    moved.tags.insert("http-port", "6000");
    agent.join(moved);
    let changed = [ALL[0], ALL[1], "payments=10.0.0.3:6000", more[3]];
    assert!(running.until_serves(&changed).await <= seconds(1), "change");
    agent.put(instance("orders", 1));
    agent.leave("orders1");
    assert!(
        running.until_serves(&changed[1..]).await <= seconds(1),
        "those who leave say so"
    );
    agent.fail("payments4");
    let less = [changed[1], changed[2]];
    assert!(
        running.until_serves(&less).await <= seconds(1),
        "those who were seen to fail"
    );
}

#[tokio::test(start_paused = true)]
async fn an_agent_that_keeps_restarting_is_believed_in_the_end() {
    let agent = agent();
    let running = restarted(&agent).await;
    let start = Instant::now();
    while !running.serves().is_empty() {
        agent.restart();
        sleep(millis(700)).await;
        assert!(start.elapsed() < seconds(12));
    }
    assert!(start.elapsed() > seconds(8), "{:?}", start.elapsed());
}

#[tokio::test(start_paused = true)]
async fn without_a_new_connection_everything_is_believed() {
    let agent = agent();
    let running = Running::serving(&discoverer(&agent)).await;
    agent.forget_others();
    agent.emit(crate::client::MemberEventKind::Leave, &["gw"]);
    let took = running
        .until(|state| destinations(state.config.as_deref().unwrap()).is_empty())
        .await;
    assert!(took <= seconds(1), "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn members_that_said_that_they_leave_are_not_waited_for() {
    for status in [MemberStatus::Leaving, MemberStatus::Left] {
        let agent = agent();
        let running = Running::serving(&discoverer(&agent)).await;
        for (service, number) in [("orders", 1), ("orders", 2), ("payments", 3)] {
            agent.put(instance(service, number).with_status(status.clone()));
        }
        agent.restart();
        let took = running
            .until(|state| destinations(state.config.as_deref().unwrap()).is_empty())
            .await;
        assert!(took <= seconds(1), "{status}: {took:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_cluster_without_services_does_not_become_one_backend_because_of_a_restart() {
    // All instances have failed: there is nothing to serve, and nothing to keep.
    let agent = agent();
    let running = Running::serving(&discoverer(&agent)).await;
    for name in ["orders1", "orders2", "payments3"] {
        agent.fail(name);
    }
    running
        .until(|state| state.config.as_deref().unwrap().clusters.is_empty())
        .await;
    agent.forget_others();
    agent.restart();
    running.until(|state| !state.problems.is_empty()).await;
    assert_eq!(running.problems(), ["removal_held"]);
    assert!(running.state().config.as_deref().unwrap().routes.is_empty());
}

#[tokio::test(start_paused = true)]
async fn without_patience_agents_are_believed_at_once() {
    let agent = agent();
    let hold = HoldOptions::default().with_settle(Duration::ZERO);
    let options = SerfOptions::default().with_hold(hold);
    let running = Running::serving(&with_options(&agent, options)).await;
    agent.forget_others();
    agent.restart();
    let took = running
        .until(|state| destinations(state.config.as_deref().unwrap()).is_empty())
        .await;
    assert!(took <= seconds(1), "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn the_only_service_is_kept_as_well() {
    let agent = AgentInMemory::new("gw");
    let tags = Tags::from([("service", "backend"), ("http-port", "80")]);
    agent.put(Member::new("old", Ipv4Addr::new(10, 0, 0, 9).into(), tags));
    let running = Running::start(&discoverer(&agent));
    let backend = ["backend=10.0.0.9:80"];
    running.until_serves(&backend).await;
    agent.forget_others();
    agent.restart();
    running.until(|state| !state.problems.is_empty()).await;
    assert_eq!(running.serves(), backend);
    let took = running
        .until(|state| destinations(state.config.as_deref().unwrap()).is_empty())
        .await;
    assert!((seconds(9)..=seconds(11)).contains(&took), "{took:?}");
    let config = running.state().config.clone().unwrap();
    assert_eq!(config.routes.len(), 1, "requests get 503 and not 404");
}
