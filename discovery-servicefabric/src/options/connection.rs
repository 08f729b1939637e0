//! The connection to a cluster.

use std::path::PathBuf;
use std::time::Duration;

use crate::client::{
    BuildError, Client, ClientIdentity, ClientOptions, ServerTrust, TlsError, TokenFile,
};

/// Default URL of the gateway: on this machine, as in a development cluster.
const DEFAULT_GATEWAY: &str = "http://localhost:19080";

/// The connection to a cluster: its gateways, and the trust and credentials of both sides. Secrets are
/// named by their files.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ConnectionOptions {
    /// URLs of gateways of the cluster. If one cannot be reached, the next one is tried. Default:
    /// `http://localhost:19080`.
    pub gateways: Vec<String>,
    /// The time limit of one call, with all its pages and attempts. Default: 60 s.
    pub call_timeout: Duration,
    /// PEM file with the client certificate, and with its key unless that has a separate file. Default:
    /// none.
    pub client_certificate_file: Option<PathBuf>,
    /// PEM file with the key of the client certificate. `None` if it is in the file of the certificate.
    /// Default: `None`.
    pub client_key_file: Option<PathBuf>,
    /// File with a bearer token, which is read again when it changes. Default: none.
    pub token_file: Option<PathBuf>,
    /// The servers that are accepted as gateways of the cluster. Default: [`ServerCheck::System`].
    pub server: ServerCheck,
}

/// The servers that are accepted as gateways of a cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum ServerCheck {
    /// Servers that the operating system trusts, for the host of the URL.
    #[default]
    System,
    /// Servers that an authority in this PEM file trusts, for the host of the URL.
    Authorities(PathBuf),
    /// Servers with a certificate of one of these SHA-1 thumbprints, under any name.
    Thumbprints(Vec<String>),
    /// Servers whose certificate is for one of these names, as in the clusters' own configuration.
    Names {
        /// Common names or alternative names.
        names: Vec<String>,
        /// PEM file with the authorities that may issue their certificates. `None` for those that the
        /// operating system trusts.
        authorities: Option<PathBuf>,
        /// Thumbprints of the allowed issuers of the certificate. Empty to accept every trusted issuer.
        issuers: Vec<String>,
    },
    /// Any server, for trials only.
    AnyServer,
}

impl Default for ConnectionOptions {
    fn default() -> Self {
        Self {
            gateways: vec![DEFAULT_GATEWAY.to_owned()],
            call_timeout: Duration::from_secs(60),
            client_certificate_file: None,
            client_key_file: None,
            token_file: None,
            server: ServerCheck::default(),
        }
    }
}

/// The reason why no client can be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// An unusable certificate, key or list of authorities.
    #[error("the TLS settings of the connection to the cluster cannot be used")]
    Security(#[from] TlsError),
    /// Unusable gateway URLs, alone or in combination with the security options.
    #[error("the gateways cannot be called")]
    Client(#[from] BuildError),
}

impl ConnectionOptions {
    /// Creates options for these gateways, unencrypted or trusted as the operating system does.
    pub fn to<T: Into<String>>(gateways: impl IntoIterator<Item = T>) -> Self {
        Self {
            gateways: gateways.into_iter().map(Into::into).collect(),
            ..Self::default()
        }
    }

    /// Creates a client. Files are read now, but no call is made yet.
    ///
    /// # Errors
    ///
    /// Returns an error if a file cannot be read or used, or if a URL is invalid.
    pub fn connect(&self) -> Result<Client, ConnectError> {
        let mut gateways = self.gateways.iter();
        let first = gateways.next().map_or(DEFAULT_GATEWAY, String::as_str);
        let mut builder = Client::builder(first);
        for further in gateways {
            builder = builder.endpoint(further);
        }
        builder = builder.options(ClientOptions::default().with_budget(self.call_timeout));
        if let Some(certificate) = &self.client_certificate_file {
            builder = builder.client_certificate(match &self.client_key_file {
                Some(key) => ClientIdentity::from_files(certificate, key)?,
                None => ClientIdentity::from_combined_file(certificate)?,
            });
        }
        if let Some(token) = &self.token_file {
            builder = builder.token_source(TokenFile::new(token));
        }
        Ok(builder.server_trust(self.server.trust()?).build()?)
    }
}

impl ServerCheck {
    fn trust(&self) -> Result<ServerTrust, TlsError> {
        Ok(match self {
            Self::System => ServerTrust::system(),
            Self::Authorities(file) => ServerTrust::authorities_file(file)?,
            Self::Thumbprints(thumbprints) => ServerTrust::thumbprints(thumbprints)?,
            Self::Names {
                names,
                authorities,
                issuers,
            } => {
                let mut trust = ServerTrust::names(names.iter().cloned())?;
                if let Some(file) = authorities {
                    let pem = std::fs::read(file).map_err(|source| TlsError::Read {
                        path: file.clone(),
                        source,
                    })?;
                    trust = trust.authorities(&pem)?;
                }
                if !issuers.is_empty() {
                    trust = trust.issued_by(issuers)?;
                }
                trust
            }
            Self::AnyServer => ServerTrust::no_verify(),
        })
    }
}
