//! The proxies that are measured, each told to do the same work.
//!
//! | all of them | |
//! |---|---|
//! | destinations | four, of which the less busy of two is taken where the proxy can do that |
//! | connections | kept alive on both sides |
//! | requests | `Host` as the client sent it; `X-Forwarded-For`, `-Proto` and `-Host` added, which is looked at before anything is measured |
//! | logs | no access log; errors only |
//! | workers | one, unless the case says otherwise |
//! | TLS | the same certificate (ECDSA P-256); the generator offers TLS 1.3 with AES-128-GCM and X25519 alone |

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

/// A proxy that can be measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Kind {
    Relay,
    /// The relay that splices.
    RelaySplice,
    Gateway,
    /// The gateway as cargo builds a release unless it is told otherwise: without link-time optimisation.
    GatewayPlain,
    /// The gateway's proxy as a service in an axum server.
    ServiceInAxum,
    /// The gateway's proxy on its own server, with a tower layer on each route.
    GatewayLayered,
    /// The same without the layer. It stands for the gateway where only requests are counted, since it is built much faster;
    /// no comparison has it.
    Server,
    Nginx,
    Haproxy,
    Envoy,
    Caddy,
    AxumReverseProxy,
    Pingora,
}

/// Where a proxy comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    /// This program.
    Ourselves,
    /// The release build of the gateway.
    Gateway,
    /// The gateway, built with cargo's own defaults.
    GatewayPlain,
    /// A program beside this one.
    Beside,
    /// A program that `cargo xtask peers` fetches.
    Peer,
    /// A package below `benches/competitors`.
    Competitor,
}

/// What is spoken with the client.
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

    /// What it is called, on the command line too.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Relay => "relay",
            Self::RelaySplice => "relay-splice",
            Self::Gateway => "gateway",
            Self::GatewayPlain => "gateway-plain",
            Self::ServiceInAxum => "service-in-axum",
            Self::GatewayLayered => "gateway-layered",
            Self::Server => "server",
            Self::Nginx => "nginx",
            Self::Haproxy => "haproxy",
            Self::Envoy => "envoy",
            Self::Caddy => "caddy",
            Self::AxumReverseProxy => "axum-reverse-proxy",
            Self::Pingora => "pingora",
        }
    }

    /// The file of its program, where that is beside this one.
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
            Self::ServiceInAxum | Self::GatewayLayered | Self::Server => Source::Beside,
            Self::Nginx | Self::Haproxy | Self::Envoy | Self::Caddy => Source::Peer,
            Self::AxumReverseProxy | Self::Pingora => Source::Competitor,
        }
    }

    pub(crate) fn speaks(self, protocol: Protocol) -> bool {
        match self {
            Self::Server => protocol != Protocol::Tls,
            // Bytes are bytes, but the origin speaks HTTP/1.1 in the clear.
            Self::Relay | Self::RelaySplice => protocol == Protocol::Http1,
            // One port of one server, which was told of no other protocol.
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

    /// Whether it takes part only in the cases that name it: another form of something that takes part in all.
    pub(crate) fn is_variant(self) -> bool {
        matches!(
            self,
            Self::RelaySplice
                | Self::GatewayPlain
                | Self::ServiceInAxum
                | Self::GatewayLayered
                | Self::Server
        )
    }

    /// Where it takes requests of this protocol.
    pub(crate) fn address(self, ports: Ports, protocol: Protocol) -> SocketAddr {
        let port = match protocol {
            Protocol::Http1 => ports.http,
            // They tell both by the first bytes, on one port.
            Protocol::H2c if matches!(self, Self::AxumReverseProxy | Self::Server) => ports.http,
            Protocol::H2c => ports.h2c,
            Protocol::Tls => ports.tls,
        };
        (Ipv4Addr::LOCALHOST, port).into()
    }

    /// What it adds to requests, as configured here. The relay adds nothing.
    pub(crate) fn forwards(self) -> bool {
        !matches!(self, Self::Relay | Self::RelaySplice)
    }

    /// Arguments that make it say its version.
    fn version_argument(self) -> Option<&'static str> {
        match self {
            Self::Relay
            | Self::RelaySplice
            | Self::ServiceInAxum
            | Self::GatewayLayered
            | Self::Server
            | Self::AxumReverseProxy
            | Self::Pingora => None,
            Self::Gateway | Self::GatewayPlain | Self::Envoy => Some("--version"),
            Self::Nginx | Self::Haproxy => Some("-v"),
            Self::Caddy => Some("version"),
        }
    }

    /// Writes its configuration and returns what starts it. It stays in the foreground.
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
                // It keeps state there, even if there is none.
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

    /// What makes it read its configuration, say whether it likes it, and end; `None` if it has no such thing.
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
            | Self::AxumReverseProxy
            | Self::Pingora => return Ok(None),
        }
        Ok(Some(command))
    }
}

/// What a proxy is told.
#[derive(Clone, Debug)]
pub(crate) struct Setup<'a> {
    /// Where it may write.
    pub(crate) directory: &'a Path,
    pub(crate) ports: Ports,
    pub(crate) origins: &'a [SocketAddr],
    pub(crate) workers: usize,
    /// Whether bodies are large, for proxies whose documentation has settings for that.
    pub(crate) large_bodies: bool,
    /// Open files that it may have.
    pub(crate) open_files: usize,
    pub(crate) certificate: &'a Certificate,
}

impl Setup<'_> {
    fn write(&self, name: &str, text: &str) -> io::Result<PathBuf> {
        let path = self.directory.join(name);
        fs::write(&path, text)?;
        Ok(path)
    }

    /// Connections that it may have with clients, where it has to be told.
    fn most_connections(&self) -> usize {
        // Each may need one to an origin.
        (self.open_files / 2).saturating_sub(64).max(256)
    }
}

/// Ports of loopback.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ports {
    pub(crate) http: u16,
    pub(crate) h2c: u16,
    pub(crate) tls: u16,
    pub(crate) admin: u16,
}

impl Ports {
    /// Ports that were free a moment ago. Should somebody be faster, the proxy ends and says so.
    pub(crate) fn choose() -> io::Result<Self> {
        // All held at once, so that no two are the same.
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

/// The certificate that all proxies show, as files.
#[derive(Clone, Debug)]
pub(crate) struct Certificate {
    pub(crate) chain: PathBuf,
    pub(crate) key: PathBuf,
    /// Both in one, which some want.
    pub(crate) both: PathBuf,
}

/// Where programs are.
#[derive(Clone, Debug)]
pub(crate) struct Programs {
    pub(crate) gateway: PathBuf,
    pub(crate) gateway_plain: PathBuf,
    pub(crate) peers: PathBuf,
    pub(crate) competitors: PathBuf,
}

impl Programs {
    /// The program of a proxy; an error for people if there is none.
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

    /// What a proxy says of its version, in a line.
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

/// The first word of a line that looks like a version: `1.40.0` in `envoy version: 9e55/1.40.0/Clean`.
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
