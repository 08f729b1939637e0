//! Tests of the contract of Consul's API, with the real one and with the in-memory one that other tests
//! use.

use std::time::{Duration, Instant};

use discovery_consul::client::{
    CheckDefinition, ConsulClient, ConsulErrorKind, HealthStatus, Query, ServiceDefinition,
};
use discovery_consul::testing::FakeConsul;
use testkit::consul::Consul;
use testkit::time::guarded;

use crate::live::support::client_of;

const WAIT: Duration = Duration::from_secs(1);

/// A wait that is longer than any guard: who has a response in time did not wait for it.
const NEVER: Duration = Duration::from_secs(600);

/// Both must keep it.
macro_rules! contract {
    ($($name:ident)*) => {
        mod in_memory {
            use super::*;
            $(#[tokio::test] async fn $name() {
                super::$name(FakeConsul::new("sas").client()).await;
            })*
        }
        mod real {
            use super::*;
            $(#[tokio::test] async fn $name() {
                let Some(consul) = Consul::find() else { return };
                let agent = consul.datacenter("sas").start().await;
                super::$name(client_of(&agent)).await;
            })*
        }
    };
}

contract! {
    an_agent_says_who_it_is
    queries_wait_for_what_they_are_about
    checks_are_registered_under_the_index_of_their_instance
    an_instance_without_a_check_moves_the_list_and_no_check
    an_index_above_the_server_s_waits_for_all_the_time_and_comes_back_smaller
    keys_can_be_waited_for_although_they_are_not_there
    instances_are_as_healthy_as_their_worst_check
    errors_are_as_expected
}

fn web(id: &str, port: u16) -> ServiceDefinition {
    ServiceDefinition::new("web", port)
        .with_id(id)
        .with_tag("a")
        .with_weights(7, 2)
        .with_check(CheckDefinition::ttl(
            format!("{id}-ttl"),
            Duration::from_secs(600),
        ))
}

async fn services_index(client: &ConsulClient) -> u64 {
    client
        .services(&Query::new())
        .await
        .unwrap()
        .meta
        .index
        .unwrap()
}

async fn checks_index(client: &ConsulClient) -> u64 {
    client
        .checks(&Query::new())
        .await
        .unwrap()
        .meta
        .index
        .unwrap()
}

/// Registers a service. An agent forwards it to the servers a moment later.
async fn registered(client: &ConsulClient, service: ServiceDefinition) {
    client.register(&service).await.unwrap();
    testkit::time::eventually("it is in the catalog", || async {
        let listed = client
            .health_service(&service.name, &Query::new())
            .await
            .unwrap();
        let id = service.effective_id();
        listed
            .value
            .iter()
            .any(|entry| entry.service.id == id && entry.service.port == service.port)
    })
    .await;
}

async fn an_agent_says_who_it_is(client: ConsulClient) {
    let agent = client.agent_self().await.unwrap();
    assert_eq!(
        (agent.datacenter.as_str(), agent.node.as_str()),
        ("sas", "sas-1")
    );
    assert_eq!(agent.version, "1.8.7");
    assert!(client.leader().await.unwrap().is_some());
    let datacenters = client.datacenters().await.unwrap();
    assert_eq!(
        (datacenters.value, datacenters.meta.index),
        (vec!["sas".to_owned()], None)
    );
    let services = client.services(&Query::new()).await.unwrap();
    assert!(services.value.contains_key("consul"));
    assert_eq!(services.meta.known_leader, Some(true));
}

async fn queries_wait_for_what_they_are_about(client: ConsulClient) {
    let missing = client.health_service("web", &Query::new()).await.unwrap();
    assert_eq!(missing.value, []);
    let index = missing.meta.index.unwrap();
    // A service that is not there may also wake for others that are.
    let registering = registered(&client, web("web-1", 80));
    let waiting = async {
        let mut index = index;
        loop {
            let query = Query::new().blocking(index, NEVER);
            let woken = client.health_service("web", &query).await.unwrap();
            if !woken.value.is_empty() {
                return woken;
            }
            index = woken.meta.index.unwrap();
        }
    };
    let both = async { tokio::join!(waiting, registering) };
    let (woken, ()) = guarded("the news", both).await;
    assert_eq!(woken.value.len(), 1);
    assert!(woken.meta.index.unwrap() > index);

    // A flip moves the checks and the service, and not the list of services.
    let (list, checks) = (services_index(&client).await, checks_index(&client).await);
    let query = Query::new().blocking(checks, NEVER);
    let flip = client.update_check("web-1-ttl", HealthStatus::Critical, "");
    let both = async { tokio::join!(client.checks(&query), flip) };
    let (woken, flipped) = guarded("the flip", both).await;
    flipped.unwrap();
    let rows = woken.unwrap().value;
    let row = rows.iter().find(|row| row.id == "web-1-ttl").unwrap();
    assert_eq!(
        (row.status, row.service_name.as_str()),
        (HealthStatus::Critical, "web")
    );
    assert_eq!(
        (row.service_id.as_str(), &row.service_tags[..]),
        ("web-1", &["a".to_owned()][..])
    );
    let started = Instant::now();
    let query = Query::new().blocking(list, WAIT);
    assert_eq!(
        client.services(&query).await.unwrap().meta.index,
        Some(list)
    );
    assert!(started.elapsed() >= WAIT, "{:?}", started.elapsed());

    // Another port of the same instance moves both lists, and not the row of its check, which keeps its state.
    let checks = checks_index(&client).await;
    let query = Query::new().blocking(list, NEVER);
    let moving = registered(&client, web("web-1", 81));
    let both = async { tokio::join!(client.services(&query), moving) };
    let (woken, ()) = guarded("the port", both).await;
    let list_of_port = woken.unwrap().meta.index.unwrap();
    assert!(list_of_port > list);
    let query = Query::new().blocking(checks, NEVER);
    let moved = guarded("the moved row", client.checks(&query));
    let moved = moved.await.unwrap();
    assert!(moved.meta.index.unwrap() > checks);
    let again = moved
        .value
        .iter()
        .find(|row| row.id == "web-1-ttl")
        .unwrap();
    assert_eq!(again, row);

    // Another tag moves the row as well.
    client
        .register(&web("web-1", 81).with_tag("b"))
        .await
        .unwrap();
    testkit::time::eventually("the row has moved", || async {
        let rows = client.checks(&Query::new()).await.unwrap().value;
        let now = rows.iter().find(|row| row.id == "web-1-ttl").unwrap();
        now.service_tags == ["a", "b"] && now.modify_index > row.modify_index
    })
    .await;

    client.deregister("web-1").await.unwrap();
    testkit::time::eventually("it is gone", || async {
        let rows = client.checks(&Query::new()).await.unwrap().value;
        rows.iter().all(|row| row.id != "web-1-ttl")
    })
    .await;
    assert_eq!(
        client
            .health_service("web", &Query::new())
            .await
            .unwrap()
            .value,
        []
    );
    assert!(services_index(&client).await > list);
}

async fn checks_are_registered_under_the_index_of_their_instance(client: ConsulClient) {
    for nth in 1..4 {
        registered(&client, web(&format!("web-{nth}"), 80 + nth)).await;
        let list = services_index(&client).await;
        let rows = client.checks(&Query::new()).await.unwrap().value;
        let row = rows
            .iter()
            .find(|row| row.id == format!("web-{nth}-ttl"))
            .unwrap();
        assert_eq!(row.modify_index, list);
    }
}

async fn an_instance_without_a_check_moves_the_list_and_no_check(client: ConsulClient) {
    let (list, checks) = (services_index(&client).await, checks_index(&client).await);
    registered(&client, ServiceDefinition::new("bare", 80)).await;
    assert!(services_index(&client).await > list);
    assert_eq!(checks_index(&client).await, checks);
    let tags = client.services(&Query::new()).await.unwrap().value;
    assert_eq!(tags["bare"], <[String; 0]>::default());
    let bare = client.passing("bare", &Query::new()).await.unwrap().value;
    assert_eq!(bare.len(), 1, "it passes");
}

async fn an_index_above_the_server_s_waits_for_all_the_time_and_comes_back_smaller(
    client: ConsulClient,
) {
    let index = services_index(&client).await;
    let started = Instant::now();
    let query = Query::new().blocking(99_999_999, WAIT);
    assert_eq!(
        client.services(&query).await.unwrap().meta.index,
        Some(index)
    );
    assert!(started.elapsed() >= WAIT, "{:?}", started.elapsed());
    let query = Query::new().blocking(1, NEVER);
    let at_once = client.services(&query);
    guarded("a response, since 1 is always below", at_once)
        .await
        .unwrap();
}

async fn keys_can_be_waited_for_although_they_are_not_there(client: ConsulClient) {
    let missing = client.kv_get("a/b", &Query::new()).await.unwrap();
    assert_eq!(missing.value, None);
    let index = missing.meta.index.unwrap().max(1);
    let query = Query::new().blocking(index, NEVER);
    let put = client.kv_put("a/b", "1");
    let both = async { tokio::join!(client.kv_get("a/b", &query), put) };
    let (woken, put) = guarded("the key", both).await;
    put.unwrap();
    let woken = woken.unwrap();
    assert_eq!(woken.value.unwrap().value, b"1");
    let index = woken.meta.index.unwrap();
    // Writing the same again is no news, and neither is another key.
    client.kv_put("a/b", "1").await.unwrap();
    client.kv_put("a/c", "").await.unwrap();
    let query = Query::new().blocking(index, WAIT);
    assert_eq!(
        client.kv_get("a/b", &query).await.unwrap().meta.index,
        Some(index)
    );
    let list = client.kv_list("a/", &Query::new()).await.unwrap().value;
    let pairs: Vec<_> = list
        .iter()
        .map(|pair| (pair.key.as_str(), &pair.value[..]))
        .collect();
    assert_eq!(pairs, [("a/b", &b"1"[..]), ("a/c", b"")]);
    client.kv_delete("a/b").await.unwrap();
    assert_eq!(
        client.kv_get("a/b", &Query::new()).await.unwrap().value,
        None
    );
}

async fn instances_are_as_healthy_as_their_worst_check(client: ConsulClient) {
    registered(&client, web("web-1", 80)).await;
    for (status, passes) in [
        (HealthStatus::Warning, 0),
        (HealthStatus::Critical, 0),
        (HealthStatus::Passing, 1),
    ] {
        client
            .update_check("web-1-ttl", status, "says the test")
            .await
            .unwrap();
        testkit::time::eventually(format!("{status}"), || async {
            let entries = client
                .health_service("web", &Query::new())
                .await
                .unwrap()
                .value;
            entries[0].status() == status
        })
        .await;
        assert_eq!(
            client
                .passing("web", &Query::new())
                .await
                .unwrap()
                .value
                .len(),
            passes
        );
    }
    let entry = &client
        .health_service("web", &Query::new())
        .await
        .unwrap()
        .value[0];
    assert_eq!(
        (entry.service.weights.passing, entry.service.weights.warning),
        (7, 2)
    );
    assert_eq!(entry.node.datacenter, "sas");
    assert!(!entry.address().is_empty());
}

async fn errors_are_as_expected(client: ConsulClient) {
    let elsewhere = Query::new().in_datacenter("atlantis");
    let error = client.services(&elsewhere).await.unwrap_err();
    assert_eq!(error.kind(), ConsulErrorKind::NoPathToDatacenter, "{error}");
    let error = client
        .update_check("nobody", HealthStatus::Passing, "")
        .await
        .unwrap_err();
    assert_eq!(
        error.status().map(|status| status.as_u16()),
        Some(500),
        "{error}"
    );
    client.deregister("nobody").await.unwrap();
    let dotted = ServiceDefinition::new("web", 80).with_meta("proxy.enable", "true");
    let error = client.register(&dotted).await.unwrap_err();
    assert_eq!(error.kind(), ConsulErrorKind::Rejected, "{error}");
    assert!(
        error.to_string().contains("Invalid Service Meta"),
        "{error}"
    );
}
