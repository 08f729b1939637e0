use std::env;
use std::sync::Arc;

use azure_loadbalancer::arm::token::{
    ClientCredentials, ManagedIdentity, StaticToken, TokenSource,
};
use azure_loadbalancer::arm::{ArmClient, ReqwestTransport, TowerTransport};
use azure_loadbalancer::emulator::{Emulator, EmulatorOptions};
use azure_loadbalancer::{Config, Executor};

use super::cli::{Credentials, Target};
use super::failure::Failure;
use super::inputs::resources;

/// What is read and written.
pub(super) struct Azure {
    pub(super) executor: Executor,
    /// The resources of a file.
    pub(super) emulator: Option<Emulator>,
}

impl Azure {
    pub(super) fn open(target: &Target, config: Config) -> Result<Self, Failure> {
        let (client, emulator) = match &target.state {
            Some(path) => {
                let emulator = Emulator::new(EmulatorOptions::default().operation_requests(0));
                let found = resources(path)?;
                let restored = emulator.with(|machine| {
                    machine.add_group(
                        &config.subscription_id,
                        &config.resource_group,
                        &config.location,
                    );
                    machine.restore(found)
                });
                restored.map_err(|error| Failure::new(format!("{}: {error}", path.display())))?;
                let client = ArmClient::builder(TowerTransport::new(emulator.clone())).build();
                (client, Some(emulator))
            }
            None => (client(target)?, None),
        };
        let client = client.map_err(|error| Failure::from_error(&error))?;
        let executor =
            Executor::new(client, config).map_err(|error| Failure::from_error(&error))?;
        Ok(Self { executor, emulator })
    }
}

type Built = Result<ArmClient, azure_loadbalancer::arm::EndpointError>;

fn client(target: &Target) -> Result<Built, Failure> {
    let transport = match &target.ca_file {
        Some(file) => ReqwestTransport::trusting(file),
        None => ReqwestTransport::new(),
    };
    let transport = transport.map_err(|error| Failure::from_error(&error))?;
    let builder = ArmClient::builder(transport.clone()).endpoint(&target.endpoint);
    Ok(match tokens(target, &transport)? {
        Some(tokens) => builder.tokens(tokens).build(),
        None => builder.build(),
    })
}

fn tokens(
    target: &Target,
    transport: &ReqwestTransport,
) -> Result<Option<Arc<dyn TokenSource>>, Failure> {
    let is_set = |name: &str| env::var(name).is_ok_and(|value| !value.is_empty());
    let chosen = match target.credentials {
        Credentials::Auto if is_set("AZURE_ACCESS_TOKEN") => Credentials::Token,
        Credentials::Auto
            if is_set("AZURE_CLIENT_SECRET") || is_set("AZURE_FEDERATED_TOKEN_FILE") =>
        {
            Credentials::Environment
        }
        Credentials::Auto if target.endpoint.starts_with("http://") => Credentials::None,
        Credentials::Auto => Credentials::ManagedIdentity,
        chosen => chosen,
    };
    Ok(match chosen {
        Credentials::None | Credentials::Auto => None,
        Credentials::Token => Some(Arc::new(StaticToken::new(variable("AZURE_ACCESS_TOKEN")?))),
        Credentials::Environment => Some(Arc::new(application(transport)?)),
        Credentials::ManagedIdentity => {
            let mut identity = ManagedIdentity::new(transport.clone());
            if let Ok(host) = variable("AZURE_POD_IDENTITY_AUTHORITY_HOST") {
                identity = identity.endpoint(host);
            }
            if let Ok(client) = variable("AZURE_CLIENT_ID") {
                identity = identity.client_id(client);
            }
            Some(Arc::new(identity))
        }
    })
}

fn application(transport: &ReqwestTransport) -> Result<ClientCredentials, Failure> {
    let (tenant, client) = (variable("AZURE_TENANT_ID")?, variable("AZURE_CLIENT_ID")?);
    let mut credentials = match variable("AZURE_CLIENT_SECRET") {
        Ok(secret) => ClientCredentials::with_secret(transport.clone(), tenant, client, secret),
        Err(missing) => match variable("AZURE_FEDERATED_TOKEN_FILE") {
            Ok(file) => ClientCredentials::with_token_file(transport.clone(), tenant, client, file),
            Err(_) => return Err(missing),
        },
    };
    if let Ok(authority) = variable("AZURE_AUTHORITY_HOST") {
        credentials = credentials.authority(authority);
    }
    Ok(credentials)
}

fn variable(name: &str) -> Result<String, Failure> {
    let value = env::var(name).ok().filter(|value| !value.is_empty());
    value.ok_or_else(|| {
        Failure::new(format!(
            "{name} is not set in the environment; set it, or choose other `--credentials`"
        ))
    })
}
