//! How a cluster is reached.

use std::path::PathBuf;
use std::time::Duration;

use crate::client::{
    BuildError, Client, ClientIdentity, ClientOptions, ServerTrust, TlsError, TokenFile,
};

/// Where a gateway is unless something else is said: on this machine, as in a cluster for development.
const DEFAULT_GATEWAY: &str = "http://localhost:19080";

/// How a cluster is reached: its gateways, and who trusts whom by what. Secrets are named by their files.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ConnectionOptions {
    /// URLs of gateways of the cluster; the next one is asked when one cannot be reached. `http://localhost:19080`.
    pub gateways: Vec<String>,
    /// How long one call may take with all its pages and attempts. 60 s.
    pub call_timeout: Duration,
    /// PEM file with the certificate that the client shows, and with its key unless that has a file of its own. None.
    pub client_certificate_file: Option<PathBuf>,
    /// PEM file with the key of that certificate. Unset: it is in the file of the certificate.
    pub client_key_file: Option<PathBuf>,
    /// File with a bearer token; it is read again when it changes. None.
    pub token_file: Option<PathBuf>,
    /// Which servers are taken for the cluster.
    pub server: ServerCheck,
}

/// Which servers are taken for the cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum ServerCheck {
    /// Those that the operating system trusts, for the host of the URL.
    #[default]
    System,
    /// Those that an authority in this PEM file vouches for, for the host of the URL.
    Authorities(PathBuf),
    /// Those with a certificate of one of these SHA-1 thumbprints, whatever their name.
    Thumbprints(Vec<String>),
    /// Those whose certificate is for one of these names, as the clusters' own configuration has it.
    Names {
        /// Common names or alternative names.
        names: Vec<String>,
        /// PEM file with the authorities that may vouch for them. Unset: those that the operating system trusts.
        authorities: Option<PathBuf>,
        /// Thumbprints of those who must have issued the certificate. Empty: anybody who is trusted.
        issuers: Vec<String>,
    },
    /// Anybody, which is for trying things out only.
    Anybody,
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

/// Why there is no client.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// A certificate, a key or a list of authorities cannot be used.
    #[error("what secures the connection to the cluster cannot be used")]
    Security(#[from] TlsError),
    /// The gateways' URLs cannot be used, or not with what secures them.
    #[error("the gateways cannot be asked")]
    Client(#[from] BuildError),
}

impl ConnectionOptions {
    /// These gateways, in the clear or trusted as the operating system does.
    pub fn to<T: Into<String>>(gateways: impl IntoIterator<Item = T>) -> Self {
        Self {
            gateways: gateways.into_iter().map(Into::into).collect(),
            ..Self::default()
        }
    }

    /// A client. Files are read now, and nothing is asked yet.
    ///
    /// # Errors
    ///
    /// A file cannot be read or used, or a URL is none.
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
            Self::Anybody => ServerTrust::no_verify(),
        })
    }
}
