use std::io;
use std::panic::resume_unwind;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::spawn_blocking;

use super::Emulator;
use super::clock::{Clock, MAX_SPEED, Time};
use super::dialect::Dialect;
use super::driver::Driver;
use super::shared::{Shared, Surroundings};
use super::workload::Workload;
use crate::cluster::{
    ApplicationCreation, ApplicationType, Cluster, Date, FabricError, FabricName,
};
use crate::gateway::security::{AadMetadata, Role, Security, Tls};
#[cfg(feature = "tls")]
use crate::gateway::security::{TlsError, TlsOptions};
use crate::gateway::server::{Gateway, Server};
use crate::topology::{Topology, TopologyError};

/// The default address of the gateway, as of a local cluster.
const DEFAULT_LISTEN: &str = "127.0.0.1:19080";

/// The builder of an [`Emulator`].
///
/// | setting | default |
/// |---|---|
/// | [`listen`](Self::listen) | `127.0.0.1:19080` |
/// | [`time`](Self::time) | the real clock |
/// | [`workload`](Self::workload) | none: addresses are synthetic, and no program listens on them |
/// | [`page_size`](Self::page_size) | as many items as clients request |
/// | [`report_interval`](Self::report_interval) | that of the topology, by default 30 s |
/// | [`package`](Self::package) | none |
/// | `tls` (with the feature `tls`), [`bearer`](Self::bearer) | none: all clients have full access |
#[must_use = "an emulator begins to run with `start`"]
pub struct Builder {
    topology: Topology,
    listen: String,
    time: Time,
    workload: Option<Arc<dyn Workload>>,
    page_size: Option<usize>,
    report_interval: Option<Duration>,
    #[cfg(feature = "tls")]
    tls: Option<TlsOptions>,
    tokens: Vec<(String, Role)>,
    metadata: AadMetadata,
    cluster_id: Option<String>,
    dialect: Dialect,
    packages: Vec<ApplicationType>,
}

impl std::fmt::Debug for Builder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Builder")
            .field("listen", &self.listen)
            .field("time", &self.time)
            .field("workload", &self.workload.is_some())
            .field("secured", &(self.has_tls() || !self.tokens.is_empty()))
            .finish_non_exhaustive()
    }
}

/// The reason why an emulator did not start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// An application package cannot be deployed.
    #[error("the application type {0} cannot be deployed")]
    Package(String, #[source] FabricError),
    /// The topology describes no valid cluster.
    #[error(transparent)]
    Topology(#[from] TopologyError),
    /// The address cannot be bound.
    #[error("cannot listen on {address}")]
    Listen {
        /// The address.
        address: String,
        /// The error of the operating system.
        source: io::Error,
    },
    /// The TLS options are invalid.
    #[cfg(feature = "tls")]
    #[error("cannot serve TLS")]
    Tls(#[from] TlsError),
    /// The speed is out of range.
    #[error("time cannot go {0} times as fast: more than 0 and at most {MAX_SPEED} is possible")]
    Speed(f64),
    /// A bearer token is empty, so that no client could present it.
    #[error("a bearer token is empty")]
    Token,
    /// The page size is zero, so that no list would ever end.
    #[error("pages have at least one item")]
    PageSize,
}

/// Deploys an application package like its tools.
fn deploy(cluster: &mut Cluster, package: ApplicationType) -> Result<(), StartError> {
    let (name, version) = (package.name.clone(), package.version.clone());
    let short = name.strip_suffix("Type").filter(|short| !short.is_empty());
    let application = FabricName::parse(&format!("fabric:/{}", short.unwrap_or(&name)));
    let deployed = cluster.provision_type(package).and_then(|()| {
        cluster.create_application(ApplicationCreation::new(application?, &name, &version))
    });
    deployed.map_err(|error| StartError::Package(format!("`{name}` {version}"), error))
}

impl Builder {
    pub(super) fn new(topology: Topology) -> Self {
        Self {
            topology,
            listen: DEFAULT_LISTEN.to_owned(),
            time: Time::default(),
            workload: None,
            page_size: None,
            report_interval: None,
            #[cfg(feature = "tls")]
            tls: None,
            tokens: Vec::new(),
            metadata: AadMetadata::default(),
            cluster_id: None,
            dialect: Dialect::default(),
            packages: Vec::new(),
        }
    }

    /// Sets the address to listen on. Port 0 picks a free one.
    pub fn listen(mut self, address: impl Into<String>) -> Self {
        self.listen = address.into();
        self
    }

    /// Sets the pace of virtual time.
    pub fn time(mut self, time: Time) -> Self {
        self.time = time;
        self
    }

    /// Lets virtual time follow the real clock at this speed.
    pub fn speed(self, speed: f64) -> Self {
        self.time(Time::Real { speed })
    }

    /// Stops time until [`Emulator::advance`] moves it.
    pub fn manual_time(self) -> Self {
        self.time(Time::Manual)
    }

    /// Sets the workload that runs in the replicas.
    pub fn workload(mut self, workload: impl Workload) -> Self {
        self.workload = Some(Arc::new(workload));
        self
    }

    /// Limits the number of items of a page.
    pub fn page_size(mut self, items: usize) -> Self {
        self.page_size = Some(items);
        self
    }

    /// Sets the interval at which health reports that are not immediate reach the store. Zero: at once.
    pub fn report_interval(mut self, interval: Duration) -> Self {
        self.report_interval = Some(interval);
        self
    }

    /// Serves TLS with these options.
    #[cfg(feature = "tls")]
    pub fn tls(mut self, tls: TlsOptions) -> Self {
        self.tls = Some(tls);
        self
    }

    /// Requires a bearer token from clients, and accepts this one. May be called several times.
    pub fn bearer(mut self, token: impl Into<String>, role: Role) -> Self {
        self.tokens.push((token.into(), role));
        self
    }

    /// Sets the metadata for clients that need a token.
    pub fn aad_metadata(mut self, metadata: AadMetadata) -> Self {
        self.metadata = metadata;
        self
    }

    /// Sets the id of the cluster. A request whose `ClusterId` header differs is rejected.
    pub fn cluster_id(mut self, id: impl Into<String>) -> Self {
        self.cluster_id = Some(id.into());
        self
    }

    /// Provisions this type and creates an application of it, with the default services: `ShopType` becomes
    /// `fabric:/Shop`. May be called several times. [`ApplicationType::from_package`] reads a package.
    pub fn package(mut self, package: ApplicationType) -> Self {
        self.packages.push(package);
        self
    }

    /// Sets the gateway version to imitate.
    pub fn dialect(mut self, dialect: Dialect) -> Self {
        self.dialect = dialect;
        self
    }

    /// Starts the cluster and listens. The entities of the topology exist when this returns; replicas open as
    /// time passes.
    ///
    /// The cluster is built on a blocking thread, so other tasks continue.
    ///
    /// # Errors
    ///
    /// A [`StartError`]: the topology describes no valid cluster, the address cannot be bound, keys or tokens
    /// cannot be used, or the speed or page size is out of range.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped, a cluster that is being built is completed on its thread and discarded.
    /// Nothing else remains.
    pub async fn start(self) -> Result<Emulator, StartError> {
        // The negated comparison also rejects NaN.
        if let Time::Real { speed } = self.time
            && !(speed > 0.0 && speed <= MAX_SPEED)
        {
            return Err(StartError::Speed(speed));
        }
        if self.tokens.iter().any(|(token, _)| token.is_empty()) {
            return Err(StartError::Token);
        }
        if self.page_size == Some(0) {
            return Err(StartError::PageSize);
        }
        let tls = self.build_tls()?;
        let mut topology = self.topology;
        if let Some(interval) = self.report_interval {
            topology.cluster.health_report_interval = interval.into();
        }
        let workloads = self.workload.is_some();
        // Without a date in the ids, runs with manual time are reproducible.
        let ids_since = match self.time {
            Time::Manual => None,
            Time::Real { .. } => Some(Date::of(SystemTime::now())),
        };
        let packages = self.packages;
        // The build of a large cluster would block the runtime.
        let built = spawn_blocking(move || {
            let mut cluster = Cluster::build(&topology, workloads, ids_since)?;
            for package in packages {
                deploy(&mut cluster, package)?;
            }
            Ok::<_, StartError>(cluster)
        });
        let cluster = built
            .await
            .unwrap_or_else(|error| match error.try_into_panic() {
                Ok(panic) => resume_unwind(panic),
                Err(_) => {
                    unreachable!("nobody aborts it, and a runtime that ends does not poll this")
                }
            })?;
        let security = Security {
            certificates: tls.as_ref().is_some_and(Tls::asks_for_certificates),
            tokens: self.tokens,
            metadata: self.metadata,
        };
        let listen_error = |source| StartError::Listen {
            address: self.listen.clone(),
            source,
        };
        // The port is bound after the build, so that no client waits for a cluster that is not ready.
        let listener = TcpListener::bind(&self.listen)
            .await
            .map_err(listen_error)?;
        let surroundings = Surroundings {
            security,
            cluster_id: self.cluster_id,
            dialect: self.dialect,
        };
        let shared = Arc::new(Shared::new(cluster, Clock::new(self.time), surroundings));
        shared.faults().set_page_size(self.page_size);
        let secure = tls.is_some();
        let gateway = Arc::new(Gateway::new(Arc::clone(&shared)));
        let server = Server::start(listener, tls, Arc::clone(&gateway)).map_err(listen_error)?;
        let (stop, stopped) = watch::channel(false);
        let driver = Driver::new(Arc::clone(&shared), self.workload);
        let driver = tokio::spawn(driver.run(stopped));
        Ok(Emulator {
            shared,
            gateway,
            address: server.address(),
            server: Some(server),
            secure,
            stop,
            driver: Some(driver),
        })
    }

    #[cfg(feature = "tls")]
    fn has_tls(&self) -> bool {
        self.tls.is_some()
    }

    #[cfg(feature = "tls")]
    fn build_tls(&self) -> Result<Option<Tls>, StartError> {
        Ok(self.tls.as_ref().map(TlsOptions::build).transpose()?)
    }

    #[cfg(not(feature = "tls"))]
    #[expect(
        clippy::unused_self,
        reason = "its twin with the feature reads the options"
    )]
    fn has_tls(&self) -> bool {
        false
    }

    #[cfg(not(feature = "tls"))]
    #[expect(
        clippy::unused_self,
        clippy::unnecessary_wraps,
        reason = "its twin with the feature can fail"
    )]
    fn build_tls(&self) -> Result<Option<Tls>, StartError> {
        Ok(None)
    }
}
