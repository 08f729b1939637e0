//! Limits: of security groups and their rules, of frontends, of labels.

use serde_json::{Value, json};

use crate::emulator::world::*;

fn security_rule(name: &str, priority: u64) -> Value {
    json!({ "name": name, "properties": {
        "protocol": "Tcp", "access": "Allow", "direction": "Inbound", "priority": priority,
        "sourcePortRange": "*", "destinationPortRange": "80",
        "sourceAddressPrefix": "Internet", "destinationAddressPrefix": "*",
    } })
}

fn group(rules: &[Value]) -> Value {
    json!({ "location": "westus", "properties": { "securityRules": rules } })
}

#[test]
fn a_security_group_has_six_rules_of_its_own() {
    let mut machine = world(at_once());
    let shown = ask(
        &mut machine,
        "GET",
        &network("networkSecurityGroups", "nsg"),
        None,
    )
    .expect(200)
    .body;
    assert_eq!(
        shown["properties"]["defaultSecurityRules"]
            .as_array()
            .unwrap()
            .len(),
        6
    );
    assert_eq!(shown["properties"]["securityRules"], json!([]));
}

#[test]
fn limits_of_security_groups_are_kept() {
    let mut machine = world(at_once());
    let path = network("networkSecurityGroups", "nsg");
    let many = |count: u64| {
        (0..count)
            .map(|number| security_rule(&format!("r{number}"), 100 + number))
            .collect::<Vec<_>>()
    };
    let mut wide = security_rule("wide", 100);
    wide["properties"]["sourceAddressPrefix"] = Value::Null;
    let sources: Vec<_> = (0..4_001_u32)
        .map(|n| std::net::Ipv4Addr::from(0x0a00_0000 + n).to_string())
        .collect();
    wide["properties"]["sourceAddressPrefixes"] = json!(sources);
    let mut outbound = security_rule("b", 500);
    outbound["properties"]["direction"] = json!("Outbound");
    for (rules, rejection) in [
        (many(1_000), None),
        (many(1_001), Some("SecurityRuleCountLimitReached")),
        (
            vec![wide],
            Some("SecurityRuleAddressesOrPortsPerSecurityGroupLimitReached"),
        ),
        (
            vec![security_rule("a", 500), security_rule("b", 500)],
            Some("SecurityRuleConflict"),
        ),
        (vec![security_rule("a", 500), outbound], None),
        (vec![security_rule("a", 99)], Some("InvalidRequestFormat")),
    ] {
        let answer = ask(&mut machine, "PUT", &path, Some(group(&rules)));
        match rejection {
            Some(code) => drop(answer.rejected(400, code)),
            None => drop(answer.expect(200)),
        }
    }
}

#[test]
fn rules_are_written_one_by_one_too() {
    let mut machine = world(at_once());
    let rules = format!("{}/securityRules", network("networkSecurityGroups", "nsg"));
    ask(
        &mut machine,
        "PUT",
        &format!("{rules}/a"),
        Some(security_rule("ignored", 500)),
    )
    .expect(201);
    ask(
        &mut machine,
        "PUT",
        &format!("{rules}/A"),
        Some(security_rule("a", 501)),
    )
    .expect(200);
    ask(
        &mut machine,
        "PUT",
        &format!("{rules}/b"),
        Some(security_rule("b", 501)),
    )
    .rejected(400, "SecurityRuleConflict");
    let list = ask(&mut machine, "GET", &rules, None).expect(200).body;
    assert_eq!(list["value"].as_array().unwrap().len(), 1);
    assert_eq!(
        (
            &list["value"][0]["name"],
            &list["value"][0]["properties"]["priority"]
        ),
        (&json!("a"), &json!(501))
    );
    ask(&mut machine, "DELETE", &format!("{rules}/a"), None).expect(202);
    ask(&mut machine, "DELETE", &format!("{rules}/a"), None).expect(204);
    ask(&mut machine, "GET", &format!("{rules}/a"), None).rejected(404, "NotFound");
}

#[test]
fn labels_are_one_of_their_kind_in_a_region() {
    let mut machine = world(at_once());
    let labelled = |label: &str| {
        let mut body = public_ip("Standard");
        body["properties"]["dnsSettings"] = json!({ "domainNameLabel": label });
        body
    };
    ask(
        &mut machine,
        "PUT",
        &network("publicIPAddresses", "a"),
        Some(labelled("front")),
    )
    .expect(201);
    ask(
        &mut machine,
        "PUT",
        &network("publicIPAddresses", "a"),
        Some(labelled("front")),
    )
    .expect(200);
    ask(
        &mut machine,
        "PUT",
        &network("publicIPAddresses", "b"),
        Some(labelled("FRONT")),
    )
    .rejected(400, "InvalidDomainNameLabel");
    ask(
        &mut machine,
        "PUT",
        &network("publicIPAddresses", "b"),
        Some(labelled("front")),
    )
    .rejected(400, "DnsRecordInUse");
}

#[test]
fn what_cannot_change_is_rejected() {
    let mut machine = world(at_once());
    let path = network("publicIPAddresses", "a");
    ask(&mut machine, "PUT", &path, Some(public_ip("Standard"))).expect(201);
    ask(&mut machine, "PUT", &path, Some(public_ip("Basic"))).rejected(400, "SkuCannotBeChanged");
    let mut elsewhere = public_ip("Standard");
    elsewhere["location"] = json!("eastus");
    ask(&mut machine, "PUT", &path, Some(elsewhere)).rejected(409, "InvalidResourceLocation");
    ask(
        &mut machine,
        "PUT",
        &path,
        Some(json!({ "sku": { "name": "Standard" } })),
    )
    .rejected(400, "LocationRequired");
    let dynamic = json!({ "location": "westus", "sku": { "name": "Standard" } });
    ask(
        &mut machine,
        "PUT",
        &network("publicIPAddresses", "b"),
        Some(dynamic),
    )
    .rejected(400, "StandardSkuPublicIPAddressesMustBeStatic");
}

#[test]
fn a_load_balancer_has_so_many_frontends_and_no_more() {
    let mut machine = world(at_once());
    let wide = json!({ "name": "wide", "properties": { "addressPrefix": "10.4.0.0/16" } });
    let body = json!({ "location": "westus", "properties": { "subnets": [wide] } });
    ask(
        &mut machine,
        "PUT",
        &network("virtualNetworks", "wide"),
        Some(body),
    )
    .expect(201);
    let subnet = format!("{}/subnets/wide", network("virtualNetworks", "wide"));
    for (sku, maximum) in [("Standard", 600), ("Basic", 200)] {
        let path = network("loadBalancers", sku);
        let with = |count: usize| {
            let place = json!({ "subnet": { "id": subnet } });
            let frontend = |number| json!({ "name": format!("f{number}"), "properties": place });
            let frontends: Vec<_> = (0..count).map(frontend).collect();
            let properties = json!({ "frontendIPConfigurations": frontends });
            Some(json!({ "location": "westus", "sku": { "name": sku }, "properties": properties }))
        };
        ask(&mut machine, "PUT", &path, with(maximum)).expect(201);
        let rejected = ask(&mut machine, "PUT", &path, with(maximum + 1));
        rejected.rejected(400, "LoadBalancerFrontendIPConfigurationCountLimitReached");
    }
}
