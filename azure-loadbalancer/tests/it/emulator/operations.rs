//! Asynchronous operations.

use azure_loadbalancer::emulator::{EmulatorOptions, Fault, FaultAction};

use crate::emulator::world::*;

fn target(answer: &Answer, header: &str) -> String {
    let address = answer.header(header).unwrap();
    address.strip_prefix("http://arm.test").unwrap().to_owned()
}

#[test]
fn an_address_appears_when_the_write_is_over() {
    let mut machine = world(
        EmulatorOptions::default()
            .operation_requests(2)
            .retry_after(3),
    );
    let path = network("publicIPAddresses", "a");
    let created = ask(&mut machine, "PUT", &path, Some(public_ip("Standard"))).expect(201);
    assert_eq!(created.body["properties"]["provisioningState"], "Updating");
    assert!(created.body["properties"]["ipAddress"].is_null());
    assert_eq!(created.header("retry-after"), Some("3"));
    let poll = target(&created, "azure-asyncoperation");
    assert_eq!(
        ask(&mut machine, "GET", &poll, None).expect(200).body["status"],
        "InProgress"
    );
    let done = ask(&mut machine, "GET", &poll, None).expect(200);
    assert_eq!(
        (done.body["status"].as_str(), done.header("retry-after")),
        (Some("Succeeded"), None)
    );
    let shown = ask(&mut machine, "GET", &path, None).expect(200);
    assert_eq!(shown.body["properties"]["ipAddress"], "20.0.0.1");
    assert_eq!(shown.body["properties"]["provisioningState"], "Succeeded");
}

#[test]
fn only_one_write_at_a_time() {
    let mut machine = world(EmulatorOptions::default().operation_requests(3));
    let path = network("publicIPAddresses", "a");
    ask(&mut machine, "PUT", &path, Some(public_ip("Standard"))).expect(201);
    let body = balancer("Standard", &[("f", &path)]);
    ask(
        &mut machine,
        "PUT",
        &network("loadBalancers", "lb"),
        Some(body.clone()),
    )
    .rejected(409, "ReferencedResourceNotProvisioned");
    ask(&mut machine, "PUT", &path, Some(public_ip("Standard")))
        .rejected(409, "AnotherOperationInProgress");
    ask(&mut machine, "GET", &path, None).expect(200);
    ask(
        &mut machine,
        "PUT",
        &network("loadBalancers", "lb"),
        Some(body),
    )
    .expect(201);
}

#[test]
fn a_deletion_takes_time_too() {
    let mut machine = world(EmulatorOptions::default().operation_requests(2));
    with_balancer(&mut machine);
    let gone = ask(
        &mut machine,
        "DELETE",
        &network("loadBalancers", "lb"),
        None,
    )
    .expect(202);
    assert!(gone.body.is_null());
    // The address is in use until the operation completes.
    ask(
        &mut machine,
        "DELETE",
        &network("publicIPAddresses", "a"),
        None,
    )
    .rejected(400, "PublicIPAddressCannotBeDeleted");
    let location = target(&gone, "location");
    ask(&mut machine, "GET", &location, None).expect(204);
    ask(&mut machine, "GET", &network("loadBalancers", "lb"), None)
        .rejected(404, "ResourceNotFound");
    ask(
        &mut machine,
        "DELETE",
        &network("publicIPAddresses", "a"),
        None,
    )
    .expect(202);
    ask(
        &mut machine,
        "GET",
        &location.replace("operationResults/", "operationResults/x"),
        None,
    )
    .rejected(404, "OperationNotFound");
}

#[test]
fn a_write_that_fails_later_leaves_what_was_there() {
    let mut machine = world(EmulatorOptions::default().operation_requests(1));
    let path = network("publicIPAddresses", "a");
    machine.put(&path, public_ip("Standard")).unwrap();
    let before = machine.get(&path).unwrap();
    let fails = FaultAction::FailOperation {
        code: "InternalServerError".to_owned(),
        canceled: false,
    };
    machine.inject(Fault::new(fails).method(&http::Method::PUT));
    let mut body = public_ip("Standard");
    body["tags"] = serde_json::json!({ "lost": "yes" });
    let taken = ask(&mut machine, "PUT", &path, Some(body)).expect(200);
    let poll = ask(
        &mut machine,
        "GET",
        &target(&taken, "azure-asyncoperation"),
        None,
    )
    .expect(200);
    assert_eq!(poll.body["status"], "Failed");
    assert_eq!(poll.body["error"]["code"], "InternalServerError");
    let after = machine.get(&path).unwrap();
    assert_eq!(after["properties"]["provisioningState"], "Failed");
    assert_eq!(after["tags"], before["tags"]);
    // The next write repairs it.
    ask(&mut machine, "PUT", &path, Some(public_ip("Standard"))).expect(200);
    machine.finish_operations();
    assert_eq!(
        machine.get(&path).unwrap()["properties"]["provisioningState"],
        "Succeeded"
    );
}
