//! Azure's clouds, each with its own resource manager and authority.

use serde::{Deserialize, Serialize};

/// One of Azure's clouds. Names are those of Kubernetes' cloud-config file, ignoring case.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub enum Cloud {
    /// `AzurePublicCloud`.
    #[default]
    Public,
    /// `AzureUSGovernmentCloud`.
    UsGovernment,
    /// `AzureChinaCloud`.
    China,
    /// Another cloud, such as a private one, whose addresses must be configured.
    Other(String),
}

impl Cloud {
    /// Returns the URL of its resource manager, if it is known.
    pub fn resource_manager(&self) -> Option<&'static str> {
        match self {
            Self::Public => Some("https://management.azure.com"),
            Self::UsGovernment => Some("https://management.usgovcloudapi.net"),
            Self::China => Some("https://management.chinacloudapi.cn"),
            Self::Other(_) => None,
        }
    }

    /// Returns the resource that tokens for its resource manager are requested for (`get_arm_endpoints` of
    /// Microsoft's `azure-mgmt-core`).
    pub fn token_resource(&self) -> Option<&'static str> {
        match self {
            Self::Public => Some("https://management.azure.com"),
            Self::UsGovernment => Some("https://management.core.usgovcloudapi.net"),
            Self::China => Some("https://management.chinacloudapi.cn"),
            Self::Other(_) => None,
        }
    }

    /// Returns the authority at which applications get tokens.
    pub fn authority(&self) -> Option<&'static str> {
        match self {
            Self::Public => Some("https://login.microsoftonline.com"),
            Self::UsGovernment => Some("https://login.microsoftonline.us"),
            Self::China => Some("https://login.chinacloudapi.cn"),
            Self::Other(_) => None,
        }
    }

    /// Returns the cloud whose resource manager has this address.
    pub fn of_resource_manager(address: &str) -> Option<Self> {
        let address = address.trim_end_matches('/');
        [Self::Public, Self::UsGovernment, Self::China]
            .into_iter()
            .find(|cloud| {
                let own = cloud.resource_manager();
                own.is_some_and(|own| own.eq_ignore_ascii_case(address))
            })
    }
}

impl From<String> for Cloud {
    fn from(name: String) -> Self {
        match name.trim().to_ascii_lowercase().as_str() {
            "" | "azurecloud" | "azurepubliccloud" => Self::Public,
            "azureusgovernment" | "azureusgovernmentcloud" => Self::UsGovernment,
            "azurechinacloud" => Self::China,
            _ => Self::Other(name),
        }
    }
}

impl From<Cloud> for String {
    fn from(cloud: Cloud) -> Self {
        match cloud {
            Cloud::Public => "AzurePublicCloud".to_owned(),
            Cloud::UsGovernment => "AzureUSGovernmentCloud".to_owned(),
            Cloud::China => "AzureChinaCloud".to_owned(),
            Cloud::Other(name) => name,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clouds_are_known_by_name_and_by_address() {
        for (name, cloud) in [
            ("", Cloud::Public),
            ("AZUREPUBLICCLOUD", Cloud::Public),
            ("AzureUSGovernment", Cloud::UsGovernment),
            ("AzureUSGovernmentCloud", Cloud::UsGovernment),
            ("AzureChinaCloud", Cloud::China),
            (
                "AzureStackCloud",
                Cloud::Other("AzureStackCloud".to_owned()),
            ),
        ] {
            assert_eq!(Cloud::from(name.to_owned()), cloud, "{name}");
            assert_eq!(Cloud::from(String::from(cloud.clone())), cloud);
            if let Some(address) = cloud.resource_manager() {
                let of = Cloud::of_resource_manager(&format!("{address}/"));
                assert_eq!(of, Some(cloud));
            }
        }
        assert_eq!(
            Cloud::of_resource_manager("https://management.example"),
            None
        );
    }
}
