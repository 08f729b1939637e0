//! Service tags, which stand for the addresses of services in security rules.

/// The service tags without regions.
const PLAIN: [&str; 9] = [
    "AzureLoadBalancer",
    "AZURE_LOADBALANCER",
    "AzureTrafficManager",
    "Internet",
    "INTERNET",
    "VirtualNetwork",
    "VIRTUAL_NETWORK",
    "ChaosStudio",
    "GatewayManager",
];

/// The service tags that may have a region after a dot, from "Virtual network service tags" of Azure's
/// documentation. That list grows, and this one is incomplete.
const REGIONAL: [&str; 56] = [
    "ActionGroup",
    "ApiManagement",
    "AppConfiguration",
    "AppService",
    "AppServiceManagement",
    "ApplicationInsightsAvailability",
    "AutonomousDevelopmentPlatform",
    "AzureActiveDirectory",
    "AzureActiveDirectoryDomainServices",
    "AzureAdvancedThreatProtection",
    "AzureArcInfrastructure",
    "AzureAttestation",
    "AzureBackup",
    "AzureBotService",
    "AzureCloud",
    "AzureCognitiveSearch",
    "AzureConnectors",
    "AzureContainerRegistry",
    "AzureCosmosDB",
    "AzureDatabricks",
    "AzureDataExplorerManagement",
    "AzureDevOps",
    "AzureDigitalTwins",
    "AzureEventGrid",
    "AzureFrontDoor.Backend",
    "AzureFrontDoor.FirstParty",
    "AzureFrontDoor.Frontend",
    "AzureInformationProtection",
    "AzureIoTHub",
    "AzureKeyVault",
    "AzureMachineLearning",
    "AzureMonitor",
    "AzurePlatformDNS",
    "AzurePlatformIMDS",
    "AzurePlatformLKM",
    "AzureResourceManager",
    "AzureSignalR",
    "AzureSiteRecovery",
    "AzureUpdateDelivery",
    "BatchNodeManagement",
    "CognitiveServicesManagement",
    "DataFactory",
    "DataFactoryManagement",
    "Dynamics365ForMarketingEmail",
    "EventHub",
    "GuestAndHybridManagement",
    "HDInsight",
    "LogicApps",
    "LogicAppsManagement",
    "MicrosoftContainerRegistry",
    "PowerBI",
    "ServiceBus",
    "ServiceFabric",
    "Sql",
    "SqlManagement",
    "Storage",
];

/// Returns true if a text is the tag of a service, or of a service in a region. Case is ignored, as in Azure.
pub(super) fn is_tag(text: &str) -> bool {
    let is = |tag: &str| tag.eq_ignore_ascii_case(text);
    if PLAIN.iter().chain(&REGIONAL).any(|tag| is(tag)) {
        return true;
    }
    let Some((tag, region)) = text.rsplit_once('.') else {
        return false;
    };
    let is_region = !region.is_empty() && region.bytes().all(|byte| byte.is_ascii_alphanumeric());
    is_region && REGIONAL.iter().any(|known| known.eq_ignore_ascii_case(tag))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_are_known_with_and_without_regions() {
        for good in [
            "Internet",
            "virtualnetwork",
            "Storage",
            "Storage.WestUS",
            "sql.eastus2",
            "AzureFrontDoor.Backend",
        ] {
            assert!(is_tag(good), "{good}");
        }
        for bad in [
            "",
            "Bogus",
            "Internet.WestUS",
            "Storage.",
            "Storage.West US",
            "AzureFrontDoor",
            ".WestUS",
        ] {
            assert!(!is_tag(bad), "{bad}");
        }
    }
}
