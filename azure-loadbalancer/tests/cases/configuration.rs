use std::time::Duration;

use azure_loadbalancer::Config;
use azure_loadbalancer::config::{
    DEFAULT_MAXIMUM_RULES, Edition, LoadBalancerSku, MAXIMUM_RULES_IN_2018, PoolMembership,
};
use serde_json::json;

use super::support::note;

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
    assert_eq!(config.not_ready_grace_seconds, Duration::from_secs(60));
}

#[test]
fn a_configuration_survives_writing_and_reading() {
    for config in [note(), Config::new("s", "rg", "westus")] {
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
}
