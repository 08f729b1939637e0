//! Members of pools, and ports of frontends.

use azure_loadbalancer::emulator::Machine;
use serde_json::{Value, json};

use crate::emulator::world::*;

fn interface(pools: &[&str]) -> Value {
    let pools: Vec<_> = pools.iter().map(|id| json!({ "id": id })).collect();
    json!({ "location": "westus", "properties": { "ipConfigurations": [{ "name": "c", "properties": {
        "subnet": { "id": format!("{NETWORK}/virtualNetworks/vnet/subnets/subnet") },
        "loadBalancerBackendAddressPools": pools,
    } }] } })
}

fn pool_of_addresses() -> Value {
    json!({ "name": "pool", "properties": {
        "virtualNetwork": { "id": network("virtualNetworks", "vnet") },
        "loadBalancerBackendAddresses": [{ "name": "n", "properties": { "ipAddress": "10.0.0.77" } }],
    } })
}

#[test]
fn a_pool_has_addresses_or_interfaces() {
    let mut machine = world(at_once());
    with_balancer(&mut machine);
    let (lb, nic) = (
        network("loadBalancers", "lb"),
        network("networkInterfaces", "nic"),
    );
    let pool = format!("{lb}/backendAddressPools/pool");
    ask(&mut machine, "PUT", &nic, Some(interface(&[&pool]))).expect(201);

    // The interface is shown as a member, and written back as it is shown.
    let shown = ask(&mut machine, "GET", &lb, None).expect(200).body;
    let members = &shown["properties"]["backendAddressPools"][0]["properties"]["loadBalancerBackendAddresses"];
    assert_eq!(*members, json!([{ "name": "nic_c", "properties": {} }]));
    ask(&mut machine, "PUT", &lb, Some(shown.clone())).expect(200);
    let mut mixed = shown;
    mixed["properties"]["backendAddressPools"] = json!([pool_of_addresses()]);
    ask(&mut machine, "PUT", &lb, Some(mixed.clone()))
        .rejected(400, "BackendAddressPoolMixesAddressesAndInterfaces");
    ask(&mut machine, "PUT", &pool, Some(pool_of_addresses()))
        .rejected(400, "BackendAddressPoolMixesAddressesAndInterfaces");

    // The other way round.
    ask(&mut machine, "PUT", &nic, Some(interface(&[]))).expect(200);
    ask(&mut machine, "PUT", &lb, Some(mixed)).expect(200);
    ask(&mut machine, "PUT", &nic, Some(interface(&[&pool])))
        .rejected(400, "BackendAddressPoolMixesAddressesAndInterfaces");
}

#[test]
fn the_interfaces_of_a_load_balancer_are_those_in_its_pools() {
    let mut machine = world(at_once());
    with_balancer(&mut machine);
    let lb = network("loadBalancers", "lb");
    let pool = format!("{lb}/backendAddressPools/pool");
    let path = format!("{lb}/networkInterfaces");
    let ids = |machine: &mut Machine| {
        let list = ask(machine, "GET", &path, None).expect(200).body;
        let items = list["value"].as_array().unwrap().clone();
        let id = |one: &Value| one["id"].as_str().unwrap().to_owned();
        items.iter().map(id).collect::<Vec<_>>()
    };
    assert_eq!(ids(&mut machine), [""; 0]);
    let nic = |name: &str| network("networkInterfaces", name);
    for (name, pools) in [("nic", &[&*pool][..]), ("other", &[])] {
        ask(&mut machine, "PUT", &nic(name), Some(interface(pools))).expect(201);
    }
    assert_eq!(ids(&mut machine), [nic("nic")]);
    // It is shown as at its own place.
    let listed = ask(&mut machine, "GET", &path, None).expect(200).body;
    let own = ask(&mut machine, "GET", &nic("nic"), None).expect(200).body;
    assert_eq!(listed["value"][0], own);
    ask(&mut machine, "PUT", &nic("nic"), Some(interface(&[]))).expect(200);
    assert_eq!(ids(&mut machine), [""; 0]);
    ask(&mut machine, "PUT", &path, Some(json!({}))).rejected(405, "MethodNotAllowed");
}

#[test]
fn one_configuration_of_an_interface_is_primary() {
    let mut machine = world(at_once());
    let nic = network("networkInterfaces", "nic");
    let body = |said: &[Value]| {
        let mut body = interface(&[]);
        let list = &mut body["properties"]["ipConfigurations"];
        let one = list[0].clone();
        let all = said.iter().enumerate().map(|(index, primary)| {
            let mut one = one.clone();
            one["name"] = json!(format!("c{index}"));
            if !primary.is_null() {
                one["properties"]["primary"] = primary.clone();
            }
            one
        });
        *list = all.collect();
        body
    };
    let none = Value::Null;
    for (said, expected) in [
        (vec![none.clone()], vec![true]),
        (vec![none.clone(), none.clone()], vec![true, false]),
        (vec![none, json!(true)], vec![false, true]),
    ] {
        ask(&mut machine, "PUT", &nic, Some(body(&said)));
        let shown = ask(&mut machine, "GET", &nic, None).expect(200).body;
        let list = shown["properties"]["ipConfigurations"].as_array().unwrap();
        let primary: Vec<_> = list
            .iter()
            .map(|one| one["properties"]["primary"] == true)
            .collect();
        assert_eq!(primary, expected, "{said:?}");
        assert!(
            list.iter()
                .all(|one| one["properties"]["primary"].is_boolean())
        );
    }
}

#[test]
fn a_port_of_a_frontend_is_had_once() {
    let mut machine: Machine = world(at_once());
    with_balancer(&mut machine);
    let lb = network("loadBalancers", "lb");
    let frontend = json!({ "id": format!("{lb}/frontendIPConfigurations/f") });
    let nat = |protocol: &str, port: u16| {
        json!({ "name": "nat", "properties": {
        "frontendIPConfiguration": frontend, "protocol": protocol, "frontendPort": port, "backendPort": 22,
    } })
    };
    let range = |first: u16, last: u16| {
        json!({ "name": "range", "properties": {
        "frontendIPConfiguration": frontend, "protocol": "Tcp", "backendPort": 22,
        "frontendPortRangeStart": first, "frontendPortRangeEnd": last,
    } })
    };
    let mut all_ports = rule("all", "f", 0);
    all_ports["properties"]["protocol"] = json!("All");
    for (field, parts, is_taken) in [
        ("inboundNatRules", json!([nat("Tcp", 80)]), true),
        ("inboundNatRules", json!([nat("All", 80)]), true),
        ("inboundNatRules", json!([nat("Udp", 80)]), false),
        ("inboundNatRules", json!([nat("Tcp", 81)]), false),
        ("inboundNatRules", json!([range(79, 80)]), true),
        ("inboundNatPools", json!([range(80, 90)]), true),
        ("inboundNatPools", json!([range(81, 90)]), false),
        (
            "loadBalancingRules",
            json!([rule("r", "f", 80), all_ports]),
            true,
        ),
    ] {
        let mut body = balancer("Standard", &[("f", &network("publicIPAddresses", "a"))]);
        body["properties"]["loadBalancingRules"] = json!([rule("r", "f", 80)]);
        body["properties"][field] = parts.clone();
        let answer = ask(&mut machine, "PUT", &lb, Some(body));
        if is_taken {
            answer.rejected(400, "RulesUseSameFrontendPortAndProtocol");
        } else {
            assert_eq!(answer.status, 200, "{parts}: {}", answer.body);
        }
    }
}
