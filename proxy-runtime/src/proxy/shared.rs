//! The state behind the handles of a proxy: the active configuration, the publication of the next
//! one, and the state that survives both.

use std::collections::HashSet;
use std::sync::Arc;
#[cfg(feature = "affinity-keys")]
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use arc_swap::{ArcSwap, ArcSwapOption, Guard};
use http::HeaderMap;
use parking_lot::{Mutex, MutexGuard};
use proxy_model::{ClusterId, Problem, Problems, RouteId, Snapshot, pointer_to};
use tokio::sync::watch;

use super::history::{History, PastChange};
use crate::balance::Random;
use crate::cluster::PickContext;
use crate::head::{ErrorBodies, ErrorForm, ErrorPages};
use crate::health::HealthPolicies;
use crate::observe::{ProxyMetrics, targets};
use crate::policy::PolicySource;
use crate::response::CauseHeader;
use crate::state::{Generation, Registered};
use crate::support::unsupported_by;
use crate::trace::Tracer;
use crate::transform::LoopGuard;
#[cfg(feature = "tls")]
use crate::upstream::OwnCredentials;
use crate::upstream::{Connectors, Unresolved, UpstreamOptions, Upstreams};

/// Maximum number of problems per configuration that are logged one by one.
const WARNINGS: usize = 20;

/// The time for which an observed problem is shown.
const RECENT: Duration = Duration::from_secs(300);

/// The state that all handles of one proxy share.
pub(crate) struct Shared {
    generation: ArcSwap<Generation>,
    /// Number of the active generation.
    published: watch::Sender<u64>,
    /// Locked while a generation is built and published, so that concurrent calls do not lose one.
    publishing: Mutex<History>,
    registered: Registered,
    health_policies: HealthPolicies,
    context: Arc<PickContext>,
    max_request_body: Option<u64>,
    negotiates_errors: bool,
    error_pages: ArcSwapOption<ErrorPages>,
    cause_header: Option<Arc<CauseHeader>>,
    tracer: Option<Arc<dyn Tracer>>,
    metrics: Arc<ProxyMetrics>,
    upstreams: Arc<Upstreams>,
    speaks_tls: bool,
    #[cfg(feature = "affinity-keys")]
    has_affinity_keys: AtomicBool,
}

/// The settings of a proxy, without its first configuration.
#[derive(Default)]
pub(crate) struct Settings {
    pub(crate) registered: Registered,
    pub(crate) health_policies: HealthPolicies,
    pub(crate) context: PickContext,
    pub(crate) upstream: UpstreamOptions,
    pub(crate) connectors: Connectors,
    pub(crate) max_request_body: Option<u64>,
    /// True if errors have the form that the client prefers.
    pub(crate) negotiates_errors: bool,
    pub(crate) error_pages: ErrorPages,
    pub(crate) cause_header: Option<Arc<CauseHeader>>,
    pub(crate) tracer: Option<Arc<dyn Tracer>>,
    /// True if the detection of loops is disabled.
    pub(crate) is_unguarded: bool,
    /// True if the program has set the keys of sealed affinity keys.
    #[cfg(feature = "affinity-keys")]
    pub(crate) has_affinity_keys: bool,
}

impl Shared {
    pub(crate) fn new(snapshot: Arc<Snapshot>, settings: Settings) -> Result<Self, Problems> {
        let guard = || Arc::new(LoopGuard::new());
        let context = Arc::new(PickContext {
            loop_guard: (!settings.is_unguarded).then(guard),
            #[cfg(feature = "tls")]
            tls: settings.upstream.tls.clone(),
            ..settings.context
        });
        let unreachable = context.unreachable.clone();
        settings.health_policies.check(&snapshot)?;
        let mut history = History::default();
        let first = Generation::first(snapshot, &settings.registered, &context)?;
        history.published(None, &first);
        first.note_drains();
        let speaks_tls = settings.upstream.speaks_tls();
        let first_snapshot = Arc::clone(first.snapshot());
        let shared = Self {
            published: watch::Sender::new(first.number()),
            generation: ArcSwap::from_pointee(first),
            publishing: Mutex::new(history),
            registered: settings.registered,
            health_policies: settings.health_policies,
            context,
            metrics: Arc::default(),
            upstreams: Upstreams::new(settings.upstream, settings.connectors, unreachable),
            max_request_body: settings.max_request_body,
            negotiates_errors: settings.negotiates_errors,
            error_pages: ArcSwapOption::new(some_pages(settings.error_pages)),
            cause_header: settings.cause_header,
            tracer: settings.tracer,
            speaks_tls,
            #[cfg(feature = "affinity-keys")]
            has_affinity_keys: AtomicBool::new(settings.has_affinity_keys),
        };
        warn_of(&shared.unsupported(&first_snapshot), &Problems::new());
        Ok(shared)
    }

    /// The active generation. A request loads it once and keeps it to its end.
    pub(crate) fn load(&self) -> Guard<Arc<Generation>> {
        self.generation.load()
    }

    /// The cell of the active generation, for callers that cache it.
    #[cfg(feature = "server")]
    pub(crate) fn published(&self) -> &ArcSwap<Generation> {
        &self.generation
    }

    /// The active generation, for longer use than that of [`load`](Self::load).
    pub(crate) fn load_full(&self) -> Arc<Generation> {
        self.generation.load_full()
    }

    /// Replaces the current configuration.
    pub(crate) fn publish(&self, snapshot: Arc<Snapshot>) -> Result<u64, Problems> {
        // Locked to the end: concurrent calls publish one after the other.
        let mut history = self.lock_history();
        let before = self.generation.load_full();
        let revision = snapshot.revision();
        let built = self
            .health_policies
            .check(&snapshot)
            .and_then(|()| before.next(snapshot, &self.registered, &self.context));
        let next = match built {
            Ok(next) => Arc::new(next),
            Err(problems) => {
                self.metrics.rejected_reloads.increment();
                history.rejected(revision, &problems);
                tracing::warn!(
                    target: targets::CONFIG,
                    generation = before.number(),
                    %revision,
                    %problems,
                    "the new configuration is rejected, the current one stays"
                );
                return Err(problems);
            }
        };
        let number = next.number();
        self.generation.store(Arc::clone(&next));
        // Only after the new generation serves: connections of removed destinations must not be
        // taken again.
        before.retire(&next);
        next.note_drains();
        self.metrics.reloads.increment();
        let changes = history.published(Some(&before), &next);
        tracing::info!(
            target: targets::CONFIG,
            generation = number,
            %revision,
            routes = next.snapshot().routes().len(),
            clusters = next.snapshot().clusters().len(),
            changes,
            "a new configuration serves"
        );
        // Only new problems: the others were logged before.
        warn_of(
            &self.unsupported(next.snapshot()),
            &self.unsupported(before.snapshot()),
        );
        // Last, so that woken tasks see the new generation.
        self.published.send_replace(number);
        Ok(number)
    }

    /// Replaces the current generation, if a cluster has later certificates, by one of the same configuration, so
    /// that connections with the earlier ones serve no new requests.
    #[cfg(feature = "tls")]
    pub(crate) fn renew_credentials(&self) {
        let _publishing = self.lock_history();
        let before = self.generation.load_full();
        let mut all = before
            .clusters()
            .filter_map(|(_, state)| state.credentials());
        if !all.any(OwnCredentials::is_outdated) {
            return;
        }
        let snapshot = Arc::clone(before.snapshot());
        // The same configuration was built before.
        let Ok(next) = before.next(snapshot, &self.registered, &self.context) else {
            return;
        };
        let next = Arc::new(next);
        let number = next.number();
        self.generation.store(Arc::clone(&next));
        before.retire(&next);
        tracing::info!(
            target: targets::TLS,
            generation = number,
            "certificates for destinations were replaced"
        );
        self.published.send_replace(number);
    }

    /// The source of certificates of single clusters.
    #[cfg(feature = "tls")]
    pub(crate) fn tls(&self) -> Option<&crate::upstream::TlsClient> {
        self.context.tls.as_ref()
    }

    /// The settings of a configuration that this proxy does not support.
    pub(crate) fn unsupported(&self, snapshot: &Snapshot) -> Problems {
        let problems = unsupported_by(snapshot, self.speaks_tls, self.policies().is_some());
        #[cfg(feature = "affinity-keys")]
        if !self.has_affinity_keys.load(Ordering::Relaxed) {
            let random = crate::affinity::random_affinity_keys(snapshot);
            return problems.into_iter().chain(random).collect();
        }
        problems
    }

    /// Replaces the keys that affinity keys are encrypted with.
    #[cfg(feature = "affinity-keys")]
    pub(crate) fn set_affinity_keys(&self, keys: crate::affinity::AffinityKeys) {
        self.context.affinity_keys.store(keys);
        self.has_affinity_keys.store(true, Ordering::Relaxed);
    }

    /// Recent problems that were observed with requests.
    pub(crate) fn observed(&self) -> Problems {
        let generation = self.load();
        let unresolved = self.upstreams.unresolved();
        let names = unresolved
            .iter()
            .filter_map(|name| unresolved_name(&generation, name));
        let routes = generation.snapshot().routes().iter();
        let looped = routes
            .zip(generation.routes())
            .filter_map(|(route, state)| {
                let (count, age) = state.metrics().loops().seen()?;
                (age <= RECENT).then(|| loop_detected(route.id(), count, age))
            });
        let credentials = generation.clusters().filter_map(|(cluster, state)| {
            let (fault, keeps_earlier) = state.credentials()?.fault()?;
            Some(unusable_credentials(cluster.id(), &fault, keeps_earlier))
        });
        looped.chain(names).chain(credentials).collect()
    }

    pub(crate) fn generations(&self) -> watch::Receiver<u64> {
        self.published.subscribe()
    }

    pub(crate) fn history(&self) -> Vec<PastChange> {
        self.lock_history().list()
    }

    pub(crate) fn health_policies(&self) -> &HealthPolicies {
        &self.health_policies
    }

    /// The source of random numbers.
    pub(crate) fn random(&self) -> &Random {
        &self.context.random
    }

    /// Returns true if errors have the form that the client prefers.
    #[inline]
    pub(crate) fn negotiates_errors(&self) -> bool {
        self.negotiates_errors
    }

    /// The form of errors for a request with these fields.
    pub(crate) fn error_form(&self, fields: &HeaderMap) -> ErrorForm {
        match self.negotiates_errors {
            true => ErrorForm::of_fields(fields),
            false => ErrorForm::default(),
        }
    }

    /// The bodies of errors for a client that prefers this form.
    pub(crate) fn errors(&self, form: ErrorForm) -> ErrorBodies {
        let pages = self.error_pages.load_full();
        ErrorBodies::new(form, self.negotiates_errors, pages)
    }

    /// Replaces the pages of errors.
    pub(crate) fn set_error_pages(&self, pages: ErrorPages) {
        self.error_pages.store(some_pages(pages));
    }

    /// Maximum size of a request body, in bytes, for routes that set none.
    pub(crate) fn max_request_body(&self) -> Option<u64> {
        self.max_request_body
    }

    /// The clients that get the cause of an error, if there are any.
    pub(crate) fn cause_header(&self) -> Option<&Arc<CauseHeader>> {
        self.cause_header.as_ref()
    }

    /// The tracer of requests and health checks, if there is one.
    #[inline]
    pub(crate) fn tracer(&self) -> Option<&Arc<dyn Tracer>> {
        self.tracer.as_ref()
    }

    /// The metrics of the whole proxy.
    pub(crate) fn metrics(&self) -> &Arc<ProxyMetrics> {
        &self.metrics
    }

    /// The state that the connection pools of all services share.
    pub(crate) fn upstreams(&self) -> &Arc<Upstreams> {
        &self.upstreams
    }

    /// The factory of the policies of routes.
    pub(crate) fn policies(&self) -> Option<&Arc<dyn PolicySource>> {
        self.registered.extensions.policies()
    }

    fn lock_history(&self) -> MutexGuard<'_, History> {
        // Entries of the history are whole; a panic loses at most one.
        self.publishing.lock()
    }
}

fn some_pages(pages: ErrorPages) -> Option<Arc<ErrorPages>> {
    (!pages.is_empty()).then(|| Arc::new(pages))
}

/// Returns a warning for the destination with this name. `None` if no destination has the name any
/// more.
fn unresolved_name(generation: &Generation, unresolved: &Unresolved) -> Option<Problem> {
    let Unresolved {
        name,
        since,
        error,
        has_addresses,
    } = unresolved;
    let mut all = generation.snapshot().clusters().iter().flat_map(|cluster| {
        let destinations = cluster.destinations().iter();
        destinations.map(move |destination| (cluster, destination))
    });
    // One destination stands for all that have the name.
    let (cluster, destination) =
        all.find(|(_, it)| it.address().host().eq_ignore_ascii_case(name))?;
    let clusters = pointer_to("/Clusters", cluster.id().as_str());
    let pointer = pointer_to(
        &format!("{clusters}/Destinations"),
        destination.id().as_str(),
    );
    let outcome = match has_addresses {
        true => "its last addresses are used",
        false => "no connection can be opened",
    };
    let message = format!(
        "the name `{name}` has not been resolved for {} s, and {outcome}: {error}",
        since.as_secs()
    );
    Some(Problem::warning(pointer, "unresolved_name", message))
}

fn unusable_credentials(cluster: &ClusterId, fault: &str, keeps_earlier: bool) -> Problem {
    let outcome = match keeps_earlier {
        true => "the earlier ones are used",
        false => "no connection is opened",
    };
    let message =
        format!("the certificates for destinations cannot be used, and {outcome}: {fault}");
    let pointer = pointer_to("/Clusters", cluster.as_str()) + "/HttpClient";
    Problem::warning(pointer, "unusable_certificate", message)
}

fn loop_detected(route: &RouteId, count: u64, age: Duration) -> Problem {
    let message = format!(
        "requests that this proxy had forwarded came back to it and got 508: {count} so far, the last {} s ago",
        age.as_secs(),
    );
    let pointer = pointer_to("/Routes", route.as_str());
    Problem::warning(pointer, "loop_detected", message).with_suggestion(
        "take the proxy's own address out of the destinations, also as another proxy reaches it",
    )
}

/// Logs the problems in `found` that are not in `known`.
fn warn_of(found: &Problems, known: &Problems) {
    // A reload reports only new problems.
    let known: HashSet<_> = known.iter().collect();
    let mut new = found.iter().filter(|problem| !known.contains(problem));
    for problem in new.by_ref().take(WARNINGS) {
        tracing::warn!(
            target: targets::CONFIG,
            pointer = problem.pointer,
            code = &*problem.code,
            "{}",
            problem.message
        );
    }
    let omitted = new.count();
    if omitted > 0 {
        tracing::warn!(target: targets::CONFIG, omitted, "and more that is not supported yet");
    }
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared").finish_non_exhaustive()
    }
}
