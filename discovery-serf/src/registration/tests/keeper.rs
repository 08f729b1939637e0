//! Tests of keeping a registration, with an in-memory agent and virtual time.

use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::orders;
use crate::Tags;
use crate::client::{ConnectOptions, SerfClient};
use crate::registration::{Registered, RegistrationError, RegistrationState};
use crate::testing::AgentInMemory;

async fn registered_at(agent: &AgentInMemory) -> Registered {
    let options = ConnectOptions::default();
    orders()
        .register_over(agent.clone(), &options)
        .await
        .unwrap()
}

/// Waits for a state, and returns how long that took.
async fn until(registered: &Registered, is_so: impl Fn(&RegistrationState) -> bool) -> Duration {
    let started = Instant::now();
    registered
        .states()
        .wait_for(|state| is_so(state))
        .await
        .unwrap();
    started.elapsed()
}

async fn tags_at(agent: &AgentInMemory) -> Tags {
    let options = ConnectOptions::default();
    let client = SerfClient::connect_over(agent.connect().unwrap(), &options).await;
    let members = client.unwrap().members().await.unwrap();
    members[0].tags.clone()
}

#[tokio::test(start_paused = true)]
async fn an_agent_that_has_what_is_wanted_is_told_nothing() {
    let agent = AgentInMemory::new("n1");
    let registered = registered_at(&agent).await;
    assert_eq!(registered.node(), "n1");
    assert_eq!(tags_at(&agent).await, *orders().tags());
    assert_eq!(agent.calls("tags"), 1);

    agent.restart();
    until(&registered, |state| !state.is_announced()).await;
    until(&registered, RegistrationState::is_announced).await;
    registered.update(orders()).await.unwrap();
    assert_eq!(agent.calls("tags"), 1);
    registered.set_weight(3).await.unwrap();
    assert_eq!(agent.calls("tags"), 2);
}

/// An agent that joins its cluster just then may have sent its earlier tags to the others.
#[tokio::test(start_paused = true)]
async fn an_agent_that_was_just_connected_to_is_told_once_more() {
    let agent = AgentInMemory::new("n1");
    let started = Instant::now();
    let registered = registered_at(&agent).await;
    // The update meanwhile is part of the second message.
    registered.set_weight(4).await.unwrap();
    agent.wait_for_calls("tags", 3).await;
    assert_eq!(started.elapsed().as_secs(), 2);
    assert_eq!(tags_at(&agent).await, *orders().weight(4).tags());
    registered.set_weight(5).await.unwrap();
    sleep(Duration::from_secs(100)).await;
    assert_eq!(agent.calls("tags"), 4);
    assert!(registered.state().is_announced());
}

/// An agent reloads the tags of its configuration on SIGHUP, and the connection stays.
#[tokio::test(start_paused = true)]
async fn an_agent_that_reads_its_configuration_again_is_told_again() {
    let agent = AgentInMemory::new("n1");
    let registered = registered_at(&agent).await;
    sleep(Duration::from_secs(60)).await;
    agent.forget_calls();
    agent.retag("n1", Tags::from([("rack", "7")]));
    agent.wait_for_calls("tags", 1).await;
    sleep(Duration::from_secs(60)).await;
    assert_eq!(agent.calls("tags"), 1);
    assert_eq!(
        tags_at(&agent).await.text("service"),
        orders().tags().text("service")
    );
    assert_eq!(tags_at(&agent).await.text("rack").as_deref(), Some("7"));
    assert!(registered.state().is_announced());
}

#[tokio::test(start_paused = true)]
async fn what_somebody_changes_by_hand_stays() {
    let agent = AgentInMemory::new("n1");
    let registered = registered_at(&agent).await;
    sleep(Duration::from_secs(60)).await;
    let mut drained = orders().tags().clone();
    drained.insert("weight", "0");
    let mut away = orders().tags().clone();
    away.remove("service");
    for by_hand in [drained, away] {
        agent.retag("n1", by_hand.clone());
        sleep(Duration::from_secs(120)).await;
        assert_eq!(tags_at(&agent).await, by_hand);
    }
    assert!(registered.state().is_announced());
}

/// Another service may have taken over the node between the two times that the tags are sent.
#[tokio::test(start_paused = true)]
async fn what_is_said_once_more_is_checked_once_more() {
    let agent = AgentInMemory::new("n1");
    let registered = registered_at(&agent).await;
    let other = Tags::from([("service", "reports"), ("http-port", "9")]);
    agent.retag("n1", other.clone());
    until(&registered, |state| !state.is_announced()).await;
    assert_eq!(tags_at(&agent).await, other);
    let state = registered.state();
    let is_told = matches!(
        &state,
        RegistrationState::Waiting {
            error: Some(RegistrationError::Occupied { .. })
        }
    );
    assert!(is_told, "{state:?}");
}

#[tokio::test(start_paused = true)]
async fn an_agent_that_is_away_is_asked_at_once_then_ever_more_rarely() {
    let agent = AgentInMemory::new("n1");
    let registered = registered_at(&agent).await;
    agent.reject("stats", "not now");
    agent.forget_calls();
    agent.restart();
    until(&registered, |state| !state.is_announced()).await;
    sleep(Duration::from_secs(1)).await;
    let soon = agent.calls("stats");
    assert!((3..=8).contains(&soon), "{soon} times in the first second");
    sleep(Duration::from_secs(100)).await;
    agent.forget_calls();
    sleep(Duration::from_secs(100)).await;
    let later = agent.calls("stats");
    assert!((50..=100).contains(&later), "{later} times in 100 s");
    match registered.state() {
        RegistrationState::Waiting { error: Some(error) } => {
            assert!(matches!(error, RegistrationError::Agent(_)), "{error}");
        }
        state => panic!("{state:?}"),
    }

    agent.obey("stats");
    let took = until(&registered, RegistrationState::is_announced).await;
    assert!(took <= Duration::from_secs(2), "{took:?}");
    // The next time begins at the beginning.
    agent.restart();
    until(&registered, |state| !state.is_announced()).await;
    let took = until(&registered, RegistrationState::is_announced).await;
    assert!(took <= Duration::from_millis(100), "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn a_connection_that_is_dead_without_a_word_is_noticed() {
    let agent = AgentInMemory::new("n1");
    let registered = registered_at(&agent).await;
    sleep(Duration::from_secs(10)).await;
    agent.stall();
    let noticed = until(&registered, |state| !state.is_announced()).await;
    // A heartbeat every 30 s, and 5 s for the response.
    assert!((6..=35).contains(&noticed.as_secs()), "{noticed:?}");
    agent.resume();
    until(&registered, RegistrationState::is_announced).await;
    assert_eq!(tags_at(&agent).await, *orders().tags());
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_told_is_told_later() {
    let agent = AgentInMemory::new("n1");
    let registered = registered_at(&agent).await;
    agent.stop();
    until(&registered, |state| !state.is_announced()).await;
    let heavier = orders().weight(9).tag("team", "blue");
    let error = registered.update(heavier.clone()).await.unwrap_err();
    assert!(error.is_transient(), "{error}");
    // What is wrong in itself changes nothing.
    let error = registered.set_weight(1001).await.unwrap_err();
    assert!(matches!(error, RegistrationError::InvalidTag(_)), "{error}");
    agent.start();
    until(&registered, RegistrationState::is_announced).await;
    assert_eq!(tags_at(&agent).await, *heavier.tags());

    // A tag that is not the service's business is taken back with it.
    registered.withdraw().await.unwrap();
    assert_eq!(tags_at(&agent).await, Tags::new());
}

#[tokio::test(start_paused = true)]
async fn the_end_is_told_over_a_new_connection_if_need_be() {
    let agent = AgentInMemory::new("n1");
    let registered = registered_at(&agent).await;
    let states = registered.states();
    agent.restart();
    registered.withdraw().await.unwrap();
    assert_eq!(tags_at(&agent).await, Tags::new());
    assert!(matches!(*states.borrow(), RegistrationState::Ended));
}

#[tokio::test(start_paused = true)]
async fn nothing_is_kept_for_who_has_gone() {
    let agent = AgentInMemory::new("n1");
    let registered = registered_at(&agent).await;
    assert_eq!(agent.connections(), 1);
    drop(registered);
    agent.wait_for_connections(0).await;
    assert_eq!(tags_at(&agent).await, *orders().tags());
}

#[tokio::test(start_paused = true)]
async fn an_agent_that_is_not_there_is_an_error() {
    let agent = AgentInMemory::new("n1");
    agent.stop();
    let options = ConnectOptions::default();
    let error = orders().register_over(agent, &options).await.unwrap_err();
    assert!(error.is_transient(), "{error}");
}
