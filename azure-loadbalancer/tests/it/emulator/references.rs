//! References: ids must lead somewhere, resources in use are not deleted, and used resources list their
//! users.

use azure_loadbalancer::emulator::EmulatorOptions;
use serde_json::{Value, json};

use crate::emulator::world::*;

#[test]
fn ids_in_a_load_balancer_lead_somewhere() {
    let mut machine = world(at_once());
    for (name, sku) in [("a", "Standard"), ("basic", "Basic"), ("taken", "Standard")] {
        machine
            .put(&network("publicIPAddresses", name), public_ip(sku))
            .unwrap();
    }
    let ip = |name: &str| network("publicIPAddresses", name);
    let subnet = |name: &str| format!("{NETWORK}/virtualNetworks/vnet/subnets/{name}");
    machine
        .put(
            &network("loadBalancers", "other"),
            balancer("Standard", &[("f", &ip("taken"))]),
        )
        .unwrap();
    for (frontends, code) in [
        (
            vec![],
            "LoadBalancerWithoutFrontendIPCantHaveChildResources",
        ),
        (vec![("f", ip("nope"))], "InvalidResourceReference"),
        (vec![("f", subnet("nope"))], "InvalidResourceReference"),
        (vec![("f", ip("basic"))], "PublicIPAndLBSkuDoNotMatch"),
        (vec![("f", ip("taken"))], "PublicIPAddressInUse"),
        (vec![("f", ip("a")), ("g", ip("A"))], "PublicIPAddressInUse"),
        (
            vec![("f", ip("a")), ("g", subnet("subnet"))],
            "LoadBalancerFrontendsMixPublicAndPrivate",
        ),
        (
            vec![("f", ip("a")), ("F", subnet("subnet"))],
            "InvalidRequestFormat",
        ),
        (vec![("-f", ip("a"))], "InvalidResourceName"),
    ] {
        let frontends: Vec<_> = frontends
            .iter()
            .map(|(name, id)| (*name, id.as_str()))
            .collect();
        let answer = ask(
            &mut machine,
            "PUT",
            &network("loadBalancers", "lb"),
            Some(balancer("Standard", &frontends)),
        );
        answer.rejected(400, code);
    }
    assert!(machine.get(&network("loadBalancers", "lb")).is_none());
}

#[test]
fn a_load_balancer_and_its_public_address_are_in_one_region() {
    let mut machine = world(at_once());
    for (name, region) in [("far", "eastus"), ("near", "West US")] {
        let mut address = public_ip("Standard");
        address["location"] = json!(region);
        machine
            .put(&network("publicIPAddresses", name), address)
            .unwrap();
    }
    let mut put = |name: &str| {
        let address = network("publicIPAddresses", name);
        let body = balancer("Standard", &[("f", &address)]);
        ask(
            &mut machine,
            "PUT",
            &network("loadBalancers", "lb"),
            Some(body),
        )
    };
    put("far").rejected(400, "InvalidResourceReference");
    put("near").expect(201);
}

#[test]
fn parts_of_a_load_balancer_are_checked() {
    let mut machine = world(at_once());
    machine
        .put(&network("publicIPAddresses", "a"), public_ip("Standard"))
        .unwrap();
    let plain = balancer("Standard", &[("f", &network("publicIPAddresses", "a"))]);
    let probe = |protocol: &str, path: Value| json!({ "name": "p", "properties": { "protocol": protocol, "port": 80, "requestPath": path } });
    let mut dangling = rule("r", "f", 80);
    dangling["properties"]["probe"] =
        json!({ "id": format!("{}/probes/p", network("loadBalancers", "lb")) });
    let mut of_other = rule("r", "f", 80);
    of_other["properties"]["backendAddressPool"]["id"] = json!(format!(
        "{}/backendAddressPools/pool",
        network("loadBalancers", "other")
    ));
    let mut same_backend = rule("q", "f", 81);
    same_backend["properties"]["backendPort"] = json!(80);
    let mut slow = rule("r", "f", 80);
    slow["properties"]["idleTimeoutInMinutes"] = json!(101);
    let address = |ip: &str| json!({ "name": ip, "properties": { "ipAddress": ip } });
    let vnet = json!({ "id": network("virtualNetworks", "vnet") });
    for (field, value, code) in [
        (
            "loadBalancingRules",
            json!([rule("r", "nope", 80)]),
            "InvalidResourceReference",
        ),
        (
            "loadBalancingRules",
            json!([dangling]),
            "InvalidResourceReference",
        ),
        (
            "loadBalancingRules",
            json!([of_other]),
            "InvalidResourceReference",
        ),
        (
            "loadBalancingRules",
            json!([rule("r", "f", 80), rule("q", "f", 80)]),
            "RulesUseSameFrontendPortAndProtocol",
        ),
        (
            "loadBalancingRules",
            json!([rule("r", "f", 80), same_backend]),
            "RulesUseSameBackendPortProtocolAndPool",
        ),
        (
            "loadBalancingRules",
            json!([rule("r", "f", 0)]),
            "InvalidRequestFormat",
        ),
        ("loadBalancingRules", json!([slow]), "InvalidRequestFormat"),
        (
            "loadBalancingRules",
            json!([{ "name": "r" }]),
            "InvalidRequestFormat",
        ),
        ("loadBalancingRules", json!({}), "InvalidRequestFormat"),
        (
            "probes",
            json!([probe("Http", Value::Null)]),
            "InvalidRequestFormat",
        ),
        (
            "probes",
            json!([probe("Tcp", json!("/"))]),
            "InvalidRequestFormat",
        ),
        (
            "probes",
            json!([probe("Icmp", Value::Null)]),
            "InvalidRequestFormat",
        ),
        (
            "backendAddressPools",
            json!([{ "name": "pool", "properties": { "loadBalancerBackendAddresses": [address("10.0.0.9")] } }]),
            "InvalidBackendAddress",
        ),
        (
            "backendAddressPools",
            json!([{ "name": "pool", "properties": { "virtualNetwork": vnet, "loadBalancerBackendAddresses": [address("10.0.0.x")] } }]),
            "InvalidBackendAddress",
        ),
        (
            "outboundRules",
            json!([{ "name": "o", "properties": { "frontendIPConfigurations": [{ "id": "/x" }] } }]),
            "InvalidResourceReference",
        ),
    ] {
        let mut body = plain.clone();
        body["properties"][field] = value;
        let answer = ask(
            &mut machine,
            "PUT",
            &network("loadBalancers", "lb"),
            Some(body.clone()),
        );
        assert_eq!(
            (answer.status, answer.code()),
            (400, code),
            "{}",
            body["properties"][field]
        );
    }
}

#[test]
fn what_is_used_is_not_deleted() {
    let mut machine = world(at_once());
    with_balancer(&mut machine);
    let subnet = format!("{NETWORK}/virtualNetworks/vnet/subnets/subnet");
    let interface = json!({ "location": "westus", "properties": {
        "networkSecurityGroup": { "id": network("networkSecurityGroups", "nsg") },
        "ipConfigurations": [{ "name": "c", "properties": {
            "subnet": { "id": subnet },
            "loadBalancerBackendAddressPools": [{ "id": format!("{}/backendAddressPools/POOL", network("loadBalancers", "lb")) }],
        } }],
    } });
    ask(
        &mut machine,
        "PUT",
        &network("networkInterfaces", "n"),
        Some(interface),
    )
    .expect(201);
    for (path, code) in [
        (
            network("publicIPAddresses", "a"),
            "PublicIPAddressCannotBeDeleted",
        ),
        (
            network("networkSecurityGroups", "nsg"),
            "InUseNetworkSecurityGroupCannotBeDeleted",
        ),
        (
            network("virtualNetworks", "vnet"),
            "InUseSubnetCannotBeDeleted",
        ),
        (subnet, "InUseSubnetCannotBeDeleted"),
        (
            format!(
                "{}/backendAddressPools/pool",
                network("loadBalancers", "lb")
            ),
            "InUseBackendAddressPoolCannotBeDeleted",
        ),
    ] {
        ask(&mut machine, "DELETE", &path, None).rejected(400, code);
    }
    // A load balancer can be deleted with members; they leave its pool.
    ask(
        &mut machine,
        "DELETE",
        &network("loadBalancers", "lb"),
        None,
    )
    .expect(202);
    let interface = machine.get(&network("networkInterfaces", "n")).unwrap();
    let pools = &interface["properties"]["ipConfigurations"][0]["properties"]["loadBalancerBackendAddressPools"];
    assert_eq!(pools, &json!([]));
    ask(
        &mut machine,
        "DELETE",
        &network("publicIPAddresses", "a"),
        None,
    )
    .expect(202);
    ask(
        &mut machine,
        "DELETE",
        &network("publicIPAddresses", "a"),
        None,
    )
    .expect(204);
}

#[test]
fn who_is_used_knows_by_whom() {
    let mut machine = world(at_once());
    with_balancer(&mut machine);
    let lb = network("loadBalancers", "lb");
    let mut body = balancer("Standard", &[("f", &network("publicIPAddresses", "a"))]);
    let mut first = rule("r1", "f", 80);
    first["properties"]["probe"] = json!({ "id": format!("{lb}/PROBES/P") });
    body["properties"]["loadBalancingRules"] = json!([first, rule("r2", "F", 81)]);
    body["properties"]["probes"] =
        json!([{ "name": "p", "properties": { "protocol": "Tcp", "port": 1080 } }]);
    machine.put(&lb, body).unwrap();

    let shown = machine.get(&lb).unwrap();
    let rules = json!([{ "id": format!("{lb}/loadBalancingRules/r1") }, { "id": format!("{lb}/loadBalancingRules/r2") }]);
    let part = |collection: &str| &shown["properties"][collection][0];
    assert_eq!(
        part("frontendIPConfigurations")["properties"]["loadBalancingRules"],
        rules
    );
    assert_eq!(
        part("backendAddressPools")["properties"]["loadBalancingRules"],
        rules
    );
    assert_eq!(
        part("probes")["properties"]["loadBalancingRules"],
        json!([rules[0]])
    );
    assert_eq!(
        part("loadBalancingRules")["properties"]["idleTimeoutInMinutes"],
        4,
        "defaults are filled in"
    );
    assert_eq!(
        shown["sku"],
        json!({ "name": "Standard", "tier": "Regional" })
    );
    let address = machine.get(&network("publicIPAddresses", "a")).unwrap();
    assert_eq!(
        address["properties"]["ipConfiguration"]["id"],
        format!("{lb}/frontendIPConfigurations/f")
    );

    // A rendered resource can be written back unchanged.
    let again = ask(&mut machine, "PUT", &lb, Some(shown.clone())).expect(200);
    assert_eq!(without_etags(again.body), without_etags(shown));
}

fn without_etags(mut value: Value) -> Value {
    match &mut value {
        Value::Object(fields) => {
            fields.remove("etag");
            for field in fields.values_mut() {
                *field = without_etags(field.take());
            }
        }
        Value::Array(items) => items
            .iter_mut()
            .for_each(|item| *item = without_etags(item.take())),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
    value
}

#[test]
fn private_addresses_are_given_out_once() {
    let mut machine = world(at_once());
    let subnet = format!("{NETWORK}/virtualNetworks/vnet/subnets/sub2");
    let lb = network("loadBalancers", "lb");
    let address = |machine: &azure_loadbalancer::emulator::Machine, index: usize| {
        machine.get(&lb).unwrap()["properties"]["frontendIPConfigurations"][index]["properties"]["privateIPAddress"].clone()
    };
    ask(
        &mut machine,
        "PUT",
        &lb,
        Some(balancer("Standard", &[("f", &subnet)])),
    )
    .expect(201);
    assert_eq!(
        address(&machine, 0),
        "10.0.1.4",
        "Azure keeps the first four"
    );
    // It stays, also when another comes before it.
    ask(
        &mut machine,
        "PUT",
        &lb,
        Some(balancer("Standard", &[("e", &subnet), ("f", &subnet)])),
    )
    .expect(200);
    assert_eq!(
        (address(&machine, 0), address(&machine, 1)),
        (json!("10.0.1.5"), json!("10.0.1.4"))
    );
    // A /29 has eight addresses, of which five are Azure's own.
    let four = [
        ("e", subnet.as_str()),
        ("f", &subnet),
        ("g", &subnet),
        ("h", &subnet),
    ];
    ask(&mut machine, "PUT", &lb, Some(balancer("Standard", &four))).rejected(400, "SubnetIsFull");
    for (wanted, code) in [
        ("10.0.0.9", "PrivateIPAddressNotInSubnet"),
        ("x", "InvalidIPAddress"),
    ] {
        let mut body = balancer("Standard", &[("f", &subnet)]);
        let properties = &mut body["properties"]["frontendIPConfigurations"][0]["properties"];
        properties["privateIPAllocationMethod"] = json!("Static");
        properties["privateIPAddress"] = json!(wanted);
        ask(&mut machine, "PUT", &lb, Some(body)).rejected(400, code);
    }
}

#[test]
fn ids_come_back_in_a_case_by_chance() {
    let mut machine = world(
        EmulatorOptions::default()
            .operation_requests(0)
            .id_casing_seed(3),
    );
    with_balancer(&mut machine);
    let path = network("loadBalancers", "lb");
    let asked = network("publicIPAddresses", "a");
    let mut seen = std::collections::BTreeSet::new();
    for _ in 0..10 {
        let shown = ask(&mut machine, "GET", &path, None).expect(200).body;
        let id = shown["properties"]["frontendIPConfigurations"][0]["properties"]["publicIPAddress"]["id"].as_str().unwrap().to_owned();
        assert!(id.eq_ignore_ascii_case(&asked), "{id}");
        assert_eq!(shown["id"], path);
        // A resource with ids in another case can be written back.
        ask(&mut machine, "PUT", &path, Some(shown)).expect(200);
        seen.insert(id);
    }
    assert!(seen.len() > 1);
}
