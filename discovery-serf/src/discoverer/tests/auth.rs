//! Agents that demand a key.

use discovery_core::DiscoverErrorKind;

use super::*;

fn locked() -> AgentInMemory {
    let agent = agent();
    agent.demand_key(Some("sekrit".into()));
    agent
}

#[tokio::test(start_paused = true)]
async fn the_key_is_shown_before_anything_is_asked() {
    let agent = locked();
    agent.delay("auth", seconds(1));
    let options = SerfOptions::default().with_auth_key("sekrit");
    let discoverer = with_options(&agent, options);
    assert_eq!(cycle(&discoverer).await, ALL);
    assert_eq!(
        agent.all_calls(),
        ["handshake", "auth", "stream", "members"]
    );
}

#[tokio::test(start_paused = true)]
async fn without_the_right_key_the_agent_is_asked_rarely_and_the_state_says_why() {
    for key in [None, Some("wrong")] {
        let agent = locked();
        let options = SerfOptions {
            auth_key: key.map(Into::into),
            ..SerfOptions::default()
        };
        let running = Running::start(&with_options(&agent, options));
        running.until_is(SourceState::Failing).await;
        let state = running.state();
        let error = state.status.last_error.as_ref().unwrap();
        assert_eq!(error.kind, DiscoverErrorKind::Rejected);
        assert!(
            !error.message.contains("does not answer"),
            "{}",
            error.message
        );
        let advice = match key {
            None => "set `AuthKey` or `AuthKeyFile`",
            Some(_) => "see that the key is the agent's `rpc_auth`",
        };
        assert!(error.message.contains(advice), "{}", error.message);
        assert!(error.message.contains("127.0.0.1:7373"));
        assert!(!format!("{error:?}").contains("wrong"));
        agent.forget_calls();
        sleep(seconds(100)).await;
        let asked = agent.calls("handshake");
        assert!((9..=11).contains(&asked), "{asked}");
        assert_eq!(agent.calls("members"), 0);
        // It never gives up.
        agent.demand_key(key.map(Into::into));
        let took = running.until_serves(&ALL).await;
        assert!(took <= seconds(11), "{took:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_key_in_a_file_can_be_changed() {
    let agent = locked();
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("key");
    let options = SerfOptions::default().with_auth_key_file(path.clone());
    let discoverer = with_options(&agent, options);

    let error = discoverer.discover().await.unwrap_err();
    assert_eq!(error.kind(), DiscoverErrorKind::Permanent);
    assert!(error.chain().contains(&*path.to_string_lossy()));
    assert!(error.chain().contains("AuthKeyFile"));
    assert_eq!(agent.all_calls(), [""; 0]);

    std::fs::write(&path, "sekrit\n").unwrap();
    assert_eq!(cycle(&discoverer).await, ALL);

    agent.demand_key(Some("new".into()));
    agent.restart();
    let error = discoverer.discover().await.unwrap_err();
    assert!(!error.chain().contains("sekrit"), "{}", error.chain());
    std::fs::write(&path, "new\n").unwrap();
    assert_eq!(cycle(&discoverer).await, ALL);
}

/// The file is checked every two seconds, and the agent receives a rejected key every ten.
#[tokio::test(start_paused = true)]
async fn a_key_that_is_put_into_the_file_is_used_within_two_seconds() {
    let agent = locked();
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("key");
    let options = SerfOptions::default().with_auth_key_file(path.clone());
    let running = Running::start(&with_options(&agent, options));
    running.until_is(SourceState::Failing).await;
    std::fs::write(&path, "wrong").unwrap();
    sleep(seconds(5)).await;
    agent.forget_calls();
    sleep(seconds(100)).await;
    let asked = agent.calls("handshake");
    assert!((8..=11).contains(&asked), "{asked}");
    let error = running.state().status.last_error.clone().unwrap();
    assert!(
        error.message.contains("see that the key is the agent's"),
        "{}",
        error.message
    );

    std::fs::write(&path, "sekrit").unwrap();
    let took = running.until_serves(&ALL).await;
    assert!(took <= seconds(2), "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn another_version_of_the_protocol_is_asked_rarely() {
    let agent = agent();
    agent.reject("handshake", "Unsupported IPC version");
    let error = discoverer(&agent).discover().await.unwrap_err();
    assert_eq!(error.kind(), DiscoverErrorKind::Permanent);
    assert_eq!(error.retry_after(), Some(seconds(10)));
    assert!(error.chain().contains("version"), "{}", error.chain());
}
