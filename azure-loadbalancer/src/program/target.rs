use std::env;
use std::sync::Arc;

use azure_loadbalancer::Executor;
use azure_loadbalancer::arm::token::{
    ClientCredentials, ManagedIdentity, StaticToken, TokenSource,
};
use azure_loadbalancer::arm::{ArmClient, ReqwestTransport, TowerTransport};
use azure_loadbalancer::config::Cloud;
use azure_loadbalancer::emulator::{Emulator, EmulatorOptions};
use program_kit::Failure;
use serde_json::Value;

use super::cli::{Credentials, TargetArgs};
use super::identity::FileIdentity;
use super::inputs::{Settings, resources};

/// The resource manager that is read and written.
pub(super) struct Azure {
    pub(super) executor: Executor,
    /// The resources of a file.
    pub(super) emulator: Option<Emulator>,
}

impl Azure {
    pub(super) fn open(target: &TargetArgs, settings: &Settings) -> Result<Self, Failure> {
        let config = settings.config.clone();
        let (client, emulator) = match &target.state {
            Some(path) => {
                // Operations on a state file end at once.
                let emulator = Emulator::new(EmulatorOptions::default().operation_requests(0));
                let found = resources(path)?;
                let restored = emulator.with(|machine| {
                    for group in [&config.resource_group, config.load_balancer_group()] {
                        machine.add_group(&config.subscription_id, group, &config.location);
                    }
                    machine.restore(found)
                });
                restored.map_err(|error| Failure::new(format!("{}: {error}", path.display())))?;
                let client = ArmClient::builder(TowerTransport::new(emulator.clone())).build();
                (client, Some(emulator))
            }
            None => (client(target, &config.cloud, &settings.identity)?, None),
        };
        let client = client.map_err(|error| Failure::from_error(&error))?;
        let executor =
            Executor::new(client, config).map_err(|error| Failure::from_error(&error))?;
        Ok(Self { executor, emulator })
    }
}

type Built = Result<ArmClient, azure_loadbalancer::arm::EndpointError>;

/// The addresses of the resource manager and of the authority, and the resource of tokens.
#[derive(Debug, PartialEq, Eq)]
struct Addresses {
    endpoint: String,
    resource: String,
    authority: Option<&'static str>,
}

impl Addresses {
    /// Returns the addresses. A token is for the resource manager that it is sent to, and for no other.
    fn of(target: &TargetArgs, cloud: &Cloud) -> Result<Self, Failure> {
        let endpoint = match (&target.endpoint, cloud.resource_manager()) {
            (Some(endpoint), _) => endpoint.clone(),
            (None, Some(known)) => known.to_owned(),
            (None, None) => {
                let name = String::from(cloud.clone());
                return Err(Failure::new(format!(
                    "the configuration is for cloud {name:?}, whose resource manager is not known: give its --endpoint"
                )));
            }
        };
        // The endpoint decides, since the configuration may name another cloud.
        let known = Cloud::of_resource_manager(&endpoint);
        let resource = known.as_ref().and_then(Cloud::token_resource);
        Ok(Self {
            resource: match (&target.resource, resource) {
                (Some(resource), _) => resource.clone(),
                (None, Some(resource)) => resource.to_owned(),
                (None, None) => endpoint.clone(),
            },
            authority: known.unwrap_or_else(|| cloud.clone()).authority(),
            endpoint,
        })
    }
}

/// The transports: to Azure through the proxies of the environment, and directly to local endpoints.
struct Ways {
    out: ReqwestTransport,
    direct: ReqwestTransport,
}

impl Ways {
    fn new(target: &TargetArgs) -> Result<Self, Failure> {
        let file = target.ca_file.as_deref();
        let direct = file.map_or_else(ReqwestTransport::new, ReqwestTransport::trusting);
        let out = ReqwestTransport::through_proxies(file);
        Ok(Self {
            out: out.map_err(|error| Failure::from_error(&error))?,
            direct: direct.map_err(|error| Failure::from_error(&error))?,
        })
    }

    /// Returns the transport for an endpoint. A proxy sees no token: plain HTTP, which is for this machine
    /// alone, carries none.
    fn to(&self, endpoint: &str) -> &ReqwestTransport {
        match endpoint.starts_with("https://") {
            true => &self.out,
            false => &self.direct,
        }
    }
}

fn client(target: &TargetArgs, cloud: &Cloud, identity: &FileIdentity) -> Result<Built, Failure> {
    let addresses = Addresses::of(target, cloud)?;
    let ways = Ways::new(target)?;
    let transport = ways.to(&addresses.endpoint).clone();
    let builder = ArmClient::builder(transport).endpoint(&addresses.endpoint);
    Ok(
        match tokens(target.credentials, &addresses, &ways, identity)? {
            Some(tokens) => builder.tokens(tokens).build(),
            None => builder.build(),
        },
    )
}

fn tokens(
    credentials: Credentials,
    addresses: &Addresses,
    ways: &Ways,
    identity: &FileIdentity,
) -> Result<Option<Arc<dyn TokenSource>>, Failure> {
    let is_set = |name: &str| env::var(name).is_ok_and(|value| !value.is_empty());
    let chosen = match credentials {
        Credentials::Auto if is_set("AZURE_ACCESS_TOKEN") => Credentials::Token,
        Credentials::Auto
            if is_set("AZURE_CLIENT_SECRET") || is_set("AZURE_FEDERATED_TOKEN_FILE") =>
        {
            Credentials::Environment
        }
        // An endpoint without TLS is an emulator, which needs no token.
        Credentials::Auto if addresses.endpoint.starts_with("http://") => Credentials::None,
        Credentials::Auto if identity.is_application() => Credentials::Config,
        Credentials::Auto => Credentials::ManagedIdentity,
        chosen => chosen,
    };
    Ok(match chosen {
        Credentials::None | Credentials::Auto => None,
        Credentials::Token => {
            let token = token_of(&variable("AZURE_ACCESS_TOKEN")?)?;
            Some(Arc::new(StaticToken::new(token)))
        }
        Credentials::Environment => {
            let credentials = application_of_environment(&ways.out)?;
            Some(Arc::new(with_addresses(credentials, addresses)))
        }
        Credentials::Config if !identity.is_managed() => {
            let credentials = identity.application(&ways.out)?;
            Some(Arc::new(with_addresses(credentials, addresses)))
        }
        Credentials::ManagedIdentity | Credentials::Config => {
            // The metadata service of a machine is never behind a proxy.
            let mut managed =
                ManagedIdentity::new(ways.direct.clone()).resource(&addresses.resource);
            if let Ok(host) = variable("AZURE_POD_IDENTITY_AUTHORITY_HOST") {
                managed = managed.endpoint(host);
            }
            if let Ok(client) = variable("AZURE_CLIENT_ID") {
                managed = managed.client_id(client);
            } else if let Some(client) = identity.managed_client()? {
                managed = managed.client_id(client);
            }
            Some(Arc::new(managed))
        }
    })
}

/// Returns the token in the output of `az account get-access-token`: a document, or with `--query accessToken` the
/// token alone, which is quoted unless `-o tsv` is given.
///
/// # Errors
///
/// The text has no token. The error does not repeat it.
fn token_of(text: &str) -> Result<String, Failure> {
    let document: Option<Value> = serde_json::from_str(text).ok();
    let token = match &document {
        Some(Value::Object(document)) => document.get("accessToken").and_then(Value::as_str),
        Some(Value::String(token)) => Some(token.as_str()),
        _ => Some(text),
    };
    let token = token.map(str::trim).unwrap_or_default();
    // What else there is would be sent as a token, and rejected without a word about the variable.
    if token.is_empty() || !token.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(Failure::new(
            "AZURE_ACCESS_TOKEN has no token; set it to the output of `az account get-access-token`",
        ));
    }
    Ok(token.to_owned())
}

fn application_of_environment(transport: &ReqwestTransport) -> Result<ClientCredentials, Failure> {
    let (tenant, client) = (variable("AZURE_TENANT_ID")?, variable("AZURE_CLIENT_ID")?);
    match variable("AZURE_CLIENT_SECRET") {
        Ok(secret) => Ok(ClientCredentials::with_secret(
            transport.clone(),
            tenant,
            client,
            secret,
        )),
        Err(missing) => match variable("AZURE_FEDERATED_TOKEN_FILE") {
            Ok(file) => Ok(ClientCredentials::with_token_file(
                transport.clone(),
                tenant,
                client,
                file,
            )),
            Err(_) => Err(missing),
        },
    }
}

fn with_addresses(mut credentials: ClientCredentials, addresses: &Addresses) -> ClientCredentials {
    let authority = variable("AZURE_AUTHORITY_HOST").ok();
    if let Some(authority) = authority.or_else(|| addresses.authority.map(str::to_owned)) {
        credentials = credentials.authority(authority);
    }
    credentials.resource(&addresses.resource)
}

fn variable(name: &str) -> Result<String, Failure> {
    let value = env::var(name).ok().filter(|value| !value.is_empty());
    value.ok_or_else(|| {
        Failure::new(format!(
            "{name} is not set in the environment; set it, or choose other `--credentials`"
        ))
    })
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::program::cli::{Cli, Command};

    fn target(arguments: &[&str]) -> TargetArgs {
        let fixed = [
            "azure-loadbalancer",
            "orphans",
            "--config",
            "c",
            "--services",
            "s",
        ];
        let all = fixed.iter().chain(arguments);
        match Cli::try_parse_from(all).unwrap().command {
            Command::Orphans(options) => options.target,
            _ => unreachable!("orphans was asked for"),
        }
    }

    #[test]
    fn tokens_are_for_the_resource_manager_that_gets_them() {
        let (public, government) = (Cloud::Public, Cloud::UsGovernment);
        let other = Cloud::Other("AzureStackCloud".to_owned());
        for (arguments, cloud, endpoint, resource, authority) in [
            (
                &[][..],
                &public,
                "https://management.azure.com",
                "https://management.azure.com",
                Some("https://login.microsoftonline.com"),
            ),
            (
                &[],
                &government,
                "https://management.usgovcloudapi.net",
                "https://management.core.usgovcloudapi.net",
                Some("https://login.microsoftonline.us"),
            ),
            (
                &["--endpoint", "https://management.chinacloudapi.cn/"],
                &public,
                "https://management.chinacloudapi.cn/",
                "https://management.chinacloudapi.cn",
                Some("https://login.chinacloudapi.cn"),
            ),
            (
                &["--endpoint", "https://arm.example"],
                &public,
                "https://arm.example",
                "https://arm.example",
                Some("https://login.microsoftonline.com"),
            ),
            (
                &[
                    "--endpoint",
                    "https://arm.example",
                    "--resource",
                    "https://of.example",
                ],
                &other,
                "https://arm.example",
                "https://of.example",
                None,
            ),
        ] {
            let expected = Addresses {
                endpoint: endpoint.to_owned(),
                resource: resource.to_owned(),
                authority,
            };
            let found = Addresses::of(&target(arguments), cloud).unwrap();
            assert_eq!(found, expected, "{arguments:?}");
        }
        let error = Addresses::of(&target(&[]), &other).unwrap_err().to_string();
        assert!(error.contains("--endpoint"), "{error}");
    }
}
