//! The measured proxies, all configured for the same work.
//!
//! | item | setting of all proxies |
//! |---|---|
//! | destinations | four; the less busy of two where the proxy can do that |
//! | connections | keep-alive on both sides |
//! | requests | `Host` of the client; adds `X-Forwarded-For`, `-Proto`, `-Host`; checked first |
//! | logs | no access log; errors only |
//! | workers | one, unless the case says otherwise |
//! | TLS | same certificate (ECDSA P-256); TLS 1.3 with AES-128-GCM and X25519 only |

mod caddy;
mod competitors;
mod envoy;
mod gateway;
mod haproxy;
mod nginx;
mod process;
#[cfg(test)]
mod tests;

use std::fs;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::Command;

pub(crate) use self::process::{Running, guard, guarded};

/// A proxy to measure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Kind {
    Relay,
    /// The relay with splicing.
    RelaySplice,
    Gateway,
    /// The gateway in cargo's default release profile: without link-time optimisation.
    GatewayPlain,
    /// The gateway's proxy as a service in an axum server.
    ServiceInAxum,
    /// The gateway's proxy on its own server, with a tower layer on each route.
    GatewayLayered,
    /// The same without the layer. It stands for the gateway in runs that only count, since it
    /// builds much faster. No comparison includes it.
    Server,
    /// No proxy: a server of the crate `h2` that answers itself. For the gate.
    H2Alone,
    Nginx,
    Haproxy,
    Envoy,
    Caddy,
    AxumReverseProxy,
    Pingora,
}

/// Origin of a proxy's program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    /// The running program itself.
    Ourselves,
    /// The release build of the gateway.
    Gateway,
    /// The gateway, built with cargo's default profile.
    GatewayPlain,
    /// A program in the directory of this one.
    Beside,
    /// A program that `cargo xtask peers` fetches.
    Peer,
    /// A package below `benches/competitors`.
    Competitor,
}

/// Protocol between client and proxy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Protocol {
    Http1,
    /// HTTP/2 with prior knowledge.
    H2c,
    Tls,
}

impl Kind {
    pub(crate) const ALL: [Self; 12] = [
        Self::Relay,
        Self::RelaySplice,
        Self::Gateway,
        Self::GatewayPlain,
        Self::ServiceInAxum,
        Self::GatewayLayered,
        Self::Nginx,
        Self::Haproxy,
        Self::Envoy,
        Self::Caddy,
        Self::AxumReverseProxy,
        Self::Pingora,
    ];

    /// The name, also on the command line.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Relay => "relay",
            Self::RelaySplice => "relay-splice",
            Self::Gateway => "gateway",
            Self::GatewayPlain => "gateway-plain",
            Self::ServiceInAxum => "service-in-axum",
            Self::GatewayLayered => "gateway-layered",
            Self::Server => "server",
            Self::H2Alone => "h2-alone",
            Self::Nginx => "nginx",
            Self::Haproxy => "haproxy",
            Self::Envoy => "envoy",
            Self::Caddy => "caddy",
            Self::AxumReverseProxy => "axum-reverse-proxy",
            Self::Pingora => "pingora",
        }
    }

    /// The file name of a program in the directory of this one.
    pub(crate) fn file_name(self) -> &'static str {
        match self {
            Self::Server => Self::GatewayLayered.name(),
            kind => kind.name(),
        }
    }

    pub(crate) fn source(self) -> Source {
        match self {
            Self::Relay | Self::RelaySplice => Source::Ourselves,
            Self::Gateway => Source::Gateway,
            Self::GatewayPlain => Source::GatewayPlain,
            Self::ServiceInAxum | Self::GatewayLayered | Self::Server | Self::H2Alone => {
                Source::Beside
            }
            Self::Nginx | Self::Haproxy | Self::Envoy | Self::Caddy => Source::Peer,
            Self::AxumReverseProxy | Self::Pingora => Source::Competitor,
        }
    }

    pub(crate) fn speaks(self, protocol: Protocol) -> bool {
        match self {
            Self::Server => protocol != Protocol::Tls,
            Self::H2Alone => protocol == Protocol::H2c,
            // The relay copies bytes, but the origin speaks cleartext HTTP/1.1 only.
            Self::Relay | Self::RelaySplice => protocol == Protocol::Http1,
            // One port of one server, configured for no other protocol.
            Self::ServiceInAxum | Self::GatewayLayered => protocol == Protocol::Http1,
            // Built without TLS.
            Self::AxumReverseProxy | Self::Pingora => protocol != Protocol::Tls,
            Self::Gateway
            | Self::GatewayPlain
            | Self::Nginx
            | Self::Haproxy
            | Self::Envoy
            | Self::Caddy => true,
        }
    }

    /// Returns true for a variant of another kind, which takes part only in cases that name it.
    pub(crate) fn is_variant(self) -> bool {
        matches!(
            self,
            Self::RelaySplice
                | Self::GatewayPlain
                | Self::ServiceInAxum
                | Self::GatewayLayered
                | Self::Server
                | Self::H2Alone
        )
    }

    /// The address for requests of this protocol.
    pub(crate) fn address(self, ports: Ports, protocol: Protocol) -> SocketAddr {
        let port = match protocol {
            Protocol::Http1 => ports.http,
            // These detect the protocol by the first bytes, on one port.
            Protocol::H2c
                if matches!(self, Self::AxumReverseProxy | Self::Server | Self::H2Alone) =>
            {
                ports.http
            }
            Protocol::H2c => ports.h2c,
            Protocol::Tls => ports.tls,
        };
        (Ipv4Addr::LOCALHOST, port).into()
    }

    /// Returns true if it adds forwarding headers to requests. The relay adds nothing.
    pub(crate) fn forwards(self) -> bool {
        !matches!(self, Self::Relay | Self::RelaySplice | Self::H2Alone)
    }

    /// The argument that prints its version.
    fn version_argument(self) -> Option<&'static str> {
        match self {
            Self::Relay
            | Self::RelaySplice
            | Self::ServiceInAxum
            | Self::GatewayLayered
            | Self::Server
            | Self::H2Alone
            | Self::AxumReverseProxy
            | Self::Pingora => None,
            Self::Gateway | Self::GatewayPlain | Self::Envoy => Some("--version"),
            Self::Nginx | Self::Haproxy => Some("-v"),
            Self::Caddy => Some("version"),
        }
    }

    /// Writes the configuration and returns the start command. The program stays in the foreground.
    pub(crate) fn command(self, program: &Path, setup: &Setup<'_>) -> io::Result<Command> {
        let mut command = Command::new(program);
        match self {
            Self::Relay | Self::RelaySplice => {
                command.arg("relay");
                if self == Self::RelaySplice {
                    command.arg("--splice");
                }
                command.arg(setup.ports.http.to_string());
                command.args(setup.origins.iter().map(ToString::to_string));
            }
            Self::H2Alone => {
                command.arg(setup.ports.http.to_string());
            }
            Self::ServiceInAxum | Self::Server => {
                let file = setup.write("service.json", &gateway::reverse_proxy(setup))?;
                command.arg(setup.ports.http.to_string()).arg(file);
            }
            Self::GatewayLayered => {
                let file = setup.write("layered.json", &gateway::layered(setup))?;
                command.arg(setup.ports.http.to_string()).arg(file);
            }
            Self::Gateway | Self::GatewayPlain => {
                let file = setup.write("gateway.json", &gateway::configuration(setup))?;
                command.args(["run", "--config"]).arg(file);
            }
            Self::Nginx => {
                let file = setup.write("nginx.conf", &nginx::configuration(setup))?;
                command.arg("-p").arg(setup.directory).arg("-c").arg(file);
            }
            Self::Haproxy => {
                let file = setup.write("haproxy.cfg", &haproxy::configuration(setup))?;
                command.args(["-db", "-f"]).arg(file);
            }
            Self::Envoy => {
                let file = setup.write("envoy.json", &envoy::configuration(setup))?;
                command.args([
                    "--disable-hot-restart",
                    "--log-level",
                    "error",
                    "--concurrency",
                ]);
                command.arg(setup.workers.to_string()).arg("-c").arg(file);
            }
            Self::Caddy => {
                let file = setup.write("caddy.json", &caddy::configuration(setup))?;
                command.args(["run", "--config"]).arg(file);
                command.env("GOMAXPROCS", setup.workers.to_string());
                // Caddy keeps state there, even if there is none.
                for variable in ["HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME"] {
                    command.env(variable, setup.directory);
                }
            }
            Self::AxumReverseProxy => {
                command.args(competitors::axum_reverse_proxy(setup));
            }
            Self::Pingora => {
                command.args(competitors::pingora(setup));
            }
        }
        Ok(command)
    }

    /// Returns the command that checks the configuration and exits. `None` if it has no such
    /// command.
    #[cfg(test)]
    fn check(self, program: &Path, setup: &Setup<'_>) -> io::Result<Option<Command>> {
        let mut command = self.command(program, setup)?;
        let mut instead = |arguments: &[&str], file: &str| {
            command = Command::new(program);
            command.args(arguments).arg(setup.directory.join(file));
        };
        match self {
            Self::Nginx => {
                command.arg("-t");
            }
            Self::Haproxy => instead(&["-c", "-f"], "haproxy.cfg"),
            Self::Envoy => {
                command.args(["--mode", "validate"]);
            }
            Self::Caddy => instead(&["validate", "--config"], "caddy.json"),
            Self::Gateway | Self::GatewayPlain => instead(&["check", "--config"], "gateway.json"),
            Self::Relay
            | Self::RelaySplice
            | Self::ServiceInAxum
            | Self::GatewayLayered
            | Self::Server
            | Self::H2Alone
            | Self::AxumReverseProxy
            | Self::Pingora => return Ok(None),
        }
        Ok(Some(command))
    }
}

/// Settings of a proxy.
#[derive(Clone, Debug)]
pub(crate) struct Setup<'a> {
    /// Directory for its files.
    pub(crate) directory: &'a Path,
    pub(crate) ports: Ports,
    pub(crate) origins: &'a [SocketAddr],
    /// True if the origins speak HTTP/2, which only the gateway is configured for.
    pub(crate) http2_origins: bool,
    pub(crate) workers: usize,
    /// True if bodies are large, for proxies with documented settings for them.
    pub(crate) large_bodies: bool,
    /// Maximum number of open files.
    pub(crate) open_files: usize,
    pub(crate) certificate: &'a Certificate,
}

impl Setup<'_> {
    fn write(&self, name: &str, text: &str) -> io::Result<PathBuf> {
        let path = self.directory.join(name);
        fs::write(&path, text)?;
        Ok(path)
    }

    /// Maximum number of client connections, for proxies that need a setting.
    fn most_connections(&self) -> usize {
        // Each may need an upstream connection.
        (self.open_files / 2).saturating_sub(64).max(256)
    }
}

/// Loopback ports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ports {
    pub(crate) http: u16,
    pub(crate) h2c: u16,
    pub(crate) tls: u16,
    pub(crate) admin: u16,
}

impl Ports {
    /// Picks ports that are free at the moment. If another process takes one first, the proxy fails
    /// with a message.
    pub(crate) fn choose() -> io::Result<Self> {
        // Held at the same time, so that no two are equal.
        let mut held = Vec::new();
        let mut next = || {
            let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
            let port = listener.local_addr()?.port();
            held.push(listener);
            io::Result::Ok(port)
        };
        Ok(Self {
            http: next()?,
            h2c: next()?,
            tls: next()?,
            admin: next()?,
        })
    }
}

/// The files of the certificate that all proxies present.
#[derive(Clone, Debug)]
pub(crate) struct Certificate {
    pub(crate) chain: PathBuf,
    pub(crate) key: PathBuf,
    /// Certificate and key in one file, for some proxies.
    pub(crate) both: PathBuf,
}

/// Locations of programs.
#[derive(Clone, Debug)]
pub(crate) struct Programs {
    pub(crate) gateway: PathBuf,
    pub(crate) gateway_plain: PathBuf,
    pub(crate) peers: PathBuf,
    pub(crate) competitors: PathBuf,
}

impl Programs {
    /// Finds the program of a proxy. The error is text for the user.
    pub(crate) fn find(&self, kind: Kind) -> Result<PathBuf, String> {
        let candidates = match kind.source() {
            Source::Ourselves => vec![std::env::current_exe().map_err(|error| error.to_string())?],
            Source::Gateway => vec![self.gateway.clone()],
            Source::GatewayPlain => vec![self.gateway_plain.clone()],
            Source::Beside => {
                let own = std::env::current_exe().map_err(|error| error.to_string())?;
                vec![own.with_file_name(kind.file_name())]
            }
            Source::Competitor => {
                vec![self.competitors.join(format!("competitor-{}", kind.name()))]
            }
            Source::Peer => {
                let path = std::env::var_os("PATH").unwrap_or_default();
                let fetched = std::iter::once(self.peers.join("bin"));
                fetched
                    .chain(std::env::split_paths(&path))
                    .map(|directory| directory.join(kind.name()))
                    .collect()
            }
        };
        candidates
            .into_iter()
            .find(|path| path.is_file())
            .ok_or_else(|| match kind.source() {
                Source::Competitor => {
                    format!("it is not built; `--peers {}` has it built", kind.name())
                }
                Source::Peer => format!("there is no `{}`, fetched or on the PATH", kind.name()),
                Source::Ourselves | Source::Gateway | Source::GatewayPlain | Source::Beside => {
                    "its program is missing".to_owned()
                }
            })
    }

    /// Returns the version output of a proxy as one line.
    pub(crate) fn version(&self, kind: Kind) -> String {
        let said =
            self.find(kind)
                .ok()
                .zip(kind.version_argument())
                .and_then(|(program, argument)| {
                    let output = Command::new(program).arg(argument).output().ok()?;
                    let text = [output.stdout, output.stderr].concat();
                    let text = String::from_utf8_lossy(&text).into_owned();
                    text.lines()
                        .map(str::trim)
                        .find(|line| !line.is_empty())
                        .map(version_of_line)
                });
        let built = competitors::version(kind).map(str::to_owned);
        said.or(built)
            .unwrap_or_else(|| "of this program".to_owned())
    }
}

/// Returns the first word of a line that looks like a version: `1.40.0` in
/// `envoy version: 9e55/1.40.0/Clean`.
fn version_of_line(line: &str) -> String {
    let words = line.split([' ', '/']);
    let is_version = |word: &&str| {
        let digits = word.trim_start_matches('v');
        digits.contains('.') && digits.starts_with(|first: char| first.is_ascii_digit())
    };
    words.into_iter().find(is_version).map_or_else(
        || line.to_owned(),
        |word| word.trim_start_matches('v').to_owned(),
    )
}
