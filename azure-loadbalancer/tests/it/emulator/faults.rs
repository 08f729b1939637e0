//! Injected faults.

use azure_loadbalancer::emulator::{Fault, FaultAction, RequestClass};
use bytes::Bytes;
use http::{Method, Request};
use serde_json::json;

use crate::emulator::world::*;

#[test]
fn a_lost_answer_is_a_write_that_was_made() {
    let mut machine = world(at_once());
    let path = network("publicIPAddresses", "a");
    let put = || {
        let body = Bytes::from(public_ip("Standard").to_string());
        Request::put(format!("{path}?api-version=2025-05-01"))
            .body(body)
            .unwrap()
    };
    machine.inject(Fault::new(FaultAction::LoseRequest).method(&Method::PUT));
    machine.inject(
        Fault::new(FaultAction::LoseAnswer)
            .method(&Method::PUT)
            .skip(1),
    );
    assert!(machine.answer(&put()).is_none());
    assert!(machine.get(&path).is_none(), "the request was lost");
    assert!(machine.answer(&put()).is_none());
    assert!(machine.get(&path).is_some(), "the answer was lost");
    assert_eq!(machine.answer(&put()).unwrap().status(), 200);
    let log = machine.requests();
    assert_eq!(
        log.iter().map(|one| one.status).collect::<Vec<_>>(),
        [None, None, Some(200)]
    );
    assert!(log.iter().all(|one| one.class == RequestClass::Write));
    assert_eq!(machine.counts().writes, 3);
}

#[test]
fn somebody_else_writes_first() {
    let mut machine = world(at_once());
    let path = network("publicIPAddresses", "a");
    machine.put(&path, public_ip("Standard")).unwrap();
    let etag = machine.get(&path).unwrap()["etag"]
        .as_str()
        .unwrap()
        .to_owned();
    machine.inject(Fault::new(FaultAction::Interfere));
    ask_with(
        &mut machine,
        "PUT",
        &path,
        Some(public_ip("Standard")),
        &[("if-match", &etag)],
    )
    .rejected(412, "PreconditionFailed");
}

#[test]
fn faults_are_set_and_requests_are_seen_over_http() {
    let mut machine = world(at_once());
    let fault = json!({ "path": "loadbalancers", "times": 2, "action": { "kind": "answer", "status": 429, "code": "TooManyRequests", "retry_after": 7 } });
    ask(
        &mut machine,
        "POST",
        "/emulator/faults",
        Some(fault.clone()),
    )
    .expect(204);
    let answer = ask(
        &mut machine,
        "GET",
        &format!("{NETWORK}/loadBalancers"),
        None,
    )
    .rejected(429, "TooManyRequests");
    assert_eq!(answer.header("retry-after"), Some("7"));
    ask(&mut machine, "DELETE", "/emulator/faults", None).expect(204);
    ask(
        &mut machine,
        "GET",
        &format!("{NETWORK}/loadBalancers"),
        None,
    )
    .expect(200);
    let seen = ask(&mut machine, "GET", "/emulator/requests", None)
        .expect(200)
        .body;
    assert_eq!(
        seen["counts"],
        json!({ "reads": 2, "writes": 0, "polls": 0 })
    );
    assert_eq!(seen["requests"][0]["code"], "TooManyRequests");
    ask(&mut machine, "POST", "/emulator/faults", Some(json!({}))).rejected(400, "InvalidFault");
    ask_with(
        &mut machine,
        "POST",
        "/emulator/faults",
        Some(fault),
        &[("origin", "http://evil.test")],
    )
    .rejected(403, "CrossOriginRequest");
    ask(&mut machine, "GET", "/emulator/nothing", None).rejected(404, "NotFound");
    assert_eq!(
        ask(&mut machine, "GET", "/emulator/resources", None)
            .expect(200)
            .body["value"]
            .as_array()
            .unwrap()
            .len(),
        2
    );
}
