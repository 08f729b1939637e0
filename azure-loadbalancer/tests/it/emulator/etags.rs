//! Etags: concurrent writes.

use azure_loadbalancer::emulator::{EmulatorOptions, Machine};
use serde_json::json;

use crate::emulator::world::*;

#[test]
fn a_write_over_what_has_changed_is_rejected() {
    let mut machine = world(EmulatorOptions::default());
    let path = network("publicIPAddresses", "a");
    let put = |machine: &mut Machine, header: (&str, &str)| {
        machine.finish_operations();
        ask_with(
            machine,
            "PUT",
            &path,
            Some(public_ip("Standard")),
            &[header],
        )
    };
    put(&mut machine, ("if-match", "W/\"x\"")).rejected(412, "PreconditionFailed");
    let created = put(&mut machine, ("if-none-match", "*")).expect(201);
    put(&mut machine, ("if-none-match", "*")).rejected(412, "PreconditionFailed");
    machine.finish_operations();
    let old = created.body["etag"].as_str().unwrap().to_owned();
    let current = machine.get(&path).unwrap()["etag"]
        .as_str()
        .unwrap()
        .to_owned();
    assert!(current.starts_with("W/\""));
    assert_ne!(old, current, "it changes once more when the write is over");
    let rejected = put(&mut machine, ("if-match", &old)).rejected(412, "PreconditionFailed");
    assert_eq!(
        rejected.body["error"]["details"][0]["code"],
        "PreconditionFailedEtagMismatch"
    );
    put(&mut machine, ("if-match", &current)).expect(200);
    put(&mut machine, ("if-match", "*")).expect(200);
    machine.finish_operations();
    ask_with(
        &mut machine,
        "DELETE",
        &path,
        None,
        &[("if-match", &current)],
    )
    .rejected(412, "PreconditionFailed");
}

#[test]
fn a_change_of_a_reference_changes_the_etag_of_what_is_referred_to() {
    let mut machine = world(at_once());
    let address = network("publicIPAddresses", "a");
    machine.put(&address, public_ip("Standard")).unwrap();
    let etag = |machine: &Machine, path: &str| machine.get(path).unwrap()["etag"].clone();
    let before = etag(&machine, &address);
    machine
        .put(
            &network("loadBalancers", "lb"),
            balancer("Standard", &[("f", &address)]),
        )
        .unwrap();
    let attached = etag(&machine, &address);
    assert_ne!(before, attached);
    // A write that leaves the frontend as it is leaves the address' etag as it is.
    let mut body = balancer("Standard", &[("f", &address)]);
    body["tags"] = json!({ "x": "y" });
    machine.put(&network("loadBalancers", "lb"), body).unwrap();
    assert_eq!(etag(&machine, &address), attached);

    // Joining a pool changes the load balancer, and so does a write of the pool.
    let lb = network("loadBalancers", "lb");
    let before = etag(&machine, &lb);
    let subnet = format!("{NETWORK}/virtualNetworks/vnet/subnets/subnet");
    let interface = json!({ "location": "westus", "properties": { "ipConfigurations": [{ "name": "c", "properties": {
        "subnet": { "id": subnet }, "loadBalancerBackendAddressPools": [{ "id": format!("{lb}/backendAddressPools/pool") }],
    } }] } });
    machine
        .put(&network("networkInterfaces", "n"), interface)
        .unwrap();
    let joined = etag(&machine, &lb);
    assert_ne!(before, joined);
    let pool = json!({ "properties": { "loadBalancerBackendAddresses": [] } });
    ask(
        &mut machine,
        "PUT",
        &format!("{lb}/backendAddressPools/more"),
        Some(pool),
    )
    .expect(201);
    assert_ne!(etag(&machine, &lb), joined);
    let shown = machine.get(&lb).unwrap();
    assert_eq!(
        shown["properties"]["backendAddressPools"][1]["etag"], shown["etag"],
        "parts have the etag of the whole"
    );
}
