//! Registrations at an agent in memory.

use testkit::time::guarded;

use super::*;
use crate::client::{ConsulErrorKind, Query, ServiceWeights};
use crate::testing::{FakeConsul, Fault};

const TTL: Duration = Duration::from_secs(15);

fn orders() -> Registration {
    let service = ServiceDefinition::new("orders", 5000)
        .with_id("orders-1")
        .with_weights(3, 1);
    Registration::new(service).ttl(TTL)
}

async fn status(client: &ConsulClient) -> Option<HealthStatus> {
    let listed = client
        .health_service("orders", &Query::new())
        .await
        .unwrap();
    listed.value.first().map(|entry| entry.status())
}

async fn wait_for(registered: &Registered, is_so: impl Fn(&RegistrationState) -> bool) {
    let mut states = registered.states();
    let wait = states.wait_for(|state| is_so(state));
    guarded("the state", wait).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn the_check_is_renewed_three_times_as_often_as_it_must_be() {
    let consul = FakeConsul::new("sas");
    let client = consul.client();
    let registered = orders().register(&client).await.unwrap();
    assert_eq!(
        (registered.id(), registered.state()),
        ("orders-1", RegistrationState::Registered)
    );
    let listed = client
        .health_service("orders", &Query::new())
        .await
        .unwrap()
        .value;
    assert_eq!(
        listed[0].service.weights,
        ServiceWeights {
            passing: 3,
            warning: 1
        }
    );
    tokio::time::sleep(TTL * 10 + Duration::from_secs(1)).await;
    assert_eq!(consul.count("agent/check/update/orders-1:ttl"), 30);
    assert_eq!(consul.count("agent/service/register"), 1);
}

#[tokio::test(start_paused = true)]
async fn an_instance_drains_and_goes() {
    let consul = FakeConsul::new("sas");
    let client = consul.client();
    let registered = orders().register(&client).await.unwrap();
    assert_eq!(status(&client).await, Some(HealthStatus::Passing));
    registered.drain().await.unwrap();
    assert_eq!(status(&client).await, Some(HealthStatus::Critical));
    // Renewals do not turn it cycle.
    tokio::time::sleep(TTL * 3).await;
    assert_eq!(status(&client).await, Some(HealthStatus::Critical));
    let states = registered.states();
    registered.deregister().await.unwrap();
    assert_eq!(status(&client).await, None);
    assert!(states.has_changed().is_err() || *states.borrow() == RegistrationState::Ended);
}

#[tokio::test(start_paused = true)]
async fn an_agent_that_has_forgotten_is_told_again_in_the_state_of_now() {
    let consul = FakeConsul::new("sas");
    let client = consul.client();
    let registered = orders().register(&client).await.unwrap();
    registered
        .set_status(HealthStatus::Warning, "slow")
        .await
        .unwrap();
    consul.forget("sas");
    tokio::time::sleep(TTL / 3 + Duration::from_secs(1)).await;
    assert_eq!(status(&client).await, Some(HealthStatus::Warning));
    assert_eq!(consul.count("agent/service/register"), 2);
}

#[tokio::test(start_paused = true)]
async fn an_agent_that_is_away_is_told_when_it_is_back() {
    let consul = FakeConsul::new("sas");
    let client = consul.client();
    let registered = orders().register(&client).await.unwrap();
    consul.fail("agent", Fault::Reset);
    let error = registered.drain().await.unwrap_err();
    assert_eq!(error.kind(), ConsulErrorKind::Unreachable);
    wait_for(&registered, |state| {
        matches!(state, RegistrationState::Waiting { .. })
    })
    .await;
    assert_eq!(status(&client).await, Some(HealthStatus::Passing));
    consul.heal();
    wait_for(&registered, |state| *state == RegistrationState::Registered).await;
    assert_eq!(status(&client).await, Some(HealthStatus::Critical));
}

#[tokio::test(start_paused = true)]
async fn a_first_registration_that_fails_is_an_error_and_keeps_nothing() {
    let consul = FakeConsul::new("sas");
    consul.fail("agent", Fault::Status(403, "Permission denied"));
    let error = orders().register(&consul.client()).await.unwrap_err();
    assert_eq!(error.kind(), ConsulErrorKind::Denied);
    tokio::time::sleep(TTL * 3).await;
    assert_eq!(consul.requests().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_dropped_registration_leaves_the_instance_and_renews_nothing() {
    let consul = FakeConsul::new("sas");
    let client = consul.client();
    drop(orders().register(&client).await.unwrap());
    tokio::time::sleep(TTL * 3).await;
    assert_eq!(consul.count("agent/check"), 0);
    assert_eq!(status(&client).await, Some(HealthStatus::Passing));
}
