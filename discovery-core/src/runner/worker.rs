//! One cycle: poll, evaluate, settle, publish.

use std::sync::Arc;

use proxy_model::config::ProxyConfig;
use proxy_model::{Problem, Problems, pointer_to};
use tokio::time::Instant;

use super::evaluate::{Evaluation, Evaluator};
use super::options::RunnerOptions;
use super::publish::{Publisher, SILENCE};
use super::registry::{Evaluated, KeptService, KeptState, Registry};
use super::validation::{Question, Validation};
use crate::contain::{Blocking, Broken, contained_call, contained_for, off_the_runtime};
use crate::discoverer::Discoverer;
use crate::discovery::{DiscoveredService, Discovery};
use crate::error::DiscoverError;
use crate::persist::Store;
use crate::report::{CycleReport, FinishedCycle};
use crate::summary::Summary;
use crate::timestamp::Timestamp;
use crate::unreachable::UnreachableService;

/// Does the cycles of one runner.
pub(super) struct Worker {
    pub(super) discoverer: Arc<dyn Discoverer>,
    pub(super) evaluator: Arc<Evaluator>,
    pub(super) validation: Validation,
    pub(super) options: RunnerOptions,
    /// The registry. `None` while another thread works on it.
    pub(super) registry: Option<Registry>,
    pub(super) publisher: Publisher,
    pub(super) store: Option<Store>,
    /// Making configuration of services.
    pub(super) evaluation: Blocking,
    /// Reads and writes of stored state.
    pub(super) disk: Blocking,
}

/// The end of a cycle.
pub(super) enum CycleEnd {
    /// The source was polled successfully.
    Answered {
        report: Arc<CycleReport>,
        /// True if missing services wait for their removal to be confirmed.
        removal_pending: bool,
    },
    /// A failure of the source, and the number of consecutive failures.
    Failed(DiscoverError, u32),
    /// The runtime is shutting down.
    ShuttingDown,
}

impl Worker {
    /// Polls the source and applies the result.
    pub(super) async fn cycle(&mut self) -> CycleEnd {
        let begun = Instant::now();
        let cycle = self.publisher.cycle_begins();
        let end = self.cycle_to_its_end(cycle).await;
        let (services, changed, error) = match &end {
            CycleEnd::Answered { report, .. } => (report.services.len(), report.changed, None),
            CycleEnd::Failed(error, _) => (0, false, Some(error.kind())),
            CycleEnd::ShuttingDown => return end,
        };
        let took = begun.elapsed();
        self.publisher.cycles.send_replace(Some(FinishedCycle {
            cycle,
            began: Timestamp::ago(took),
            took,
            services,
            changed,
            error,
        }));
        end
    }

    async fn cycle_to_its_end(&mut self, cycle: u64) -> CycleEnd {
        let discovery = match self.answer().await {
            Ok(discovery) => discovery,
            Err(error) => {
                let failures = self.publisher.failed(&error);
                return CycleEnd::Failed(error, failures);
            }
        };
        match self.apply_result(cycle, discovery).await {
            Some(Ok((report, removal_pending))) => CycleEnd::Answered {
                report,
                removal_pending,
            },
            Some(Err(broken)) => {
                let error = DiscoverError::unfinished(&broken);
                let failures = self.publisher.failed(&error);
                CycleEnd::Failed(error, failures)
            }
            None => CycleEnd::ShuttingDown,
        }
    }

    /// Polls the source, and reports if it has been silent since the start.
    async fn answer(&self) -> Result<Discovery, DiscoverError> {
        let answer = self.ask();
        if !self.publisher.is_silent() {
            return answer.await;
        }
        tokio::pin!(answer);
        match tokio::time::timeout(SILENCE, &mut answer).await {
            Ok(answer) => answer,
            Err(_) => {
                self.publisher.still_silent();
                answer.await
            }
        }
    }

    async fn ask(&self) -> Result<Discovery, DiscoverError> {
        let limit = self.options.discover_timeout;
        let discovery = match contained_for(limit, self.discoverer.discover()).await {
            Ok(answer) => answer?,
            Err(Broken::TimedOut(limit)) => return Err(DiscoverError::timed_out(limit)),
            Err(Broken::Panicked(message)) => return Err(DiscoverError::panicked(&message)),
            Err(broken @ Broken::Stuck) => return Err(DiscoverError::unfinished(&broken)),
        };
        let services = discovery.services.len();
        let most = self.options.max_services;
        if services > most {
            let message = format!("the source lists {services} services, more than {most}");
            return Err(DiscoverError::permanent(message));
        }
        Ok(discovery)
    }

    async fn apply_result(
        &mut self,
        cycle: u64,
        discovery: Discovery,
    ) -> Option<Result<(Arc<CycleReport>, bool), Broken>> {
        let Discovery {
            services,
            mut problems,
            failed_groups,
            outdated,
            memo,
        } = discovery;
        problems.extend(failed_groups.iter().map(|failed| failed.problem.clone()));

        let registry = self.registry.take()?;
        let grace = self.options.unread_grace;
        let (registry, listed, mut problems) = off_the_runtime(move || {
            let services = registry.arrange(services, &mut problems);
            let with_memory = |mut service: DiscoveredService| {
                registry.add_unread(&mut service, grace);
                let remembered = registry.remembered(&service);
                (service, remembered)
            };
            let listed: Vec<_> = services.into_iter().map(with_memory).collect();
            (registry, listed, problems)
        })
        .await?;
        self.registry = Some(registry);

        // This runs foreign parsers and filters, which cannot be stopped.
        let evaluator = Arc::clone(&self.evaluator);
        let limit = self.options.discover_timeout;
        let evaluated = self.evaluation.run(limit, move || {
            let mut fresh = Vec::new();
            let mut answer: Vec<Evaluated> = Vec::with_capacity(listed.len());
            for (service, remembered) in listed {
                let evaluation = remembered.unwrap_or_else(|| {
                    fresh.push(answer.len());
                    evaluate(&evaluator, &service)
                });
                answer.push((service, evaluation));
            }
            (answer, fresh)
        });
        let (mut answer, fresh) = match evaluated.await? {
            Ok(evaluated) => evaluated,
            Err(broken) => return Some(Err(broken)),
        };

        self.validate(&mut answer, &fresh).await;
        let answer = match self.with_fallbacks(answer).await? {
            Ok(answer) => answer,
            Err(broken) => return Some(Err(broken)),
        };

        let mut registry = self.registry.take()?;
        let now = Instant::now();
        let before = Arc::clone(&self.publisher.state.borrow());
        let (registry, mut settled, changes) = off_the_runtime(move || {
            registry.remember(memo);
            let settled = registry.answer(answer, &failed_groups, now);
            let changes = (before.revision != Some(settled.revision)).then(|| {
                let nothing = ProxyConfig::default();
                Summary::of(
                    before.config.as_deref().unwrap_or(&nothing),
                    &settled.config,
                )
            });
            (registry, settled, changes)
        })
        .await?;
        self.registry = Some(registry);
        problems.append(settled.outcome.problems);
        settled.outcome.problems = problems;
        let removal_pending = settled.removal_pending;
        let publisher = &self.publisher;
        let report = publisher.answered(cycle, settled, changes.as_ref(), outdated.as_ref());
        Some(Ok((report, removal_pending)))
    }

    /// Validates the services that are new or changed.
    async fn validate(&mut self, answer: &mut [Evaluated], fresh: &[usize]) {
        let mut asked = Vec::new();
        let mut questions = Vec::new();
        for &index in fresh {
            let (service, evaluation) = &answer[index];
            if let Some(fragment) = evaluation
                .fragment
                .as_ref()
                .filter(|_| evaluation.is_good())
            {
                asked.push(index);
                questions.push(Question {
                    service: Arc::clone(&service.name),
                    fragment: Arc::clone(fragment),
                });
            }
        }
        let verdicts = self.validation.cycle(questions).await;
        for (index, verdict) in asked.into_iter().zip(verdicts) {
            answer[index].1.problems.append(verdict.problems);
        }
    }

    /// Prepares for services that cannot serve as described, see [`Evaluator::add_fallbacks`].
    async fn with_fallbacks(
        &mut self,
        answer: Vec<Evaluated>,
    ) -> Option<Result<Vec<Evaluated>, Broken>> {
        let registry = self.registry.take()?;
        let (registry, answer, in_doubt) = off_the_runtime(move || {
            let in_doubt = registry.in_doubt(&answer);
            (registry, answer, in_doubt)
        })
        .await?;
        self.registry = Some(registry);
        if in_doubt.is_empty() {
            // Services that waited for validation no longer need it.
            self.validation.fallbacks(Vec::new()).await;
            return Some(Ok(answer));
        }
        // This runs foreign parsers and filters, which cannot be stopped.
        let evaluator = Arc::clone(&self.evaluator);
        let limit = self.options.discover_timeout;
        let made = self.evaluation.run(limit, move || {
            let mut answer = answer;
            let changed = evaluator.add_fallbacks(&mut answer, in_doubt);
            (answer, changed)
        });
        let (mut answer, changed) = match made.await? {
            Ok(made) => made,
            Err(broken) => return Some(Err(broken)),
        };
        let (positions, questions): (Vec<_>, Vec<_>) = changed.into_iter().unzip();
        let verdicts = self.validation.fallbacks(questions).await;
        for (position, verdict) in positions.into_iter().zip(verdicts) {
            if !verdict.answered || verdict.problems.has_errors() {
                answer[position].1.fallback = None;
            }
        }
        Some(Ok(answer))
    }

    /// Reports to the source which services requests cannot reach. Returns true if it would refresh them
    /// now.
    pub(super) fn looks_at(&self, services: &[UnreachableService]) -> bool {
        let source = &*self.publisher.source;
        match contained_call(|| self.discoverer.unreachable(services)) {
            Ok(looks) => {
                tracing::debug!(
                    target: "discovery::runner",
                    provider = source,
                    services = services.len(),
                    first = services.first().map(|service| &*service.name),
                    looks,
                    "requests do not get through to services",
                );
                looks
            }
            Err(broken) => {
                tracing::warn!(
                    target: "discovery::runner",
                    provider = source,
                    "telling the source of services that cannot be reached {broken}",
                );
                false
            }
        }
    }

    /// Reports the results of its services to the source.
    pub(super) async fn report(&self, report: &CycleReport) {
        let limit = self.options.report_timeout;
        if let Err(broken) = contained_for(limit, self.discoverer.published(report)).await {
            tracing::warn!(
                target: "discovery::runner",
                provider = &*self.publisher.source,
                "reporting the results of its services to the source {broken}",
            );
        }
    }

    /// Restores the configuration from disk, which serves until the source can be polled.
    pub(super) async fn restore(&mut self) -> Option<()> {
        let Some(store) = self.store.clone() else {
            return Some(());
        };
        let source = Arc::clone(&self.publisher.source);
        let limit = self.options.report_timeout;
        let loaded = self.disk.run(limit, move || store.load(&source)).await?;
        let loaded = loaded
            .map_err(|broken| format!("reading it {broken}"))
            .and_then(|loaded| loaded.map_err(|error| error.to_string()));
        let kept = match loaded {
            Ok(Some(kept)) => kept,
            Ok(None) => return Some(()),
            Err(error) => {
                tracing::warn!(
                    target: "discovery::runner",
                    provider = &*self.publisher.source,
                    error = %error,
                    "the configuration stored on disk cannot be used",
                );
                return Some(());
            }
        };
        if let Some(memo) = &kept.memo {
            self.hand_back(memo);
        }
        let listed = kept.services.len();
        // The rules of filters and validators may have changed since the file was written.
        let (services, mut dropped) = self.still_good(kept.services).await?;
        let confirmed = services.iter().map(|service| service.good.at);
        let oldest = confirmed.max_by_key(Timestamp::age);
        let nothing = services.is_empty();
        let kept = KeptState { services, ..kept };
        if nothing && listed > 0 {
            let message = "no part of the configuration stored on disk can be used any more";
            dropped.push(Problem::error("", "restored_nothing", message));
            self.publisher.restored_nothing(listed, dropped);
            return Some(());
        }
        let mut registry = self.registry.take()?;
        let (registry, mut settled) = off_the_runtime(move || {
            registry.restore(kept);
            let settled = registry.without_answer();
            (registry, settled)
        })
        .await?;
        self.registry = Some(registry);
        settled.outcome.problems.append(dropped);
        self.publisher.restored(settled, oldest);
        Some(())
    }

    /// Returns its memo to the source.
    fn hand_back(&self, memo: &str) {
        if let Err(broken) = contained_call(|| self.discoverer.restored(memo)) {
            tracing::warn!(
                target: "discovery::runner",
                provider = &*self.publisher.source,
                "passing the source its stored text {broken}",
            );
        }
    }

    /// Splits the kept services into those that the rules still allow, which may have become stricter since
    /// the file was written, and the problems of the others.
    async fn still_good(&mut self, kept: Vec<KeptService>) -> Option<(Vec<KeptService>, Problems)> {
        let evaluator = Arc::clone(&self.evaluator);
        let (kept, mut dropped) = off_the_runtime(move || {
            let mut dropped = Problems::new();
            let mut kept = kept;
            kept.retain(|service| {
                let mut problems = Problems::new();
                evaluator.check_compiles(&service.good.fragment, &mut problems);
                let good = !problems.has_errors();
                if !good {
                    dropped.append(problems.under(&pointer_to("/Services", &service.name)));
                }
                good
            });
            (kept, dropped)
        })
        .await?;
        let question = |service: &KeptService| Question {
            service: Arc::clone(&service.name),
            fragment: Arc::clone(&service.good.fragment),
        };
        let verdicts = self
            .validation
            .kept(kept.iter().map(question).collect())
            .await;
        let mut still = Vec::with_capacity(kept.len());
        for (service, verdict) in kept.into_iter().zip(verdicts) {
            // A validator that cannot respond has accepted the service before.
            if verdict.answered && verdict.problems.has_errors() {
                let pointer = pointer_to("/Services", &service.name);
                dropped.append(verdict.problems.under(&pointer));
            } else {
                still.push(service);
            }
        }
        Some((still, dropped))
    }

    /// Writes the last known good configuration to disk, if it has changed or could not be written before.
    pub(super) async fn save(&mut self, changed: bool) -> Option<()> {
        let (Some(store), Some(registry)) = (&mut self.store, &mut self.registry) else {
            return Some(());
        };
        if !store.is_due(changed | registry.take_news(), Instant::now()) {
            return Some(());
        }
        let kept = registry.kept();
        let source = Arc::clone(&self.publisher.source);
        let writer = store.clone();
        let limit = self.options.report_timeout;
        let written = self.disk.run(limit, move || writer.save(&source, &kept));
        let failure = match written.await? {
            Ok(result) => result.err().map(|error| error.to_string()),
            Err(broken) => Some(format!("writing the file {broken}")),
        };
        store.saved(failure.is_none(), Instant::now());
        self.publisher.persisted(failure);
        Some(())
    }
}

fn evaluate(evaluator: &Evaluator, service: &DiscoveredService) -> Evaluation {
    contained_call(|| evaluator.evaluate(service)).unwrap_or_else(|broken| {
        let message = format!("making configuration of the service {broken}");
        Evaluation::rejected(Problem::error("", "evaluation_failed", message))
    })
}
