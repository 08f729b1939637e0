use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep_until};

use super::kept::{KeptError, KeptFile};
use super::{PipelineOptions, PipelineStatus};
use crate::assemble::{BuiltResources, Owner, ResourceBuilder, ServiceResources, Warning};
use crate::snapshot::Snapshot;
use crate::sources::{Followed, Sources};
use crate::translate::{CONSUL, Known, REGISTRY, Translator};

/// The target of log lines.
pub(super) const TARGET: &str = "xds::pipeline";

/// The time for which a snapshot must have been served before it is written to disk, and the least time
/// between two writes.
const KEEP_GAP: Duration = Duration::from_secs(30);

/// The time for which endpoints that a canary has lost stay after its share of the requests has returned to its
/// service.
const LINGER: Duration = Duration::from_secs(2);

/// The interval at which some services take new settings of all clusters. They are rolled out by share,
/// with a minimum number, since every Envoy warms their clusters again.
const ROLL_GAP: Duration = Duration::from_secs(1);
const ROLL_SHARE: usize = 20;
const ROLL_LEAST: usize = 20;

pub(super) struct Driver {
    sources: Followed,
    options: PipelineOptions,
    /// The state of the work. Absent while a thread has it.
    work: Option<Box<Work>>,
    shown: Shown,
    /// Becomes true, or is closed, when the pipeline must end.
    stopped: watch::Receiver<bool>,
    /// True if everything that the sources have was assembled.
    has_assembled: bool,
    due_times: DueTimes,
    /// The time at which more services may take new settings.
    roll_at: Option<Instant>,
    /// Number of services.
    services: usize,
    let_go_at: Option<Instant>,
    /// The clusters whose endpoints stay until then.
    lingering: BTreeSet<String>,
    kept: Option<KeptFile>,
    keep_at: Option<Instant>,
    keeping: Option<JoinHandle<Result<(), KeptError>>>,
    persist_failure: Option<Arc<str>>,
    is_kept: bool,
    /// The time at which the kept snapshot is served and counts as ready, even if no source has failed.
    fall_back_at: Option<Instant>,
    /// The warnings of the translation.
    warnings: Vec<Warning>,
    assembled: BuiltResources,
}

/// The published state of a pipeline.
pub(super) struct Shown {
    pub(super) snapshot: watch::Sender<Option<Arc<Snapshot>>>,
    pub(super) status: watch::Sender<Arc<PipelineStatus>>,
    pub(super) ready: watch::Sender<bool>,
}

/// The work that takes a while for thousands of services.
struct Work {
    translator: Translator,
    assembler: ResourceBuilder,
}

/// The input of the work.
struct Task {
    known: Known,
    provided: Vec<Arc<ServiceResources>>,
    /// Maximum number of services that may take new settings.
    most: usize,
    is_config: bool,
}

/// The result of the work.
struct Done {
    assembled: BuiltResources,
    warnings: Vec<Warning>,
    services: usize,
    /// True if there are changes in more than endpoints.
    is_behind: bool,
    /// True if services wait for new settings.
    is_rolling: bool,
    lingering: BTreeSet<String>,
}

impl Work {
    fn run(&mut self, task: Task) -> Done {
        // A service that opts in by tags is only in the catalog, and may be in a part of it that was not
        // read yet.
        let is_whole = task.known.catalog.unlisted.is_none();
        let is_unknown = |owner: &Owner| !is_whole && *owner.source == *CONSUL;
        let translation = self.translator.translate_within(&task.known, task.most);
        let mut services = translation.services;
        services.extend(task.provided);
        let assembled = match task.is_config {
            true => self.assembler.assemble_beside(&services, is_unknown),
            false => self.assembler.update_endpoints(&services),
        };
        Done {
            assembled,
            warnings: translation.warnings,
            services: services.len(),
            is_behind: self.assembler.is_behind(&services),
            is_rolling: translation.behind > 0,
            lingering: self.assembler.lingering(),
        }
    }
}

/// The times at which gathered changes are published.
#[derive(Debug, Default)]
struct DueTimes {
    endpoints: Option<Instant>,
    /// The first change and the due time.
    config: Option<(Instant, Instant)>,
}

impl DueTimes {
    fn changed(&mut self, now: Instant, options: &PipelineOptions) {
        self.endpoints.get_or_insert(now + options.endpoint_quiet);
        let (first, _) = self.config.unwrap_or((now, now));
        let due = (now + options.config_quiet).min(first + options.config_max);
        self.config = Some((first, due));
    }

    fn next(&self) -> Option<Instant> {
        let config = self.config.map(|(_, due)| due);
        self.endpoints.into_iter().chain(config).min()
    }
}

/// Drives a pipeline while it is polled.
pub(super) async fn drive(
    sources: Sources,
    options: PipelineOptions,
    shown: Shown,
    stopped: watch::Receiver<bool>,
) {
    let kept = options.persist.clone().map(KeptFile::new);
    let loaded = match kept.clone() {
        Some(file) => tokio::task::spawn_blocking(move || file.load()).await,
        None => Ok(Ok(None)),
    };
    let (services, failure) = match loaded {
        Ok(Ok(services)) => (services.unwrap_or_default(), None),
        Ok(Err(error)) => {
            tracing::warn!(target: TARGET, %error, "the stored resources cannot be read");
            (Vec::new(), Some(error.to_string().into()))
        }
        Err(_) => return,
    };
    // The registry is compared with the services that served last, to notice a loss across a restart.
    let of_registry = services.iter().map(|service| &service.owner);
    let of_registry = of_registry.filter(|owner| *owner.source == *REGISTRY);
    let served = of_registry
        .map(|owner| Arc::clone(&owner.service))
        .collect();
    let mut driver = Driver {
        sources: sources.start(served),
        work: Some(Box::new(Work {
            translator: Translator::new(options.translate.clone()),
            assembler: ResourceBuilder::new(options.assemble.clone()),
        })),
        kept,
        options,
        shown,
        stopped,
        has_assembled: false,
        due_times: DueTimes::default(),
        roll_at: None,
        services: 0,
        let_go_at: None,
        lingering: BTreeSet::new(),
        keep_at: None,
        keeping: None,
        persist_failure: failure,
        is_kept: false,
        fall_back_at: None,
        warnings: Vec::new(),
        assembled: BuiltResources::default(),
    };
    driver.begin_with(services);
    driver.run().await;
}

impl Driver {
    /// Loads the stored resources. They may be old, so they are served only if the sources cannot be read.
    fn begin_with(&mut self, services: Vec<ServiceResources>) {
        let Some(work) = self.work.as_mut().filter(|_| !services.is_empty()) else {
            return;
        };
        let services: Vec<_> = services.into_iter().map(Arc::new).collect();
        self.assembled = work.assembler.assemble(&services);
        self.fall_back_at = Some(Instant::now() + self.options.persist_after);
    }

    /// Serves the stored resources. They count only after a delay, since until then another control plane may have
    /// newer ones.
    fn fall_back(&mut self) {
        let Some(at) = self.fall_back_at else { return };
        if !self.is_kept {
            tracing::warn!(target: TARGET, "the stored resources are served until all sources have been read");
            self.is_kept = true;
            self.publish();
        }
        if at <= Instant::now() {
            self.fall_back_at = None;
            self.shown.ready.send_replace(true);
        }
    }

    async fn run(mut self) {
        self.due_times.changed(Instant::now(), &self.options);
        loop {
            self.show_status();
            let due = self.due_times.next();
            let keep_at = self.keep_at.filter(|_| self.keeping.is_none());
            tokio::select! {
                () = self.sources.changed() => {
                    self.due_times.changed(Instant::now(), &self.options);
                    if self.fall_back_at.is_some() && self.sources.has_failed() {
                        self.fall_back();
                    }
                }
                () = at(self.fall_back_at) => self.fall_back(),
                () = at(due) => self.due().await,
                () = at(self.let_go_at) => self.let_go(),
                () = at(keep_at) => self.keep(),
                _ = self.stopped.changed() => break,
                kept = ended(&mut self.keeping) => self.kept(kept),
            }
        }
        // What is older was written already.
        if self.keeping.is_some() {
            let kept = ended(&mut self.keeping).await;
            self.kept(kept);
        }
        if self.keep_at.is_some() {
            self.keep();
            let kept = ended(&mut self.keeping).await;
            self.kept(kept);
        }
    }

    async fn due(&mut self) {
        let now = Instant::now();
        let is_config_due = self.due_times.config.is_some_and(|(_, due)| due <= now);
        if self.due_times.endpoints.is_some_and(|due| due <= now) {
            self.due_times.endpoints = None;
        }
        if is_config_due {
            self.due_times.config = None;
        }
        // The first is a whole.
        if !is_config_due && !self.has_assembled {
            return;
        }
        let Some((known, provided)) = self.sources.known() else {
            return;
        };
        let may_roll = is_config_due && self.roll_at.is_none_or(|at| at <= now);
        let task = Task {
            known,
            provided,
            most: match may_roll {
                true => ROLL_LEAST.max(self.services / ROLL_SHARE),
                false => 0,
            },
            is_config: is_config_due,
        };
        let done = self.work(task).await;
        if may_roll {
            self.roll_at = done.is_rolling.then(|| now + ROLL_GAP);
        }
        if is_config_due {
            // What has come with the endpoints is in it.
            self.has_assembled = true;
            self.is_kept = false;
            self.fall_back_at = None;
        } else if !done.is_behind && !done.is_rolling {
            self.due_times.config = None;
        }
        if let Some(at) = self.roll_at.filter(|_| self.due_times.config.is_none()) {
            self.due_times.config = Some((at, at));
        }
        // Each gets its whole time: those that stay longer for that do no harm.
        let is_news = !done.lingering.is_subset(&self.lingering);
        self.let_go_at = match self.let_go_at {
            _ if done.lingering.is_empty() => None,
            Some(at) if !is_news => Some(at),
            _ => Some(Instant::now() + LINGER),
        };
        self.lingering = done.lingering;
        self.services = done.services;
        self.warnings = done.warnings;
        self.assembled = done.assembled;
        self.publish();
        self.shown.ready.send_replace(true);
    }

    /// Runs a task on a blocking thread.
    async fn work(&mut self, task: Task) -> Done {
        let mut work = self.work.take().expect("it is put back each time");
        let working = tokio::task::spawn_blocking(move || {
            let done = work.run(task);
            (work, done)
        });
        match working.await {
            Ok((work, done)) => {
                self.work = Some(work);
                done
            }
            Err(error) => match error.try_into_panic() {
                Ok(panic) => std::panic::resume_unwind(panic),
                // The runtime is shutting down, and this task with it.
                Err(_) => std::future::pending().await,
            },
        }
    }

    /// Removes the endpoints that were kept for clients, since no client sends requests to them any more.
    fn let_go(&mut self) {
        self.let_go_at = None;
        self.lingering.clear();
        if let Some(work) = &mut self.work {
            self.assembled = work.assembler.let_go();
            self.publish();
        }
    }

    fn publish(&mut self) {
        let snapshot = &self.assembled.snapshot;
        let is_new = self.shown.snapshot.send_if_modified(|published| {
            let is_same = published
                .as_ref()
                .is_some_and(|published| Arc::ptr_eq(published, snapshot));
            if !is_same {
                *published = Some(Arc::clone(snapshot));
            }
            !is_same
        });
        if is_new && !self.is_kept && self.kept.is_some() {
            self.keep_at
                .get_or_insert_with(|| Instant::now() + KEEP_GAP);
        }
    }

    /// Stores the served resources on disk.
    fn keep(&mut self) {
        self.keep_at = None;
        if let (Some(file), Some(work)) = (self.kept.clone(), &self.work) {
            let services = work.assembler.kept();
            self.keeping = Some(tokio::task::spawn_blocking(move || file.save(&services)));
        }
    }

    fn kept(&mut self, kept: Result<(), KeptError>) {
        self.keeping = None;
        let failure = kept.err().map(|error| Arc::from(error.to_string()));
        if let Some(failure) = &failure {
            tracing::warn!(target: TARGET, failure = &**failure, "the served resources cannot be \
                stored for the next start");
            self.keep_at
                .get_or_insert_with(|| Instant::now() + KEEP_GAP * 4);
        }
        self.persist_failure = failure;
    }

    fn show_status(&self) {
        let mut warnings = self.warnings.clone();
        warnings.extend_from_slice(&self.assembled.warnings);
        self.shown.status.send_replace(Arc::new(PipelineStatus {
            sources: self.sources.status(),
            quarantined: self.assembled.quarantined.clone(),
            warnings,
            is_kept: self.is_kept,
            persist_failure: self.persist_failure.clone(),
        }));
    }
}

/// Waits until `time`, or forever if there is none.
async fn at(time: Option<Instant>) {
    match time {
        Some(time) => sleep_until(time).await,
        None => std::future::pending().await,
    }
}

/// Waits for the end of a task, or forever if there is none.
async fn ended(task: &mut Option<JoinHandle<Result<(), KeptError>>>) -> Result<(), KeptError> {
    match task {
        Some(task) => task.await.unwrap_or(Ok(())),
        None => std::future::pending().await,
    }
}
