//! The credentials in a cloud-config file of Kubernetes (`azure.json`).

use azure_loadbalancer::arm::ReqwestTransport;
use azure_loadbalancer::arm::token::ClientCredentials;
use program_kit::Failure;
use serde::Deserialize;

/// The keys of the file that identify the application or machine. It has no `Debug`: one of them is a secret.
#[derive(Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct FileIdentity {
    tenant_id: Option<String>,
    aad_client_id: Option<String>,
    aad_client_secret: Option<String>,
    aad_client_cert_path: Option<String>,
    aad_federated_token_file: Option<String>,
    use_managed_identity_extension: Option<bool>,
    use_federated_workload_identity_extension: Option<bool>,
    #[serde(rename = "userAssignedIdentityID")]
    user_assigned_identity_id: Option<String>,
}

/// The value that AKS writes in place of a client and its secret.
const MANAGED: &str = "msi";

fn filled(text: &Option<String>) -> Option<&str> {
    text.as_deref()
        .map(str::trim)
        .filter(|text| !text.is_empty())
}

impl FileIdentity {
    /// Returns true if the identity is an application with a secret, a platform token or a certificate.
    pub(super) fn is_application(&self) -> bool {
        let secret = filled(&self.aad_client_secret);
        !self.is_managed()
            && (secret.is_some_and(|secret| secret != MANAGED)
                || self.use_federated_workload_identity_extension == Some(true)
                || filled(&self.aad_client_cert_path).is_some())
    }

    /// Returns true if the identity is that of the machine.
    pub(super) fn is_managed(&self) -> bool {
        self.use_managed_identity_extension == Some(true)
    }

    /// Returns the client id of the machine's identity, if there are several.
    pub(super) fn managed_client(&self) -> Result<Option<&str>, Failure> {
        match filled(&self.user_assigned_identity_id) {
            Some(id) if id.starts_with('/') => Err(Failure::new(
                "userAssignedIdentityID is the id of a resource; write the client id of the identity, or set AZURE_CLIENT_ID",
            )),
            id => Ok(id),
        }
    }

    /// Returns the credentials of the application.
    pub(super) fn application(
        &self,
        transport: &ReqwestTransport,
    ) -> Result<ClientCredentials, Failure> {
        let needed = |key: &str, value: &Option<String>| {
            let value = filled(value).map(str::to_owned);
            value.ok_or_else(|| {
                Failure::new(format!("the configuration has credentials and no {key}"))
            })
        };
        let tenant = needed("tenantId", &self.tenant_id)?;
        let client = needed("aadClientId", &self.aad_client_id)?;
        let transport = transport.clone();
        if self.use_federated_workload_identity_extension == Some(true) {
            let file = needed("aadFederatedTokenFile", &self.aad_federated_token_file)?;
            return Ok(ClientCredentials::with_token_file(
                transport, tenant, client, file,
            ));
        }
        match filled(&self.aad_client_secret) {
            Some(secret) => Ok(ClientCredentials::with_secret(
                transport,
                tenant,
                client,
                secret.to_owned(),
            )),
            None => Err(Failure::new(
                "aadClientCertPath: certificates are not supported; write aadClientSecret, or choose other `--credentials`",
            )),
        }
    }
}
