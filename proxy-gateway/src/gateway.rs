//! The assembly of the program: sources → merge → proxy → server, and the admin page beside them.

use std::io;
use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

use discovery_core::{Merge, Merged, MergedState, UnreachableClusters};
use discovery_http::{ReqwestTransport, Transport, TransportOptions, tls};
use program_kit::{Failure, with_causes};
use proxy_model::CompileOptions;
use proxy_policies::Policies;
use proxy_runtime::admin::{Admin, AdminBuilder};
use proxy_runtime::server::{
    AccessLogFormat, AccessLogWriter, BindError, DrainReport, Listener, LogOutput, QueryLogging,
    RequestTail, Server, ServerHandle,
};
use proxy_runtime::trace::trace_cycles;
use proxy_runtime::upstream::{TlsClient, UpstreamOptions};
use proxy_runtime::{ErrorPages, Proxy};
use proxy_telemetry::{MetricsExport, Telemetry};
use tokio::net::TcpListener;
use tokio::sync::Notify;
use tokio::task::{AbortHandle, JoinSet};

use crate::admin_socket::AdminSocket;
use crate::admin_tokens;
use crate::affinity_keys;
use crate::allocator;
use crate::certificates::{self, Followed, TlsUser};
use crate::commands::unusable;
use crate::error_pages::FollowedPages;
use crate::faults::Faults;
use crate::hot_restart::{HotRestartError, Predecessor};
use crate::log_filter::LogFilter;
use crate::request_records;
use crate::secret_file::SecretFile;
use crate::settings::{self, AffinityKeySource, LineFormat, LogFormat, Settings, TokenSource};
use crate::starting;
use crate::traces;

/// The longest time that the end of the program waits for the access log.
const LAST_FLUSH: Duration = Duration::from_secs(2);

/// The running parts of the program.
pub(crate) struct Gateway {
    proxy: Proxy,
    merged: Arc<Merged>,
    server: Serving,
    admin: Option<AdminPage>,
    /// The sockets for a successor.
    offered: Option<Vec<std::net::TcpListener>>,
    readiness_delay: Duration,
    drain_timeout: Duration,
    access_log: Option<Arc<AccessLogWriter>>,
    traces: Option<Telemetry>,
    metrics: Option<MetricsExport>,
    faults: Faults,
    /// The driver of the proxy, the admin page, and the follower of certificates. They end when this is
    /// dropped.
    tasks: JoinSet<()>,
}

/// The admin page, and its socket.
struct AdminPage {
    address: SocketAddr,
    /// True if it speaks TLS.
    is_secure: bool,
    admin: Admin,
    /// The listening socket, until the page is served.
    socket: Option<TcpListener>,
    serving: Option<AbortHandle>,
}

/// The server: bound and waiting for the first configuration, or running.
enum Serving {
    Bound(
        Box<dyn FnOnce() -> io::Result<ServerHandle> + Send>,
        Vec<SocketAddr>,
    ),
    Running(ServerHandle),
    Failed,
}

impl Serving {
    /// The addresses of the listeners, in the order of the settings.
    fn addresses(&self) -> &[SocketAddr] {
        match self {
            Self::Bound(_, addresses) => addresses,
            Self::Running(server) => server.local_addrs(),
            Self::Failed => &[],
        }
    }
}

impl Gateway {
    /// Binds all sockets and starts everything except the server, which waits for [`serve`](Self::serve).
    /// `sources` adds the providers to the merge. If they compile configuration themselves, they need the
    /// options that it is called with.
    ///
    /// Addresses are bound first, so that nothing has been started if one of them is taken. `inherited`
    /// sockets need no binding. An inherited admin page waits for [`open_admin`](Self::open_admin).
    ///
    /// With `may_be_early`, requests may arrive before every source has given a configuration.
    pub(crate) async fn start<F>(
        settings: &Settings,
        inherited: &mut Vec<std::net::TcpListener>,
        may_be_early: bool,
        log: &LogFilter,
        sources: F,
    ) -> Result<Self, Failure>
    where
        F: AsyncFnOnce(Merge, &CompileOptions) -> Result<Merge, Failure>,
    {
        let provider = provider();
        let mut builder = Proxy::builder().upstream(upstream(&settings.server, &provider)?);
        let unreachable = Arc::new(UnreachableClusters::new());
        builder = builder.unreachable(Arc::clone(&unreachable));
        builder = builder
            .loop_guard(settings.server.loop_guard)
            .negotiate_errors(settings.server.negotiate_errors)
            .error_pages(error_pages(&settings.server)?);
        builder = builder.policies(Arc::new(policies(&provider)?));
        if !settings.server.cause_networks.is_empty() {
            builder = builder.cause_header(settings.server.cause_networks.iter().copied());
        }
        if let Some(zone) = &settings.server.zone {
            builder = builder.zone(zone.as_str());
        }
        let keys = settings.server.affinity_keys.as_ref();
        let key_file = keys.and_then(AffinityKeySource::file);
        let key_file = key_file.map(SecretFile::noted);
        if let Some(source) = keys {
            builder = builder.affinity_keys(source.keys().map_err(Failure::new)?);
        }
        let traces = traces::start()?;
        if let Some(telemetry) = &traces {
            builder = builder.tracer(telemetry.tracer());
        }
        let mut limits = settings.server.limits.clone();
        // As a limit of the server, it would also restrict routes that allow more.
        if let Some(bytes) = limits.body_bytes.take() {
            builder = builder.max_request_body(bytes);
        }
        let options = builder.compile_options();
        let mut merge = Merge::new().compile_options(options.clone());
        if let Some(resolver) = &settings.server.destination_resolver {
            merge = merge.resolver(resolver.resolver(settings.server.resolver.dns()));
        }
        let merged = Arc::new(sources(merge, &options).await?.start());
        let mut tasks = JoinSet::new();
        let snapshots = if may_be_early {
            let (snapshots, follow) = starting::snapshots(&merged, options);
            tasks.spawn(follow);
            snapshots
        } else {
            merged.snapshots()
        };
        let built = builder.snapshots(snapshots).build();
        let (proxy, driver) = built.map_err(|problems| unusable(&problems))?;

        let access_log = open_access_log(settings)?;
        let mut followed = Vec::new();
        let mut server = Server::for_proxy(&proxy).with_limits(limits);
        if let Some(workers) = settings.server.workers.and_then(NonZeroUsize::new) {
            server = server.with_workers(workers);
        }
        let requests = settings.telemetry.live_requests.map(RequestTail::new);
        let requests = requests.map(Arc::new);
        if let Some(sink) = request_records::sink(access_log.as_ref(), requests.as_ref()) {
            server = server.with_access_log(sink);
        }
        for listener in &settings.listeners {
            server = server.with_listener(open(listener, &provider, &mut followed)?);
        }
        let server = server
            .bind_with(inherited)
            .map_err(|error| cannot_listen(&error, &settings.listeners))?;
        let admin_socket = match &settings.admin {
            Some(admin) => Some(AdminSocket::open(admin.address, inherited).await?),
            None => None,
        };
        let is_inherited = admin_socket
            .as_ref()
            .is_some_and(|socket| socket.is_inherited);
        let offered = match settings.server.handover {
            Some(_) => Some(offered(server.listening_sockets(), admin_socket.as_ref())?),
            None => None,
        };

        let mut admin = Admin::builder(proxy.clone()).server(&server);
        let tokens = settings.admin.as_ref().and_then(|of| of.tokens.as_ref());
        if let Some(read) = &settings.admin {
            admin = read.hosts.iter().fold(admin, AdminBuilder::host);
            if let Some(tls) = &read.tls {
                let (config, files) = certificates::load(TlsUser::Admin, tls, &provider)?;
                followed.push(files);
                admin = admin.tls(config);
            }
        }
        let token_file = tokens.and_then(TokenSource::file);
        let token_file = token_file.map(SecretFile::noted);
        if let Some(source) = tokens {
            admin = admin.tokens(source.tokens().map_err(Failure::new)?);
        }
        let addresses = server.local_addrs().to_vec();
        // The server accepts connections later, in `serve`: a predecessor may still serve.
        let server = Serving::Bound(Box::new(move || server.start()), addresses);
        tasks.spawn(driver);
        if let Some(telemetry) = &traces {
            for (source, cycles) in merged.cycles() {
                tasks.spawn(trace_cycles(telemetry.tracer(), source, cycles));
            }
        }
        tasks.spawn(async { match allocator::give_back().await {} });
        let expiring = log.clone();
        tasks.spawn(async move { match expiring.expire().await {} });
        let told = Arc::clone(&merged);
        tasks.spawn(async move { match told.follow_unreachable(&unreachable).await {} });
        let faults = Faults::default();
        if let Some(file) = key_file {
            tasks.spawn(affinity_keys::follow(proxy.clone(), file, faults.clone()));
        }
        if !followed.is_empty() {
            tasks.spawn(certificates::follow(followed, faults.clone()));
        }
        let admin = match admin_socket {
            Some(socket) => {
                let mut admin = admin
                    .merged(Arc::clone(&merged))
                    .log(Arc::new(log.clone()))
                    .problems({
                        let faults = faults.clone();
                        move || faults.problems()
                    })
                    .dropped_lines("program", program_kit::dropped_lines);
                if let Some(log) = access_log.clone() {
                    admin = admin.dropped_lines("access", move || log.dropped());
                }
                let dropped_spans = traces.as_ref().map(Telemetry::dropped_spans);
                admin =
                    admin.dropped_spans(move || dropped_spans.as_ref().map_or(0, |count| count()));
                if let Some(requests) = requests {
                    admin = admin.requests(requests);
                }
                let admin = admin.build();
                if let Some(file) = token_file {
                    let (admin, faults) = (admin.clone(), faults.clone());
                    tasks.spawn(admin_tokens::follow(admin, file, faults));
                }
                let tls = settings.admin.as_ref().and_then(|of| of.tls.as_ref());
                Some(AdminPage {
                    address: socket.address,
                    is_secure: tls.is_some(),
                    admin,
                    socket: Some(socket.listener()?),
                    serving: None,
                })
            }
            None => None,
        };
        let metrics = traces::start_metrics(&proxy, admin.as_ref().map(|page| &page.admin))?;
        let mut gateway = Self {
            proxy,
            merged,
            server,
            admin,
            offered,
            readiness_delay: settings.server.readiness_delay,
            drain_timeout: settings.server.drain_timeout,
            access_log,
            traces,
            metrics,
            faults,
            tasks,
        };
        // On an inherited socket, the predecessor still serves its admin page.
        if !is_inherited {
            gateway.open_admin();
        }
        Ok(gateway)
    }

    /// Serves the admin page, if no other instance does.
    pub(crate) fn open_admin(&mut self) {
        if let Some(page) = &mut self.admin
            && let Some(socket) = page.socket.take()
        {
            let admin = page.admin.clone();
            let serving = async move {
                admin.serve(socket).await;
            };
            page.serving = Some(self.tasks.spawn(serving));
        }
    }

    /// Takes the sockets for a successor, if there may be one.
    pub(crate) fn take_offered(&mut self) -> Option<Vec<std::net::TcpListener>> {
        self.offered.take()
    }

    /// Reopens the file of the access log by its name whenever `wanted` is notified.
    pub(crate) fn reopen_logs_on(&mut self, wanted: Arc<Notify>) {
        let Some(log) = self.access_log.clone() else {
            return;
        };
        self.tasks.spawn(async move {
            loop {
                wanted.notified().await;
                log.reopen();
            }
        });
    }

    /// Returns the addresses on which the proxy listens, in the order of the settings.
    pub(crate) fn addresses(&self) -> &[SocketAddr] {
        self.server.addresses()
    }

    /// Returns the address of the admin page.
    pub(crate) fn admin(&self) -> Option<SocketAddr> {
        self.admin.as_ref().map(|page| page.address)
    }

    /// Returns true if the admin page speaks TLS.
    pub(crate) fn has_secure_admin(&self) -> bool {
        self.admin.as_ref().is_some_and(|page| page.is_secure)
    }

    /// Waits until every source has given a configuration, while a predecessor serves. Configuration kept on
    /// disk does not count, since it may be older than the predecessor's. Returns true if the predecessor is
    /// still there.
    ///
    /// # Errors
    ///
    /// Another instance has replaced the predecessor.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe.
    pub(crate) async fn until_confirmed(
        &self,
        predecessor: &Predecessor,
    ) -> Result<bool, HotRestartError> {
        tokio::select! {
            _ = self.merged.confirmed() => Ok(true),
            gone = predecessor.gone() => gone.map(|()| false),
        }
    }

    /// Returns the follower of the pages of errors.
    pub(crate) fn followed_pages(&self) -> FollowedPages {
        FollowedPages::new(self.proxy.clone(), self.faults.clone())
    }

    /// The problems that the program finds while it runs.
    pub(crate) fn faults(&self) -> &Faults {
        &self.faults
    }

    /// Returns true if every source has given a configuration, or has a kept one.
    pub(crate) fn is_ready(&self) -> bool {
        self.merged.state().ready
    }

    /// Starts to accept connections, unless it does already.
    pub(crate) fn serve(&mut self) -> Result<(), Failure> {
        // The start consumes the closure, so `Failed` takes its place meanwhile.
        self.server = match std::mem::replace(&mut self.server, Serving::Failed) {
            Serving::Bound(start, _) => Serving::Running(
                start()
                    .map_err(|error| Failure::new(format!("the server cannot start: {error}")))?,
            ),
            other => other,
        };
        Ok(())
    }

    /// Waits until every source has given a configuration, or has a kept one, and the proxy serves it.
    ///
    /// Cancel-safe.
    pub(crate) async fn ready(&self) -> Arc<MergedState> {
        self.merged.ready().await;
        // The proxy sees a snapshot a moment after the merge, and may skip one that is replaced at once.
        let mut generations = self.proxy.generations();
        loop {
            let state = self.merged.state();
            let is_seen = self.proxy.snapshot().revision() == state.snapshot.revision();
            if is_seen || generations.changed().await.is_err() {
                return state;
            }
        }
    }

    /// Drains the gateway: reports that it is not ready, keeps serving for a moment so that load balancers
    /// notice, stops accepting connections, lets requests in flight end until the deadline, and stops
    /// everything else.
    ///
    /// With a successor the delay is skipped: it accepts the connections, and serves the admin page.
    pub(crate) async fn drain(mut self, has_successor: bool) -> DrainReport {
        // The sockets close only after their last copy is dropped.
        drop(self.offered.take());
        if let Some(page) = &self.admin {
            page.admin.set_draining();
            if has_successor && let Some(serving) = &page.serving {
                // The successor serves the admin page from now on.
                serving.abort();
            }
        }
        let report = match self.server {
            Serving::Running(server) => {
                // Load balancers need time to notice. A successor takes new connections anyway.
                if !has_successor {
                    tokio::time::sleep(self.readiness_delay).await;
                }
                server.shutdown(self.drain_timeout).await
            }
            Serving::Bound(..) | Serving::Failed => DrainReport::default(),
        };
        self.tasks.shutdown().await;
        if let Some(telemetry) = self.traces {
            traces::end(telemetry).await;
        }
        if let Some(export) = self.metrics {
            traces::end_metrics(export).await;
        }
        if let Some(log) = self.access_log {
            let flushed = tokio::task::spawn_blocking(move || log.flush(LAST_FLUSH)).await;
            if !flushed.unwrap_or(false) {
                tracing::warn!(target: "proxy::access", "the last lines of the access log could not be written in time");
            }
        }
        report
    }
}

/// The cryptography of all connections.
pub(crate) fn provider() -> Arc<rustls::crypto::CryptoProvider> {
    Arc::new(rustls::crypto::aws_lc_rs::default_provider())
}

/// The policies of the gateway.
pub(crate) fn policies(
    provider: &Arc<rustls::crypto::CryptoProvider>,
) -> Result<Policies, Failure> {
    Ok(Policies::new().with_transport(policy_client(provider)?))
}

/// Creates the HTTP client for policies that call other services.
fn policy_client(
    provider: &Arc<rustls::crypto::CryptoProvider>,
) -> Result<Arc<dyn Transport>, Failure> {
    let verifier = tls::system_verifier(provider);
    let config = verifier
        .and_then(|verifier| tls::client_config(Arc::clone(provider), verifier, None))
        .map_err(|error| {
            Failure::new(format!("the client of policies cannot be set up: {error}"))
        })?;
    let mut options = TransportOptions::new("proxy-gateway");
    options.connect_timeout = POLICY_CONNECT_TIMEOUT;
    let client = ReqwestTransport::new(config, &options);
    let client = client.map_err(|error| Failure::from_error(&error))?;
    Ok(Arc::new(client))
}

/// Returns the pages of errors as they are now.
fn error_pages(server: &settings::Server) -> Result<ErrorPages, Failure> {
    let pages = server.error_pages.load();
    pages.map_err(|problems| unusable(&problems))
}

/// The time limit for a connection to a service that authorizes, or to an issuer of tokens.
const POLICY_CONNECT_TIMEOUT: Duration = Duration::from_secs(3);

fn upstream(
    server: &settings::Server,
    provider: &Arc<rustls::crypto::CryptoProvider>,
) -> Result<UpstreamOptions, Failure> {
    let tls = TlsClient::new(Arc::clone(provider)).map_err(|error| {
        Failure::new(format!(
            "the system's trusted certificates cannot be read: {error}; on Debian the package ca-certificates has them"
        ))
    })?;
    let mut options = UpstreamOptions::default();
    options.tls = Some(tls);
    options.dns = server.resolver.dns();
    let by = match options.dns {
        Some(_) => "hosts and DNS",
        None => "the system",
    };
    tracing::info!(target: "proxy::upstream", by, "names of destinations are looked up");
    Ok(options)
}

fn open(
    listener: &settings::Listener,
    provider: &Arc<rustls::crypto::CryptoProvider>,
    followed: &mut Vec<Followed>,
) -> Result<Listener, Failure> {
    let opened = match &listener.tls {
        None => Listener::http(listener.address),
        Some(tls) => {
            let user = TlsUser::Listener(listener.name.clone());
            let (config, files) = certificates::load(user, tls, provider)?;
            followed.push(files);
            Listener::https(listener.address, config)
        }
    };
    let opened = opened.with_name(&listener.name).with_rules(listener.rules);
    Ok(match &listener.proxy_protocol {
        None => opened,
        Some(protocol) => opened.with_proxy_protocol(protocol.clone()),
    })
}

/// Returns the failure of a listener, with the key that sets its address.
fn cannot_listen(error: &BindError, listeners: &[settings::Listener]) -> Failure {
    let address = match error {
        BindError::InUse { address }
        | BindError::Overlap { address, .. }
        | BindError::PermissionDenied { address }
        | BindError::NotAvailable { address }
        | BindError::Io { address, .. } => Some(address),
        _ => None,
    };
    let is_of = |listener: &&settings::Listener| Some(&listener.address) == address;
    let text = with_causes(error);
    Failure::new(match listeners.iter().find(is_of) {
        Some(listener) => format!("{text}; the key is `Listeners.{}.Address`", listener.name),
        None => text,
    })
}

/// Returns the sockets for a successor: those of the server and that of the admin page.
fn offered(
    sockets: io::Result<Vec<std::net::TcpListener>>,
    admin: Option<&AdminSocket>,
) -> Result<Vec<std::net::TcpListener>, Failure> {
    let all = sockets.and_then(|mut sockets| {
        if let Some(admin) = admin {
            sockets.push(admin.socket.try_clone()?);
        }
        Ok(sockets)
    });
    all.map_err(|error| {
        Failure::new(format!(
            "the sockets cannot be kept for a successor: {error}"
        ))
    })
}

fn open_access_log(settings: &Settings) -> Result<Option<Arc<AccessLogWriter>>, Failure> {
    let Some(log) = &settings.telemetry.access_log else {
        return Ok(None);
    };
    let format = match &log.format {
        LineFormat::Known(LogFormat::Text) => AccessLogFormat::Text,
        LineFormat::Known(LogFormat::Json) => AccessLogFormat::Json,
        LineFormat::Template(template) => AccessLogFormat::Template(template.clone()),
    };
    let started = match &log.file {
        None => Ok(LogOutput::stdout()),
        Some(path) => LogOutput::file(path),
    }
    .and_then(|output| AccessLogWriter::start(output, format, QueryLogging::default()));
    let to = log.file.as_ref().map_or_else(
        || "standard output".to_owned(),
        |path| path.display().to_string(),
    );
    match started {
        Ok(writer) => Ok(Some(Arc::new(writer.with_sampling(log.sample)))),
        Err(error) => Err(Failure::new(format!(
            "the access log cannot be written to {to}: {error}"
        ))),
    }
}
