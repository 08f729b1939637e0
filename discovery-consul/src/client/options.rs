//! The connection to an agent.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use super::token::Token;

/// The options of the connection to an agent. The defaults suit one on the same machine.
///
/// [`from_env`](Self::from_env) reads the environment variables of Consul's own tools.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ConsulOptions {
    /// URL of the agent's HTTP API, or `host:port`. Default: `http://127.0.0.1:8500`.
    pub address: String,
    /// The token to send as `X-Consul-Token`. Default: none.
    pub token: Option<Token>,
    /// File with the token, as an alternative. It is read again when it changes. Default: none.
    pub token_file: Option<PathBuf>,
    /// Namespace of the enterprise edition. The open edition rejects calls that name one. Default: none.
    pub namespace: Option<String>,
    /// Admin partition of the enterprise edition. Default: none.
    pub partition: Option<String>,
    /// Certificates and names, for an address with `https`.
    pub tls: TlsOptions,
    /// The time limit for opening a connection, including TLS. Default: 5 s.
    pub connect_timeout: Duration,
    /// The time limit of a response. A blocking query may take its wait and the server's jitter in
    /// addition. Default: 10 s.
    pub request_timeout: Duration,
    /// Maximum number of connections to the agent at the same time, shared by all clones of a client.
    /// Agents reject clients with more than 200 (`limits.http_max_conns_per_client`). Further calls wait,
    /// and blocking queries use at most three quarters. At least 2. Default: 32.
    pub max_connections: usize,
    /// Maximum length of a response, in bytes. Default: 64 MiB.
    pub max_body: usize,
}

/// The TLS options of a connection. Files are read when the client is built.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct TlsOptions {
    /// PEM file with the authorities that may issue the agent's certificate. `None` for those that the
    /// operating system trusts. Default: `None`.
    pub ca_file: Option<PathBuf>,
    /// PEM file with the client certificate. Default: none.
    pub client_certificate_file: Option<PathBuf>,
    /// PEM file with the key of the client certificate. `None` if it is in the file of the certificate.
    /// Default: `None`.
    pub client_key_file: Option<PathBuf>,
    /// The name that the agent's certificate must have, such as `server.dc1.consul`. `None` for the host of
    /// the address. Default: `None`.
    pub server_name: Option<String>,
}

impl Default for ConsulOptions {
    fn default() -> Self {
        Self {
            address: "http://127.0.0.1:8500".to_owned(),
            token: None,
            token_file: None,
            namespace: None,
            partition: None,
            tls: TlsOptions::default(),
            connect_timeout: Duration::from_secs(5),
            request_timeout: Duration::from_secs(10),
            max_connections: 32,
            max_body: 64 * 1024 * 1024,
        }
    }
}

macro_rules! setters {
    ($options:ident: $($(#[$doc:meta])* $setter:ident $field:ident: $type:ty;)*) => {
        impl $options {
            $(
                $(#[$doc])*
                #[must_use]
                pub fn $setter(mut self, value: impl Into<$type>) -> Self {
                    self.$field = value.into().into();
                    self
                }
            )*
        }
    };
}

setters! { ConsulOptions:
    /// Sets [`address`](Self::address).
    with_address address: String;
    /// Sets [`token`](Self::token).
    with_token token: Token;
    /// Sets [`token_file`](Self::token_file).
    with_token_file token_file: PathBuf;
    /// Sets [`namespace`](Self::namespace).
    with_namespace namespace: String;
    /// Sets [`partition`](Self::partition).
    with_partition partition: String;
    /// Sets [`tls`](Self::tls).
    with_tls tls: TlsOptions;
    /// Sets [`connect_timeout`](Self::connect_timeout).
    with_connect_timeout connect_timeout: Duration;
    /// Sets [`request_timeout`](Self::request_timeout).
    with_request_timeout request_timeout: Duration;
    /// Sets [`max_connections`](Self::max_connections).
    with_max_connections max_connections: usize;
    /// Sets [`max_body`](Self::max_body).
    with_max_body max_body: usize;
}

setters! { TlsOptions:
    /// Sets [`ca_file`](Self::ca_file).
    with_ca_file ca_file: PathBuf;
    /// Sets [`client_certificate_file`](Self::client_certificate_file).
    with_client_certificate_file client_certificate_file: PathBuf;
    /// Sets [`client_key_file`](Self::client_key_file).
    with_client_key_file client_key_file: PathBuf;
    /// Sets [`server_name`](Self::server_name).
    with_server_name server_name: String;
}

impl ConsulOptions {
    /// Reads the environment variables of Consul's own tools. Options whose variable is unset or empty keep
    /// their default.
    ///
    /// | variable | sets |
    /// |---|---|
    /// | `CONSUL_HTTP_ADDR` | [`address`](Self::address): `host:port` or a URL |
    /// | `CONSUL_HTTP_SSL` | `true`: an address without a scheme is `https` |
    /// | `CONSUL_HTTP_TOKEN` | [`token`](Self::token) |
    /// | `CONSUL_HTTP_TOKEN_FILE` | [`token_file`](Self::token_file), which takes precedence over the token |
    /// | `CONSUL_CACERT`, `CONSUL_CLIENT_CERT`, `CONSUL_CLIENT_KEY`, `CONSUL_TLS_SERVER_NAME` | [`tls`](Self::tls) |
    /// | `CONSUL_NAMESPACE` | [`namespace`](Self::namespace) |
    ///
    /// # Errors
    ///
    /// Returns an error if the token is invalid, or if `CONSUL_HTTP_SSL` is not a boolean.
    pub fn from_env() -> Result<Self, EnvironmentError> {
        Self::from_variables(|name| std::env::var(name).ok())
    }

    /// Reads the same from any variables.
    ///
    /// # Errors
    ///
    /// The errors of [`from_env`](Self::from_env).
    pub fn from_variables(
        variable: impl Fn(&str) -> Option<String>,
    ) -> Result<Self, EnvironmentError> {
        let set = |name: &str| variable(name).filter(|value| !value.trim().is_empty());
        let path = |name: &str| set(name).map(PathBuf::from);
        let mut options = Self::default();
        if let Some(address) = set("CONSUL_HTTP_ADDR") {
            options.address = address;
        }
        if let Some(ssl) = set("CONSUL_HTTP_SSL")
            && boolean("CONSUL_HTTP_SSL", &ssl)?
        {
            options.address = secured(&options.address);
        }
        if let Some(token) = set("CONSUL_HTTP_TOKEN") {
            let token = Token::new(&token).map_err(|_| EnvironmentError {
                name: "CONSUL_HTTP_TOKEN",
                expected: "a token",
            })?;
            options.token = Some(token);
        }
        options.token_file = path("CONSUL_HTTP_TOKEN_FILE");
        options.tls = TlsOptions {
            ca_file: path("CONSUL_CACERT"),
            client_certificate_file: path("CONSUL_CLIENT_CERT"),
            client_key_file: path("CONSUL_CLIENT_KEY"),
            server_name: set("CONSUL_TLS_SERVER_NAME"),
        };
        options.namespace = set("CONSUL_NAMESPACE");
        Ok(options)
    }

    /// Returns the options limited to useful values.
    pub(super) fn bounded(mut self) -> Self {
        const MOST_CONNECTIONS: usize = 10_000;
        self.max_connections = self.max_connections.clamp(2, MOST_CONNECTIONS);
        self
    }
}

/// An unusable environment variable. The message does not show its value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EnvironmentError {
    name: &'static str,
    expected: &'static str,
}

impl fmt::Display for EnvironmentError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, expected } = self;
        write!(
            f,
            "the variable `{name}` of the environment is not {expected}"
        )
    }
}

impl std::error::Error for EnvironmentError {}

/// Parses a boolean in the forms that Go accepts, like Consul's tools.
fn boolean(name: &'static str, text: &str) -> Result<bool, EnvironmentError> {
    match text.trim() {
        "1" | "t" | "T" | "true" | "TRUE" | "True" => Ok(true),
        "0" | "f" | "F" | "false" | "FALSE" | "False" => Ok(false),
        _ => Err(EnvironmentError {
            name,
            expected: "`true` or `false`",
        }),
    }
}

fn secured(address: &str) -> String {
    match address.split_once("://") {
        // As in Consul's own tools, an explicit scheme counts.
        Some(("http", rest)) => format!("https://{rest}"),
        Some(_) => address.to_owned(),
        None => format!("https://{address}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(variables: &[(&str, &str)]) -> Result<ConsulOptions, EnvironmentError> {
        ConsulOptions::from_variables(|name| {
            let found = variables.iter().find(|(key, _)| *key == name);
            found.map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn the_environment_of_consul_s_tools_is_understood() {
        assert_eq!(read(&[]), Ok(ConsulOptions::default()));
        let options = read(&[
            ("CONSUL_HTTP_ADDR", "consul.example:8501"),
            ("CONSUL_HTTP_SSL", "true"),
            ("CONSUL_HTTP_TOKEN", "b1gs33cr3t"),
            ("CONSUL_HTTP_TOKEN_FILE", "/run/token"),
            ("CONSUL_CACERT", "/ca.pem"),
            ("CONSUL_CLIENT_CERT", "/cert.pem"),
            ("CONSUL_CLIENT_KEY", "/key.pem"),
            ("CONSUL_TLS_SERVER_NAME", "server.dc1.consul"),
            ("CONSUL_NAMESPACE", " "),
        ]);
        let tls = TlsOptions::default()
            .with_ca_file("/ca.pem")
            .with_client_certificate_file("/cert.pem")
            .with_client_key_file("/key.pem")
            .with_server_name("server.dc1.consul");
        let expected = ConsulOptions::default()
            .with_address("https://consul.example:8501")
            .with_token(Token::new("b1gs33cr3t").unwrap())
            .with_token_file("/run/token")
            .with_tls(tls);
        assert_eq!(options, Ok(expected));
    }

    #[test]
    fn a_variable_that_cannot_be_used_is_named_and_not_shown() {
        for (name, value) in [
            ("CONSUL_HTTP_SSL", "maybe"),
            ("CONSUL_HTTP_TOKEN", "two words"),
        ] {
            let error = read(&[(name, value)]).unwrap_err().to_string();
            assert!(error.contains(name) && !error.contains(value), "{error}");
        }
        let unset = read(&[("CONSUL_HTTP_SSL", "0")]).unwrap();
        assert_eq!(unset.address, "http://127.0.0.1:8500");
    }

    #[test]
    fn options_do_not_show_the_token() {
        let options = ConsulOptions::default().with_token(Token::new("b1gs33cr3t").unwrap());
        assert!(!format!("{options:?}").contains("b1gs33cr3t"));
    }
}
