//! The resolved destinations of each cluster, and the time of the next resolution.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use proxy_model::config::{ClusterConfig, ProxyConfig};
use proxy_model::{ClusterId, CompileOptions, Problem, Problems, Snapshot, pointer_to};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until, timeout_at};

use crate::backoff::Backoff;
use crate::contain::{contained_call, contained_for};
use crate::discovery::Destinations;
use crate::resolver::{DestinationResolver, Resolved};
use crate::text::with_causes;

/// The least time between two resolutions of a cluster, even if its resolver requests less.
const MIN_REFRESH: Duration = Duration::from_secs(1);
/// The waits after a resolver failed.
const RETRY: Backoff = Backoff::new(MIN_REFRESH, Duration::from_secs(60));
/// Maximum age of a result.
const MAX_REFRESH: Duration = Duration::from_secs(24 * 3600);

/// The resolutions of all clusters. Dropping this drops the running ones.
pub(super) struct Resolutions {
    resolver: Arc<dyn DestinationResolver>,
    timeout: Duration,
    concurrency: usize,
    clusters: HashMap<ClusterId, Resolution>,
    waiting: VecDeque<ClusterId>,
    running: JoinSet<ResolverReply>,
    /// Counter of inputs, to distinguish results for an old input from those for the current one.
    questions: u64,
}

/// One cluster's resolution.
struct Resolution {
    input: Arc<Destinations>,
    question: u64,
    /// The last result. An error leaves it unchanged.
    output: Option<Resolved>,
    error: Option<Problem>,
    failures: u32,
    /// The time of the next resolution. `None` while one is running, or if the next one waits for a change
    /// of the input.
    due: Option<Instant>,
}

struct ResolverReply {
    cluster: ClusterId,
    question: u64,
    result: Result<Resolved, String>,
}

impl Resolutions {
    pub(super) fn new(
        resolver: Arc<dyn DestinationResolver>,
        timeout: Duration,
        concurrency: usize,
    ) -> Self {
        Self {
            resolver,
            timeout,
            concurrency: concurrency.max(1),
            clusters: HashMap::new(),
            waiting: VecDeque::new(),
            running: JoinSet::new(),
            questions: 0,
        }
    }

    /// Resolves the destinations of a configuration. Waits for clusters that were never resolved, but at
    /// most the time limit of one look-up. Others keep their known destinations and are resolved in the
    /// background.
    pub(super) async fn resolve(&mut self, config: &mut ProxyConfig) -> Problems {
        self.ask_about(config);
        let limit = Instant::now() + self.timeout;
        while self.is_any_unanswered() {
            match timeout_at(limit, self.next_answer()).await {
                Ok(Some(_)) => {}
                Ok(None) | Err(_) => break,
            }
        }
        self.take_ready();
        self.apply(config)
    }

    /// Applies the results that arrive until then, while any are pending, so that they are published
    /// together.
    ///
    /// Can be dropped at any time: results that have arrived are kept.
    pub(super) async fn gather(&mut self, until: Instant) {
        loop {
            self.start_due();
            match timeout_at(until, self.next_answer()).await {
                Ok(Some(_)) => {}
                Ok(None) | Err(_) => return,
            }
        }
    }

    /// Waits until a resolution has another result than before.
    ///
    /// Can be dropped at any time: results that have arrived are kept.
    pub(super) async fn changed(&mut self) {
        loop {
            self.start_due();
            let due = self.clusters.values().filter_map(|r| r.due).min();
            tokio::select! {
                biased;
                Some(changed) = self.next_answer() => {
                    if changed {
                        return;
                    }
                }
                () = sleep_until(due.unwrap_or_else(Instant::now)), if due.is_some() => {}
                // There is nothing to wait for until clusters with names appear.
                else => std::future::pending().await,
            }
        }
    }

    /// Records the clusters of a configuration, and queues those whose destinations are new.
    fn ask_about(&mut self, config: &ProxyConfig) {
        self.clusters.retain(|id, _| {
            let there = config.clusters.contains_key(id);
            if !there && let Err(broken) = contained_call(|| self.resolver.forget(id)) {
                tracing::warn!(target: "discovery::merge", cluster = %id, "forgetting a cluster, the resolver {broken}");
            }
            there
        });
        for (id, cluster) in &config.clusters {
            let known = self.clusters.get(id);
            if known.is_some_and(|known| *known.input == cluster.destinations) {
                continue;
            }
            self.questions += 1;
            let old = self.clusters.remove(id);
            let resolution = Resolution {
                input: Arc::new(cluster.destinations.clone()),
                question: self.questions,
                output: old.and_then(|old| old.output),
                error: None,
                failures: 0,
                due: None,
            };
            self.clusters.insert(id.clone(), resolution);
            self.waiting.push_back(id.clone());
        }
        self.start_waiting();
    }

    fn start_due(&mut self) {
        let now = Instant::now();
        for (id, resolution) in &mut self.clusters {
            if resolution.due.is_some_and(|due| due <= now) {
                resolution.due = None;
                self.waiting.push_back(id.clone());
            }
        }
        self.start_waiting();
    }

    fn start_waiting(&mut self) {
        while self.running.len() < self.concurrency {
            let Some(cluster) = self.waiting.pop_front() else {
                return;
            };
            let Some(resolution) = self.clusters.get(&cluster) else {
                continue;
            };
            let resolver = Arc::clone(&self.resolver);
            let input = Arc::clone(&resolution.input);
            let (question, limit) = (resolution.question, self.timeout);
            self.running.spawn(async move {
                let result = match contained_for(limit, resolver.resolve(&cluster, &input)).await {
                    Ok(Ok(resolved)) => usable(&cluster, resolved),
                    Ok(Err(error)) => Err(with_causes(&error)),
                    Err(broken) => Err(format!("the resolver {broken}")),
                };
                ResolverReply {
                    cluster,
                    question,
                    result,
                }
            });
        }
    }

    fn is_any_unanswered(&self) -> bool {
        let unanswered = |r: &Resolution| r.output.is_none() && r.error.is_none();
        self.clusters.values().any(unanswered) && !self.running.is_empty()
    }

    /// Applies one result. Returns true if it changes anything, or `None` if nothing is pending.
    async fn next_answer(&mut self) -> Option<bool> {
        loop {
            let answer = self.running.join_next().await?;
            self.start_waiting();
            // A task of ours does not panic, and is aborted only with all others.
            let Ok(answer) = answer else { continue };
            if let Some(changed) = self.apply_result(answer) {
                return Some(changed);
            }
        }
    }

    /// Applies the results that have already arrived.
    fn take_ready(&mut self) {
        while let Some(ended) = self.running.try_join_next() {
            if let Ok(answer) = ended {
                self.apply_result(answer);
            }
        }
        self.start_waiting();
    }

    /// Applies a result. Returns true if it changes anything, or `None` if it is for an old input.
    fn apply_result(&mut self, answer: ResolverReply) -> Option<bool> {
        let resolution = self.clusters.get_mut(&answer.cluster)?;
        (resolution.question == answer.question).then(|| resolution.apply_result(answer.result))
    }

    /// Replaces host names in a configuration by their known addresses.
    fn apply(&self, config: &mut ProxyConfig) -> Problems {
        let mut problems = Problems::new();
        for (id, cluster) in &mut config.clusters {
            let Some(resolution) = self.clusters.get(id) else {
                continue;
            };
            let pointer = pointer_to("/Clusters", id.as_str());
            problems.extend(Problems::from_iter(resolution.error.clone()).under(&pointer));
            match &resolution.output {
                Some(output) => {
                    cluster.destinations.clone_from(&output.destinations);
                    problems.append(output.problems.clone().under(&pointer));
                }
                None => {
                    cluster.destinations.clear();
                    if resolution.error.is_none() {
                        let message = "the destinations have not been resolved yet";
                        problems.push(Problem::warning(pointer, "unresolved_cluster", message));
                    }
                }
            }
        }
        problems
    }
}

impl Resolution {
    fn apply_result(&mut self, result: Result<Resolved, String>) -> bool {
        let now = Instant::now();
        match result {
            Ok(resolved) => {
                let refresh = resolved.refresh_after;
                self.due = refresh.map(|wait| now + wait.clamp(MIN_REFRESH, MAX_REFRESH));
                self.failures = 0;
                let changed = self.error.take().is_some()
                    || self.output.as_ref().is_none_or(|old| {
                        // Order is part of a configuration, and is not part of a map's equality.
                        !old.destinations.iter().eq(&resolved.destinations)
                            || old.problems != resolved.problems
                    });
                self.output = Some(resolved);
                changed
            }
            Err(message) => {
                self.failures = self.failures.saturating_add(1);
                self.due = Some(now + RETRY.limit(self.failures));
                let message = match self.output {
                    Some(_) => format!("the last destinations continue to serve: {message}"),
                    None => format!("the destinations cannot be resolved: {message}"),
                };
                let problem = match self.output {
                    Some(_) => Problem::warning("", "unresolved_cluster", message),
                    None => Problem::error("", "unresolved_cluster", message),
                };
                let changed = self.error.as_ref() != Some(&problem);
                self.error = Some(problem);
                changed
            }
        }
    }
}

/// Returns the result, unless it has an unusable destination, which would cost the cluster all of them.
fn usable(cluster: &ClusterId, resolved: Resolved) -> Result<Resolved, String> {
    let form = ClusterConfig {
        destinations: resolved.destinations.clone(),
        ..ClusterConfig::default()
    };
    let mut config = ProxyConfig::default();
    config.clusters.insert(cluster.clone(), form);
    match Snapshot::compile(config, &CompileOptions::default()) {
        Ok(_) => Ok(resolved),
        Err(problems) => {
            let first = problems.errors().next();
            let reason = first.map(ToString::to_string).unwrap_or_default();
            Err(format!("the resolver's answer cannot be used: {reason}"))
        }
    }
}
