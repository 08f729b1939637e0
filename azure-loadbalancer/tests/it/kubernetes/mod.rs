//! Services and nodes of a scripted Kubernetes API server, over its HTTP seam. No real API server is
//! available here; paths and events are those of the API's reference.
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod leases;
mod server;
mod status;

use std::time::Duration;

use azure_loadbalancer::plan::Ingress;
use azure_loadbalancer::sources::Source;
use azure_loadbalancer::{Node, Service, ServiceKey};
use serde_json::{Value, json};
use tokio::time::timeout;

use self::server::{Server, error};

fn service(name: &str, version: u32) -> Value {
    json!({ "metadata": { "name": name, "namespace": "default", "resourceVersion": version.to_string() }, "spec": { "type": "LoadBalancer" } })
}

fn list(items: &[Value], version: u32, token: &str) -> String {
    json!({ "kind": "ServiceList", "metadata": { "resourceVersion": version.to_string(), "continue": token }, "items": items }).to_string()
}

fn event(kind: &str, object: &Value) -> String {
    json!({ "type": kind, "object": object }).to_string() + "\n"
}

fn names(services: &[Service]) -> Vec<&str> {
    services
        .iter()
        .map(|service| service.key.name.as_str())
        .collect()
}

#[tokio::test(start_paused = true)]
async fn services_are_listed_in_pages_and_watched_from_there() {
    let server = Server::default();
    server.answer(200, &list(&[service("a", 1)], 0, "next"));
    server.answer(200, &list(&[service("b", 2)], 7, ""));
    let events = server.stream();
    let mut source = server.client().services();
    assert_eq!(names(&source.next().await.unwrap()), ["a", "b"]);
    // An event in two pieces, and a bookmark, which is no change.
    let added = event("ADDED", &service("c", 8));
    let (head, tail) = added.split_at(20);
    events.send(head);
    events.send(tail);
    assert_eq!(names(&source.next().await.unwrap()), ["a", "b", "c"]);
    events.send(&event(
        "BOOKMARK",
        &json!({ "metadata": { "resourceVersion": "20" } }),
    ));
    events.send(&event("DELETED", &service("a", 21)));
    assert_eq!(names(&source.next().await.unwrap()), ["b", "c"]);

    // The watch ends, and the next one continues from the last version.
    drop(events);
    let events = server.stream();
    events.send(&event("MODIFIED", &service("b", 22)));
    assert_eq!(names(&source.next().await.unwrap()), ["b", "c"]);
    let asked = server.asked();
    assert_eq!(asked[0], "GET /api/v1/services?limit=500");
    assert_eq!(asked[1], "GET /api/v1/services?limit=500&continue=next");
    assert_eq!(
        asked[2],
        "GET /api/v1/services?watch=1&allowWatchBookmarks=true&resourceVersion=7&timeoutSeconds=290"
    );
    assert!(asked[3].contains("resourceVersion=21&"), "{}", asked[3]);
}

#[tokio::test(start_paused = true)]
async fn a_version_that_is_too_old_is_listed_anew() {
    let gone = json!({ "code": 410, "reason": "Expired", "message": "too old resource version" });
    for as_event in [true, false] {
        let server = Server::default();
        server.answer(200, &list(&[service("a", 1)], 7, ""));
        if as_event {
            let events = server.stream();
            events.send(&event("ERROR", &gone));
        } else {
            server.answer(410, &gone.to_string());
        }
        server.answer(200, &list(&[service("z", 9)], 9, ""));
        let mut source = server.client().services();
        assert_eq!(names(&source.next().await.unwrap()), ["a"]);
        assert_eq!(
            names(&source.next().await.unwrap()),
            ["z"],
            "what went meanwhile is gone"
        );
        assert_eq!(server.asked().len(), 3);
    }
}

#[tokio::test(start_paused = true)]
async fn failures_are_told_and_waited_for() {
    let server = Server::default();
    server.answer(403, &error(403, "services is forbidden"));
    server.answer(500, "");
    server.answer(200, &list(&[], 1, ""));
    let mut source = server.client().services();
    let told = source.next().await.unwrap_err();
    let cause = std::error::Error::source(&told).unwrap().to_string();
    assert_eq!(
        cause,
        "GET /api/v1/services: 403 Forbidden: services is forbidden"
    );
    source.next().await.unwrap_err();
    assert!(
        source.next().await.unwrap().is_empty(),
        "nothing is news as well, the first time"
    );
    let times = server.times();
    assert!(
        times[1] >= Duration::from_millis(500) && times[2] >= times[1] + Duration::from_secs(1),
        "{times:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_read_keeps_its_last_form() {
    let server = Server::default();
    server.answer(200, &list(&[service("a", 1)], 1, ""));
    let events = server.stream();
    let mut source = server.client().services();
    assert_eq!(names(&source.next().await.unwrap()), ["a"]);
    let mut odd = service("a", 2);
    odd["spec"]["ports"] = json!("none");
    events.send(&event("MODIFIED", &odd));
    events.send(&event("ADDED", &service("b", 3)));
    assert_eq!(names(&source.next().await.unwrap()), ["a", "b"]);
    // The other objects of a list are read, too; the planner leaves the resources of such a service alone.
    let server = Server::default();
    server.answer(200, &list(&[odd, service("b", 3)], 1, ""));
    let read = server.client().services().next().await.unwrap();
    assert_eq!(names(&read), ["a", "b"]);
    assert!(read[0].unreadable.is_some() && read[0].is_wanted());
    assert_eq!(read[1].unreadable, None);
}

#[tokio::test(start_paused = true)]
async fn a_node_that_cannot_be_read_keeps_no_other_out() {
    let odd = json!({ "metadata": { "name": "odd", "labels": { "a": "b" } },
        "spec": { "providerID": "azure:///x" }, "status": { "addresses": 3 } });
    let good = |name: &str| {
        json!({ "metadata": { "name": name, "resourceVersion": "2" }, "status": {
            "conditions": [{ "type": "Ready", "status": "True" }],
            "addresses": [{ "type": "InternalIP", "address": "10.0.0.1" }] } })
    };
    let server = Server::default();
    server.answer(200, &list(&[odd.clone(), good("one")], 1, ""));
    let events = server.stream();
    let mut source = server.client().nodes();
    let read = source.next().await.unwrap();
    let shown = |nodes: &[Node]| -> Vec<_> {
        let one = |node: &Node| (node.name.clone(), node.unreadable.is_some());
        nodes.iter().map(one).collect()
    };
    let named = |name: &str, unreadable| (name.to_owned(), unreadable);
    assert_eq!(shown(&read), [named("odd", true), named("one", false)]);
    assert_eq!(read[0].provider_id.as_deref(), Some("azure:///x"));
    assert_eq!(read[0].labels["a"], "b");
    // Neither does one that comes later; one that was read keeps its last form.
    let mut later = odd.clone();
    later["metadata"]["name"] = json!("later");
    let mut broken = good("one");
    broken["status"]["addresses"] = json!("none");
    for object in [later, broken] {
        events.send(&event("MODIFIED", &object));
    }
    let read = source.next().await.unwrap();
    let all = [
        named("later", true),
        named("odd", true),
        named("one", false),
    ];
    assert_eq!(shown(&read), all);
    // Without a name the object is unknown.
    let server = Server::default();
    server.answer(200, &list(&[json!({ "metadata": {} })], 1, ""));
    let told = server.client().nodes().next().await.unwrap_err();
    let cause = std::error::Error::source(&told).unwrap().to_string();
    assert!(cause.contains("no name"), "{cause}");
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_hangs_is_given_up_and_everything_listed_anew_from_time_to_time() {
    let server = Server::default();
    server.answer(200, &list(&[service("a", 1)], 1, ""));
    let hanging: Vec<_> = (0..9).map(|_| server.stream()).collect();
    server.answer(200, &list(&[service("b", 2)], 2, ""));
    let mut source = server.client().services();
    source.next().await.unwrap();
    assert_eq!(names(&source.next().await.unwrap()), ["b"]);
    let times = server.times();
    let last = times.last().unwrap().as_secs();
    assert!((3_600..4_100).contains(&last), "{last}");
    drop(hanging);
}

#[tokio::test(start_paused = true)]
async fn nodes_that_are_not_ready_are_looked_at_again() {
    let node = json!({ "metadata": { "name": "n" }, "status": { "conditions": [
        { "type": "Ready", "status": "False", "lastTransitionTime": "2999-01-01T00:00:00Z" },
    ] } });
    let server = Server::default();
    server.answer(200, &list(&[node], 1, ""));
    let events = server.stream();
    let mut source = server.client().nodes();
    source.next().await.unwrap();
    let again = timeout(Duration::from_secs(20), source.next())
        .await
        .unwrap()
        .unwrap();
    assert_eq!(again.len(), 1);
    assert_eq!(server.asked()[0], "GET /api/v1/nodes?limit=500");
    drop(events);
}

#[tokio::test(start_paused = true)]
async fn where_a_service_is_reached_is_written_into_its_status() {
    let server = Server::default();
    server.answer(200, "{}");
    server.answer(404, &error(404, "not found"));
    server.answer(422, &error(422, "invalid"));
    let directory = tempfile::tempdir().unwrap();
    let token = directory.path().join("token");
    std::fs::write(&token, "secret\n").unwrap();
    let client = server.client().token_file(&token);
    let ingress = [Ingress {
        ip: "20.0.0.1".parse().unwrap(),
        hostname: None,
    }];
    let key = ServiceKey::new("shop", "web");
    client.write_status(&key, &ingress).await.unwrap();
    client.write_status(&key, &ingress).await.unwrap();
    let error = client.write_status(&key, &[]).await.unwrap_err();
    assert!(error.to_string().ends_with("invalid"), "{error}");
    let (request, body) = server.last_request();
    assert_eq!(
        (request.method.as_str(), request.uri.path()),
        ("PATCH", "/api/v1/namespaces/shop/services/web/status")
    );
    assert_eq!(request.headers["authorization"], "Bearer secret");
    assert_eq!(
        request.headers["content-type"],
        "application/merge-patch+json"
    );
    assert_eq!(body, r#"{"status":{"loadBalancer":{"ingress":[]}}}"#);
}

#[tokio::test(start_paused = true)]
async fn watches_that_end_at_once_are_opened_with_pauses() {
    let server = Server::default();
    server.answer(200, &list(&[service("a", 1)], 1, ""));
    for _ in 0..200 {
        server.answer(200, "");
    }
    let mut source = server.client().services();
    source.next().await.unwrap();
    let waits = timeout(Duration::from_secs(60), source.next()).await;
    assert!(
        waits.is_err(),
        "nothing has changed, and nothing has failed"
    );
    let asked = server.asked().len();
    assert!((4..12).contains(&asked), "{asked} requests in a minute");
}

#[tokio::test(start_paused = true)]
async fn single_failures_in_a_quiet_cluster_do_not_add_up() {
    let server = Server::default();
    server.answer(200, &list(&[service("a", 1)], 1, ""));
    let mut quiet = Vec::new();
    for _ in 0..6 {
        quiet.push(server.stream());
        server.answer(500, "");
    }
    quiet.push(server.stream());
    let mut source = server.client().services();
    source.next().await.unwrap();
    for _ in 0..6 {
        source.next().await.unwrap_err();
    }
    assert!(
        timeout(Duration::from_secs(100), source.next())
            .await
            .is_err()
    );
    let times = server.times();
    let waits: Vec<_> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
    let short: Vec<_> = waits
        .iter()
        .filter(|wait| **wait < Duration::from_secs(200))
        .collect();
    assert!(
        short.iter().all(|wait| **wait <= Duration::from_secs(1)),
        "{waits:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_call_that_is_dropped_keeps_the_pages_that_it_has() {
    let server = Server::default();
    server.answer(200, &list(&[service("a", 1)], 7, "next"));
    let slow = server.stream();
    server.answer(200, &list(&[service("b", 2)], 7, ""));
    let mut source = server.client().services();
    assert!(
        timeout(Duration::from_secs(5), source.next())
            .await
            .is_err()
    );
    assert_eq!(names(&source.next().await.unwrap()), ["a", "b"]);
    assert_eq!(server.asked().len(), 3, "the first page is not read again");
    drop(slow);
}
