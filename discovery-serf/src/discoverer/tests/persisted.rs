//! A proxy that starts with what was kept on disk.

use std::path::Path;

use super::*;

fn kept_in(agent: &AgentInMemory, directory: &Path) -> SerfDiscoverer {
    let options = SerfOptions::default().with_persist(directory.join("last.json"));
    with_options(agent, options)
}

/// A directory with what everything of [`agent`] came to.
async fn kept() -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    let agent = agent();
    let _running = Running::serving(&kept_in(&agent, directory.path())).await;
    let written = async {
        while !directory.path().join("last.json").exists() {
            sleep(millis(10)).await;
        }
    };
    timeout(LONG, written).await.expect("it is written");
    directory
}

#[tokio::test(start_paused = true)]
async fn what_was_kept_serves_while_no_agent_answers() {
    let directory = kept().await;
    let agent = agent();
    agent.stop();
    let running = Running::start(&kept_in(&agent, directory.path()));
    running.until_serves(&ALL).await;
    running.until_is(SourceState::Failing).await;
    assert_eq!(running.serves(), ALL);
}

#[tokio::test(start_paused = true)]
async fn an_agent_that_has_just_started_does_not_empty_what_was_kept() {
    let directory = kept().await;
    let agent = AgentInMemory::new("gw");
    let running = Running::start(&kept_in(&agent, directory.path()));
    running.until_is(SourceState::Failing).await;
    let error = running.error();
    assert!(error.contains("127.0.0.1:7373"), "{error}");
    assert!(error.contains("10s"), "{error}");
    sleep(seconds(8)).await;
    assert_eq!(running.serves(), ALL);
    assert_eq!(agent.calls("handshake"), 1, "over one connection");
    populate(&agent);
    agent.join(instance("payments", 4));
    running.until_is(SourceState::Live).await;
    assert_eq!(running.serves().len(), 4);
}

#[tokio::test(start_paused = true)]
async fn an_agent_that_still_knows_of_no_service_after_a_while_is_believed() {
    let directory = kept().await;
    let agent = AgentInMemory::new("gw");
    let running = Running::start(&kept_in(&agent, directory.path()));
    let took = running.until_is(SourceState::Live).await;
    assert!((seconds(10)..=seconds(11)).contains(&took), "{took:?}");
    assert_eq!(running.serves(), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn an_agent_that_knows_a_service_is_believed_at_once() {
    let directory = kept().await;
    let agent = AgentInMemory::new("gw");
    agent.put(instance("orders", 9));
    let running = Running::start(&kept_in(&agent, directory.path()));
    let took = running.until_serves(&["orders=10.0.0.9:5000"]).await;
    assert!(took <= seconds(1), "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn without_a_file_an_empty_cluster_is_believed_at_once() {
    let agent = AgentInMemory::new("gw");
    let running = Running::start(&discoverer(&agent));
    let took = running.until_is(SourceState::Live).await;
    assert!(took <= seconds(1), "{took:?}");
}
