//! Registrations at real agents.

use std::time::Duration;

use discovery_consul::client::{ConsulClient, HealthStatus, Query, ServiceDefinition};
use discovery_consul::registration::{Registered, Registration, RegistrationState};
use testkit::consul::Consul;
use testkit::time::{eventually, guarded};

use crate::live::support::client_of;

async fn is(client: &ConsulClient, wanted: Option<HealthStatus>) {
    eventually(format!("{wanted:?}"), || async {
        let listed = client.health_service("orders", &Query::new()).await;
        listed.is_ok_and(|listed| listed.value.first().map(|entry| entry.status()) == wanted)
    })
    .await;
}

async fn start(client: &ConsulClient) -> Registered {
    let service = ServiceDefinition::new("orders", 5000).with_id("orders-1");
    let registration = Registration::new(service).ttl(Duration::from_secs(3));
    registration.register(client).await.unwrap()
}

#[tokio::test]
async fn an_instance_lives_longer_than_its_check_drains_and_goes() {
    let Some(consul) = Consul::find() else { return };
    let sas = consul.datacenter("sas").start().await;
    let client = client_of(&sas);
    let registered = start(&client).await;
    is(&client, Some(HealthStatus::Passing)).await;
    tokio::time::sleep(Duration::from_secs(5)).await;
    is(&client, Some(HealthStatus::Passing)).await;
    registered.drain().await.unwrap();
    is(&client, Some(HealthStatus::Critical)).await;
    registered.deregister().await.unwrap();
    is(&client, None).await;
}

#[tokio::test]
async fn an_agent_that_was_started_again_is_told_again() {
    let Some(consul) = Consul::find() else { return };
    let mut sas = consul.datacenter("sas").start().await;
    let client = client_of(&sas);
    let registered = start(&client).await;
    sas.kill().await;
    let mut states = registered.states();
    let away = states.wait_for(|state| matches!(state, RegistrationState::Waiting { .. }));
    guarded("it is noticed", away).await.unwrap();
    sas.restart().await;
    is(&client, Some(HealthStatus::Passing)).await;
    registered.deregister().await.unwrap();
}

#[tokio::test]
async fn an_instance_whose_program_is_gone_is_critical_soon() {
    let Some(consul) = Consul::find() else { return };
    let sas = consul.datacenter("sas").start().await;
    let client = client_of(&sas);
    drop(start(&client).await);
    is(&client, Some(HealthStatus::Critical)).await;
}
