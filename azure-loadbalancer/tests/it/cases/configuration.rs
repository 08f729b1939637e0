use std::time::Duration;

use azure_loadbalancer::Config;
use azure_loadbalancer::config::{
    Cloud, DEFAULT_MAXIMUM_RULES, DEFAULT_MAXIMUM_RULES_OF_INTERFACE, Edition, LeftAddresses,
    LoadBalancerSku, MAXIMUM_RULES_IN_2018, PoolMembership,
};
use serde_json::json;

use crate::support::note;

#[test]
fn a_cloud_config_of_kubernetes_is_read() {
    let config: Config = serde_json::from_value(json!({
        "cloud": "AzurePublicCloud", "tenantId": "t", "aadClientId": "c", "useInstanceMetadata": true,
        "subscriptionId": "s", "resourceGroup": "rg", "location": "westus", "vnetName": "vnet",
        "subnetName": "subnet", "securityGroupName": "nsg", "primaryAvailabilitySetName": "as",
        "loadBalancerSku": "basic", "maximumLoadBalancerRuleCount": 0, "disableOutboundSNAT": true,
        "backendPoolType": "nodeIPConfiguration", "edition": "note"
    }))
    .expect("it reads");
    assert_eq!(config.validate(), Ok(()));
    assert_eq!(config.load_balancer_sku, LoadBalancerSku::Basic);
    assert_eq!(config.backend_pool_type, PoolMembership::NetworkInterface);
    assert_eq!(
        (config.primary_vm_set.as_str(), config.edition),
        ("as", Edition::Note)
    );
    assert!(config.disable_outbound_snat && config.exclude_master_from_standard_lb);
    assert_eq!(config.maximum_rules(), MAXIMUM_RULES_IN_2018);
    assert_eq!(config.not_ready_grace, Duration::from_secs(60));
}

#[test]
fn a_configuration_survives_writing_and_reading() {
    let own = Config {
        empty_grace: Some(Duration::from_secs(90)),
        left_addresses: LeftAddresses::Keep,
        ..Config::new("s", "rg", "westus")
    };
    for config in [note(), Config::new("s", "rg", "westus"), own] {
        let written = serde_json::to_value(&config).expect("it writes");
        assert_eq!(
            serde_json::from_value::<Config>(written).expect("it reads"),
            config
        );
    }
    let unset = Config {
        maximum_load_balancer_rule_count: 0,
        ..Config::new("s", "rg", "westus")
    };
    assert_eq!(unset.maximum_rules(), DEFAULT_MAXIMUM_RULES);
    let mut few = serde_json::to_value(&unset).expect("it writes");
    assert_eq!(
        unset.maximum_rules_of_interface(),
        DEFAULT_MAXIMUM_RULES_OF_INTERFACE
    );
    few["maximumInterfaceRuleCount"] = json!(20);
    let few: Config = serde_json::from_value(few).expect("it reads");
    assert_eq!(few.maximum_rules_of_interface(), 20);
}

/// The configuration that the installer of OpenShift writes.
const OF_OPENSHIFT: &str = r#"{
    "cloud": "AzurePublicCloud", "tenantId": "t", "aadClientId": "", "aadClientSecret": "", "subscriptionId": "s",
    "resourceGroup": "c-rg", "location": "westus", "vnetName": "c-vnet", "vnetResourceGroup": "c-rg", "subnetName": "c-worker-subnet",
    "securityGroupName": "c-nsg", "routeTableName": "c-node-routetable", "primaryAvailabilitySetName": "", "vmType": "",
    "primaryScaleSetName": "", "cloudProviderBackoff": true, "cloudProviderBackoffRetries": 0, "cloudProviderBackoffExponent": 0,
    "cloudProviderBackoffDuration": 6, "cloudProviderBackoffJitter": 0, "cloudProviderRateLimit": false,
    "useManagedIdentityExtension": true, "userAssignedIdentityID": "", "useInstanceMetadata": true, "loadBalancerSku": "standard",
    "excludeMasterFromStandardLB": null, "disableOutboundSNAT": null, "maximumLoadBalancerRuleCount": 0
}"#;

#[test]
fn what_generators_of_cloud_configs_write_is_read() {
    let read = |text: &str| serde_json::from_str::<Config>(text);
    let config = read(OF_OPENSHIFT).expect("it reads");
    assert_eq!(config.validate(), Ok(()));
    assert_eq!(config.primary_vm_set, "");
    assert!(config.exclude_master_from_standard_lb && !config.disable_outbound_snat);
    assert_eq!(config.maximum_rules(), DEFAULT_MAXIMUM_RULES);

    type Check = fn(&Config) -> bool;
    let cases: [(&str, &str, Check); 11] = [
        (
            r#""excludeMasterFromStandardLB": null"#,
            r#""excludeMasterFromStandardLB": false"#,
            |c| !c.exclude_master_from_standard_lb,
        ),
        (
            r#""disableOutboundSNAT": null"#,
            r#""disableOutboundSNAT": true"#,
            |c| c.disable_outbound_snat,
        ),
        (
            r#""loadBalancerSku": "standard""#,
            r#""loadBalancerSku": "Standard""#,
            |c| c.is_standard(),
        ),
        (
            r#""loadBalancerSku": "standard""#,
            r#""loadBalancerSku": "Basic""#,
            |c| !c.is_standard(),
        ),
        (
            r#""loadBalancerSku": "standard""#,
            r#""loadBalancerSku": """#,
            |c| c.is_standard(),
        ),
        (
            r#""vnetResourceGroup": "c-rg""#,
            r#""vnetResourceGroup": """#,
            |c| c.virtual_network_id().resource_group() == Some("c-rg"),
        ),
        (
            r#""vnetResourceGroup": "c-rg""#,
            r#""securityGroupResourceGroup": """#,
            |c| {
                c.security_group_id()
                    .is_some_and(|id| id.resource_group() == Some("c-rg"))
            },
        ),
        (
            r#""vnetResourceGroup": "c-rg""#,
            r#""loadBalancerResourceGroup": "lb-rg""#,
            |c| c.load_balancer_id("x").resource_group() == Some("lb-rg"),
        ),
        (
            r#""primaryAvailabilitySetName": "", "vmType": "","#,
            r#""primaryAvailabilitySetName": "as", "vmType": "vmss", "primaryVmSet": null,"#,
            |c| c.primary_vm_set == "as",
        ),
        (
            r#""primaryAvailabilitySetName": "", "vmType": "",
    "primaryScaleSetName": "","#,
            r#""primaryAvailabilitySetName": "as", "vmType": "VMSS", "primaryScaleSetName": "ss","#,
            |c| c.primary_vm_set == "ss",
        ),
        ("AzurePublicCloud", "AzureChinaCloud", |c| {
            c.cloud == Cloud::China
        }),
    ];
    for (from, to, check) in cases {
        let text = OF_OPENSHIFT.replace(from, to);
        assert_ne!(text, OF_OPENSHIFT, "{from}");
        let config = read(&text).unwrap_or_else(|error| panic!("{to}: {error}"));
        assert!(check(&config), "{to}: {config:?}");
    }
    let error =
        read(&OF_OPENSHIFT.replace(r#""standard""#, r#""premium""#)).expect_err("no such sku");
    assert!(
        error.to_string().contains("neither standard nor basic"),
        "{error}"
    );
}

#[test]
fn names_that_lead_elsewhere_are_rejected() {
    let good = serde_json::from_str::<Config>(OF_OPENSHIFT).expect("it reads");
    type Change = fn(&mut Config);
    let cases: [(&str, Change); 9] = [
        ("subscriptionId", |c| c.subscription_id = "s/..".to_owned()),
        ("resourceGroup", |c| c.resource_group = "..".to_owned()),
        ("resourceGroup", |c| c.resource_group = "a b".to_owned()),
        ("vnetResourceGroup", |c| {
            c.vnet_resource_group = Some("a/b".to_owned())
        }),
        ("loadBalancerResourceGroup", |c| {
            c.load_balancer_resource_group = Some("x.".to_owned())
        }),
        ("securityGroupResourceGroup", |c| {
            c.security_group_resource_group = Some("%2e%2e".to_owned())
        }),
        ("vnetName", |c| c.vnet_name = "..\\x".to_owned()),
        ("subnetName", |c| c.subnet_name = "a/b".to_owned()),
        ("securityGroupName", |c| {
            c.security_group_name = Some("%2e%2e".to_owned())
        }),
    ];
    for (field, change) in cases {
        let mut config = good.clone();
        change(&mut config);
        assert_eq!(config.validate().map_err(|error| error.field), Err(field));
    }
}
