//! Tests of a client's calls: the bytes on the wire, and the results.

use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::*;
use crate::testing::{FakeConsul, Fault, SeenRequest};

fn last(consul: &FakeConsul) -> SeenRequest {
    consul.requests().pop().unwrap()
}

fn pairs(request: &SeenRequest) -> Vec<(&str, &str)> {
    let pairs = request.parameters.iter();
    pairs
        .map(|(key, value)| (key.as_str(), value.as_str()))
        .collect()
}

#[tokio::test(start_paused = true)]
async fn a_query_says_what_it_is_asked_to() {
    let consul = FakeConsul::new("sas");
    consul.add_datacenter("v la");
    let client = consul.client();
    client.services(&Query::new()).await.unwrap();
    let plain = last(&consul);
    assert_eq!(
        (plain.path.as_str(), pairs(&plain)),
        ("catalog/services", vec![])
    );

    let query = Query::new()
        .in_datacenter("v la")
        .with_consistency(Consistency::Stale)
        .with_filter("Service.Meta.a == \"b&c\"")
        .blocking(7, Duration::from_secs(2));
    client.passing("web", &query).await.unwrap();
    let full = last(&consul);
    let expected = vec![
        ("dc", "v la"),
        ("stale", ""),
        ("filter", "Service.Meta.a == \"b&c\""),
        ("index", "7"),
        ("wait", "2000ms"),
        ("passing", ""),
    ];
    assert_eq!(
        (full.path.as_str(), pairs(&full)),
        ("health/service/web", expected)
    );
    for (mode, flag) in [
        (Consistency::Consistent, "consistent"),
        (Consistency::Cached, "cached"),
    ] {
        client
            .checks(&Query::new().with_consistency(mode))
            .await
            .unwrap();
        assert_eq!(pairs(&last(&consul)), [(flag, "")]);
    }
}

#[tokio::test(start_paused = true)]
async fn names_and_keys_cannot_leave_their_place_in_the_path() {
    let consul = FakeConsul::new("sas");
    let client = consul.client();
    let _ = client.health_service("../kv?raw#x/y", &Query::new()).await;
    assert_eq!(last(&consul).path, "health/service/../kv?raw#x/y");
    client.kv_get("a/../b c", &Query::new()).await.unwrap();
    assert_eq!(last(&consul).path, "kv/a/../b c");
    assert_eq!(pairs(&last(&consul)), []);
}

#[tokio::test(start_paused = true)]
async fn namespace_and_partition_are_sent_only_if_set() {
    let consul = FakeConsul::new("sas");
    consul.client().datacenters().await.unwrap();
    assert_eq!(pairs(&last(&consul)), []);
    let options = ConsulOptions::default()
        .with_namespace("team a")
        .with_partition("p");
    let client = consul.client_with(options);
    client
        .services(&Query::new().in_datacenter("sas"))
        .await
        .unwrap();
    let expected = [("dc", "sas"), ("ns", "team a"), ("partition", "p")];
    assert_eq!(pairs(&last(&consul)), expected);
}

#[tokio::test(start_paused = true)]
async fn the_token_is_in_the_header_and_in_no_message() {
    let consul = FakeConsul::new("sas");
    let token = Token::new("b1gs33cr3t").unwrap();
    let client = consul.client_with(ConsulOptions::default().with_token(token));
    consul.fail(
        "catalog",
        Fault::Status(403, "token b1gs33cr3t: Permission denied"),
    );
    let error = client.services(&Query::new()).await.unwrap_err();
    assert_eq!(error.kind(), ConsulErrorKind::Denied);
    let text = format!("{error} {error:?} {client:?} {}", error.explained());
    assert!(text.contains("token [token]: Permission denied"), "{text}");
    assert!(!text.contains("b1gs33cr3t"), "{text}");
    assert_eq!(last(&consul).token.as_deref(), Some("b1gs33cr3t"));
    assert_eq!(pairs(&last(&consul)), []);
}

#[tokio::test]
async fn a_rejected_token_is_read_from_its_file_again() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("token");
    std::fs::write(&path, "old").unwrap();
    let consul = FakeConsul::new("sas");
    let client = consul.client_with(ConsulOptions::default().with_token_file(path.clone()));
    client.services(&Query::new()).await.unwrap();
    assert_eq!(last(&consul).token.as_deref(), Some("old"));
    std::fs::write(&path, "new").unwrap();
    consul.fail("catalog", Fault::Status(403, "ACL not found"));
    client.services(&Query::new()).await.unwrap_err();
    consul.heal();
    client.services(&Query::new()).await.unwrap();
    assert_eq!(last(&consul).token.as_deref(), Some("new"));
}

#[tokio::test(start_paused = true)]
async fn keys_may_be_missing_empty_or_any_bytes() {
    let consul = FakeConsul::new("sas");
    let client = consul.client();
    let get = async |key: &str| client.kv_get(key, &Query::new()).await.unwrap();
    let missing = get("envoy/a").await;
    assert_eq!(missing.value, None);
    assert!(missing.meta.index.is_some(), "it can be waited for");
    consul.put("sas", "envoy/a", &[0, 159, 146]);
    consul.put("sas", "envoy/b", b"");
    assert_eq!(get("envoy/a").await.value.unwrap().value, [0, 159, 146]);
    assert_eq!(get("envoy/b").await.value.unwrap().value, b"");
    let list = client.kv_list("envoy/", &Query::new()).await.unwrap().value;
    let keys: Vec<_> = list.iter().map(|pair| pair.key.as_str()).collect();
    assert_eq!(keys, ["envoy/a", "envoy/b"]);
    assert_eq!(
        client.kv_list("none/", &Query::new()).await.unwrap().value,
        []
    );
}

#[tokio::test(start_paused = true)]
async fn what_is_not_consul_is_malformed_and_what_is_too_long_is_not_read() {
    let consul = FakeConsul::new("sas");
    consul.fail("catalog", Fault::Garbage);
    let error = consul.client().services(&Query::new()).await.unwrap_err();
    assert_eq!(error.kind(), ConsulErrorKind::Malformed);
    assert!(
        error
            .explained()
            .contains("see that this is the address of a Consul agent")
    );
    consul.heal();
    let client = consul.client_with(ConsulOptions::default().with_max_body(5_usize));
    let error = client.services(&Query::new()).await.unwrap_err();
    assert_eq!(error.kind(), ConsulErrorKind::Malformed);
}

#[tokio::test(start_paused = true)]
async fn an_unknown_datacenter_and_a_lost_leader_have_kinds_of_their_own() {
    let consul = FakeConsul::new("sas");
    let client = consul.client();
    let elsewhere = Query::new().in_datacenter("nowhere");
    let error = client.services(&elsewhere).await.unwrap_err();
    assert_eq!(error.kind(), ConsulErrorKind::NoPathToDatacenter);
    consul.fail("", Fault::Status(500, "No cluster leader"));
    let error = client.services(&Query::new()).await.unwrap_err();
    assert_eq!(
        (error.kind(), error.retry()),
        (ConsulErrorKind::NoLeader, Retry::Backoff)
    );
    consul.fail("", Fault::Reset);
    let error = client.leader().await.unwrap_err();
    assert_eq!(error.kind(), ConsulErrorKind::Unreachable);
}

#[tokio::test(start_paused = true)]
async fn clones_share_the_budget_and_blocking_calls_leave_some_to_the_others() {
    let consul = FakeConsul::new("sas");
    let client = consul.client_with(ConsulOptions::default().with_max_connections(8_usize));
    let wait = Duration::from_secs(60);
    let blocked: Vec<_> = (0..20)
        .map(|_| {
            let client = client.clone();
            tokio::spawn(async move { client.checks(&Query::new().blocking(10, wait)).await })
        })
        .collect();
    sleep(Duration::from_secs(1)).await;
    assert_eq!(consul.count("health/state"), 6);
    // Reads go on meanwhile.
    let started = Instant::now();
    client.services(&Query::new()).await.unwrap();
    assert_eq!(started.elapsed(), Duration::ZERO);
    for call in blocked {
        call.await.unwrap().unwrap();
    }
    assert_eq!(consul.count("health/state"), 20, "each has its turn");

    let reads: Vec<_> = (0..100)
        .map(|nth| {
            let client = client.clone();
            tokio::spawn(
                async move { client.health_service(&nth.to_string(), &Query::new()).await },
            )
        })
        .collect();
    for read in reads {
        read.await.unwrap().unwrap();
    }
    assert!(consul.most_in_flight() <= 8, "{}", consul.most_in_flight());
}

#[tokio::test(start_paused = true)]
async fn a_service_is_registered_kept_and_taken_back() {
    let consul = FakeConsul::new("sas");
    let client = consul.client();
    let check = CheckDefinition::ttl("web-1-ttl", Duration::from_secs(30));
    let web = ServiceDefinition::new("web", 8080)
        .with_id("web-1")
        .with_address("10.1.1.1")
        .with_tag("v2")
        .with_meta("proxy_enable", "true")
        .with_weights(5, 1)
        .with_check(check);
    client.register(&web).await.unwrap();
    let listed = client
        .health_service("web", &Query::new())
        .await
        .unwrap()
        .value;
    let there = &listed[0];
    assert_eq!((there.address(), there.service.port), ("10.1.1.1", 8080));
    assert_eq!(there.service.meta["proxy_enable"], "true");
    assert_eq!(
        there.service.weights,
        ServiceWeights {
            passing: 5,
            warning: 1
        }
    );
    assert_eq!(there.status(), HealthStatus::Passing);

    client
        .update_check("web-1-ttl", HealthStatus::Critical, "full")
        .await
        .unwrap();
    assert_eq!(
        client.passing("web", &Query::new()).await.unwrap().value,
        []
    );
    client.deregister("web-1").await.unwrap();
    client.deregister("web-1").await.unwrap();
    assert_eq!(
        client
            .health_service("web", &Query::new())
            .await
            .unwrap()
            .value,
        []
    );
    let error = client
        .update_check("web-1-ttl", HealthStatus::Passing, "")
        .await
        .unwrap_err();
    assert_eq!(error.status().map(|status| status.as_u16()), Some(500));
}

#[tokio::test(start_paused = true)]
async fn agents_and_leaders_say_who_they_are() {
    let consul = FakeConsul::new("sas");
    let client = consul.client();
    assert_eq!(client.agent_self().await.unwrap().datacenter, "sas");
    assert!(client.leader().await.unwrap().is_some());
    let datacenters = client.datacenters().await.unwrap();
    assert_eq!(
        (datacenters.value, datacenters.meta.index),
        (vec!["sas".to_owned()], None)
    );
    assert_eq!(client.address(), "http://127.0.0.1:8500");
}
