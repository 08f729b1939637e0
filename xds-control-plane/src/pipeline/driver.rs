use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep_until};

use super::kept::{KeptError, KeptFile};
use super::{PipelineOptions, PipelineStatus};
use crate::assemble::{Assembled, Assembler, ServiceResources, Warning};
use crate::snapshot::Snapshot;
use crate::sources::Followed;
use crate::translate::Translator;

/// What log lines are filtered by.
const TARGET: &str = "xds::pipeline";

/// How long what is served has to last before it is kept, and how long the disk is left alone after that.
const KEEP_GAP: Duration = Duration::from_secs(30);

pub(super) struct Driver {
    sources: Followed,
    options: PipelineOptions,
    translator: Translator,
    assembler: Assembler,
    published: watch::Sender<Option<Arc<Snapshot>>>,
    status: watch::Sender<Arc<PipelineStatus>>,
    /// Whether everything was assembled of what the sources say.
    has_assembled: bool,
    lanes: Lanes,
    kept: Option<KeptFile>,
    keep_at: Option<Instant>,
    keeping: Option<JoinHandle<Result<(), KeptError>>>,
    persist_failure: Option<Arc<str>>,
    is_kept: bool,
    /// Those of the translation.
    warnings: Vec<Warning>,
    assembled: Assembled,
}

/// When which lane is due.
#[derive(Debug, Default)]
struct Lanes {
    endpoints: Option<Instant>,
    /// With the first change that it is for.
    config: Option<(Instant, Instant)>,
}

impl Lanes {
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

impl Driver {
    pub(super) fn new(
        sources: Followed,
        options: PipelineOptions,
        published: watch::Sender<Option<Arc<Snapshot>>>,
        status: watch::Sender<Arc<PipelineStatus>>,
    ) -> Self {
        Self {
            sources,
            translator: Translator::new(options.translate.clone()),
            assembler: Assembler::new(options.assemble.clone()),
            kept: options.persist.clone().map(KeptFile::new),
            options,
            published,
            status,
            has_assembled: false,
            lanes: Lanes::default(),
            keep_at: None,
            keeping: None,
            persist_failure: None,
            is_kept: false,
            warnings: Vec::new(),
            assembled: Assembled::default(),
        }
    }

    pub(super) async fn run(mut self) {
        self.begin_with_kept().await;
        self.lanes.changed(Instant::now(), &self.options);
        loop {
            self.show_status();
            let due = self.lanes.next();
            let keep_at = self.keep_at.filter(|_| self.keeping.is_none());
            tokio::select! {
                () = self.sources.changed() => self.lanes.changed(Instant::now(), &self.options),
                () = at(due) => self.due(),
                () = at(keep_at) => self.keep(),
                kept = ended(&mut self.keeping) => self.kept(kept),
            }
        }
    }

    /// Serves what was kept until all sources have been read.
    async fn begin_with_kept(&mut self) {
        let Some(file) = self.kept.clone() else {
            return;
        };
        let loaded = tokio::task::spawn_blocking(move || file.load()).await;
        match loaded {
            Ok(Ok(Some(services))) => {
                let services: Vec<_> = services.into_iter().map(Arc::new).collect();
                tracing::info!(target: TARGET, services = services.len(), "what was served last is served until all sources have been read");
                self.assembled = self.assembler.assemble(&services);
                self.is_kept = true;
                self.publish();
            }
            Ok(Ok(None)) | Err(_) => {}
            Ok(Err(error)) => {
                tracing::warn!(target: TARGET, %error, "what was served last cannot be read");
                self.persist_failure = Some(error.to_string().into());
            }
        }
    }

    fn due(&mut self) {
        let now = Instant::now();
        let is_config_due = self.lanes.config.is_some_and(|(_, due)| due <= now);
        if self.lanes.endpoints.is_some_and(|due| due <= now) {
            self.lanes.endpoints = None;
        }
        if is_config_due {
            self.lanes.config = None;
        }
        let Some(services) = self.translate() else {
            return;
        };
        match (is_config_due, self.has_assembled) {
            // What has come with the endpoints is in it.
            (true, _) => {
                self.assembled = self.assembler.assemble(&services);
                self.has_assembled = true;
                self.is_kept = false;
            }
            (false, true) => {
                self.assembled = self.assembler.update_endpoints(&services);
                if !self.assembler.is_behind(&services) {
                    self.lanes.config = None;
                }
            }
            // The first is a whole.
            (false, false) => return,
        }
        self.publish();
    }

    /// What all sources want to be served; `None`: one has not been read yet.
    fn translate(&mut self) -> Option<Vec<Arc<ServiceResources>>> {
        let (known, provided) = self.sources.known()?;
        let mut translation = self.translator.translate(&known);
        translation.services.extend(provided);
        self.warnings = translation.warnings;
        Some(translation.services)
    }

    fn publish(&mut self) {
        let snapshot = &self.assembled.snapshot;
        let is_new = self.published.send_if_modified(|published| {
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

    /// Writes what is served to disk.
    fn keep(&mut self) {
        self.keep_at = None;
        if let Some(file) = self.kept.clone() {
            let services = self.assembler.kept();
            self.keeping = Some(tokio::task::spawn_blocking(move || file.save(&services)));
        }
    }

    fn kept(&mut self, kept: Result<(), KeptError>) {
        self.keeping = None;
        let failure = kept.err().map(|error| Arc::from(error.to_string()));
        if let Some(failure) = &failure {
            tracing::warn!(target: TARGET, failure = &**failure, "what is served cannot be kept for the next time");
            self.keep_at
                .get_or_insert_with(|| Instant::now() + KEEP_GAP * 4);
        }
        self.persist_failure = failure;
    }

    fn show_status(&self) {
        let mut warnings = self.warnings.clone();
        warnings.extend_from_slice(&self.assembled.warnings);
        self.status.send_replace(Arc::new(PipelineStatus {
            sources: self.sources.status(),
            quarantined: self.assembled.quarantined.clone(),
            warnings,
            is_kept: self.is_kept,
            persist_failure: self.persist_failure.clone(),
        }));
    }
}

/// At a time; never, if there is none.
async fn at(time: Option<Instant>) {
    match time {
        Some(time) => sleep_until(time).await,
        None => std::future::pending().await,
    }
}

/// The end of a task; never, if there is none.
async fn ended(task: &mut Option<JoinHandle<Result<(), KeptError>>>) -> Result<(), KeptError> {
    match task {
        Some(task) => task.await.unwrap_or(Ok(())),
        None => std::future::pending().await,
    }
}
