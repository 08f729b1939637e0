use std::collections::HashSet;

use serde_json::{Value, json};

use super::{ArmId, LoadBalancer, NetworkSecurityGroup, ProbeProtocol, PublicIpAddress};

#[test]
fn ids_are_equal_and_hash_alike_in_any_case() {
    let one = ArmId::network("s", "RG", "loadBalancers", "Lb");
    let other = ArmId::new(one.as_str().to_uppercase());
    assert_eq!(one, other);
    assert_eq!(one.cmp(&other), std::cmp::Ordering::Equal);
    assert!(HashSet::from([one.clone()]).contains(&other));
    assert_ne!(one, ArmId::network("s", "RG", "loadBalancers", "Lb2"));
}

#[test]
fn parts_of_ids_are_found() {
    let lb = ArmId::network("s", "rg", "loadBalancers", "lb");
    let probe = lb.child("probes", "p");
    assert_eq!(probe.name(), "p");
    assert_eq!(probe.resource_group(), Some("rg"));
    assert_eq!(probe.parent(), Some(lb.clone()));
    assert!(probe.is_within(&lb));
    assert!(!lb.is_within(&lb));
    assert!(!ArmId::network("s", "rg", "loadBalancers", "lb2").is_within(&lb));
    assert_eq!(ArmId::new("").segment("resourceGroups"), None);
    assert_eq!(ArmId::new("/x").parent(), None);
}

#[test]
fn what_is_not_known_survives_reading_and_writing() {
    let document = json!({
        "id": "/subscriptions/s/resourceGroups/rg/providers/Microsoft.Network/loadBalancers/lb",
        "name": "lb",
        "type": "Microsoft.Network/loadBalancers",
        "location": "westus",
        "etag": "W/\"1\"",
        "sku": {"name": "Standard", "tier": "Regional"},
        "extendedLocation": {"name": "edge"},
        "properties": {
            "resourceGuid": "g",
            "frontendIPConfigurations": [{
                "name": "f", "zones": ["1"],
                "properties": {
                    "privateIPAddress": "10.0.0.4", "privateIPAllocationMethod": "Dynamic",
                    "privateIPAddressVersion": "IPv4", "subnet": {"id": "x"}
                }
            }],
            "backendAddressPools": [{"name": "p", "properties": {"backendIPConfigurations": [{"id": "y"}]}}],
            "loadBalancingRules": [{
                "name": "r",
                "properties": {
                    "backendAddressPools": [], "frontendPort": 80, "backendPort": 80, "enableFloatingIP": true,
                    "enableTcpReset": false, "disableOutboundSnat": true, "loadDistribution": "SourceIP",
                    "protocol": "Tcp", "idleTimeoutInMinutes": 4
                }
            }],
            "probes": [{"name": "q", "properties": {
                "protocol": "Http", "port": 1, "intervalInSeconds": 5, "numberOfProbes": 2, "probeThreshold": 2,
                "requestPath": "/", "noHealthyBackendsBehavior": "AllProbedDown"
            }}],
            "inboundNatRules": [{"name": "n", "properties": {"frontendPort": 22, "frontendIPConfiguration": {"id": "z"}}}],
            "outboundRules": [{"name": "o", "properties": {"allocatedOutboundPorts": 8, "frontendIPConfigurations": [{"id": "z"}]}}]
        }
    });
    let read: LoadBalancer = serde_json::from_value(document.clone()).expect("it reads");
    assert_eq!(serde_json::to_value(&read).expect("it writes"), document);
}

#[test]
fn null_and_absent_read_as_empty() {
    let group: NetworkSecurityGroup = serde_json::from_value(
        json!({"name": "n", "tags": null, "properties": {"securityRules": null}}),
    )
    .expect("it reads");
    assert!(group.properties.security_rules.is_empty());
    let address: PublicIpAddress =
        serde_json::from_value(json!({"name": "n", "properties": null})).expect("it reads");
    assert_eq!(address.properties.ip_address, None);
}

#[test]
fn enumerations_ignore_case_and_keep_strangers() {
    let known: ProbeProtocol = serde_json::from_value(json!("HTTP")).expect("it reads");
    assert_eq!(known, ProbeProtocol::Http);
    let stranger: ProbeProtocol = serde_json::from_value(json!("Quic")).expect("it reads");
    assert_eq!(
        serde_json::to_value(stranger).expect("it writes"),
        Value::from("Quic")
    );
}

#[test]
fn tags_are_found_in_any_case() {
    let address: PublicIpAddress =
        serde_json::from_value(json!({"tags": {"Service": "a/b"}})).expect("it reads");
    assert_eq!(address.tag("service"), Some("a/b"));
}
