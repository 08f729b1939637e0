//! The conversion of a cluster's data to a discovery result.

use std::any::Any;
use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use discovery_core::{
    DiscoverError, DiscoverErrorKind, DiscoveredService, Discovery, LabelsParser, Timestamp,
};
use proxy_model::{ClusterId, Problem, Severity};
use tokio::sync::Semaphore;
use tokio::time::Instant;

use super::decisions::{Decisions, Verdict, reasons_of};
use super::making::Making;
use crate::cache::StaleAnswer;
use crate::extension::{OptIn, ServiceLabels};
use crate::health::Subjects;
use crate::labels::{ParsedService, ServiceParser};
use crate::service::ServiceDescription;
use crate::topology::{DENIED, KnownService, Memory, failure};

/// The parse results of services, by name, so that an unchanged service is not parsed again.
pub(super) type ParsedServices = HashMap<Arc<str>, Parsed>;

#[derive(Clone, Debug)]
pub(super) struct Parsed {
    description: Arc<ServiceDescription>,
    parsed: Arc<ParsedService>,
    /// True if the service was rejected because its cluster has the name of another service.
    is_conflicting_owner: bool,
}

/// The input of a conversion.
pub(super) struct Conversion {
    pub(super) parser: Arc<ServiceParser>,
    pub(super) memory: Arc<Memory>,
    pub(super) before: Arc<ParsedServices>,
    /// True if replicas are reported to the cluster one by one.
    pub(super) reports_replicas: bool,
}

/// The result of a conversion.
pub(super) struct Converted {
    pub(super) discovery: Discovery,
    pub(super) parsed: ParsedServices,
    pub(super) decisions: Decisions,
    pub(super) subjects: Subjects,
}

impl Conversion {
    /// Converts on a blocking thread. Only one conversion runs at a time: while a parser hangs, the cycle
    /// fails.
    ///
    /// # Cancel safety
    ///
    /// May be dropped at any time. The thread then ends after its current service.
    pub(super) async fn run(self, turn: &Arc<Semaphore>) -> Result<Converted, DiscoverError> {
        let Ok(turn) = Arc::clone(turn).try_acquire_owned() else {
            let message = "labels that were read in an earlier cycle are still being parsed";
            return Err(DiscoverError::transient(message));
        };
        let cancelled = Cancelled::default();
        let flag = Arc::clone(&cancelled.0);
        let work = tokio::task::spawn_blocking(move || {
            let _turn = turn;
            self.convert(&flag)
        });
        let ended = "making configuration of the services did not end";
        match work.await {
            Ok(Some(converted)) => Ok(converted),
            Ok(None) => Err(DiscoverError::transient(ended)),
            Err(error) => match error.try_into_panic() {
                Ok(panic) => std::panic::resume_unwind(panic),
                Err(_) => Err(DiscoverError::transient(ended)),
            },
        }
    }

    /// Converts all services. Returns `None` if it was cancelled.
    fn convert(&self, cancelled: &AtomicBool) -> Option<Converted> {
        let memory = &self.memory;
        let served = memory.services.values().filter(|known| known.was_served());
        let mut making = Making {
            names: served
                .map(|known| ClusterId::new(Arc::clone(&known.name)))
                .collect(),
            parser: Some(Arc::clone(&self.parser)),
            ..Making::default()
        };
        // Their order decides which of two that claim the same cluster has it.
        let mut services: Vec<_> = memory.services.values().collect();
        services.sort_by(|a, b| {
            let key = |known: &KnownService| Arc::clone(&known.application.name);
            key(a).cmp(&key(b)).then_with(|| a.name.cmp(&b.name))
        });
        for known in services {
            if cancelled.load(Ordering::Relaxed) {
                return None;
            }
            let list = memory.lists.get(&known.application.name);
            match list.and_then(|list| list.failed.as_ref()) {
                None => self.one(known, &mut making),
                // It existed and may still exist. It is listed, to keep its place among the others.
                Some(failed) if known.was_served() => {
                    self.unread(known, failed.problem.clone(), &mut making);
                }
                Some(_) => {}
            }
        }
        for (name, list) in &memory.lists {
            if let Some(failed) = &list.failed {
                let reasons = vec![failed.problem.message.clone()];
                making.deciding.add(name, Verdict::NotRead, reasons);
                making.discovery = making
                    .discovery
                    .group_failed(Arc::clone(name), failed.problem.clone());
            }
        }
        making.unnameable(memory);
        for name in memory.applications.keys() {
            if !memory.lists.contains_key(name) {
                let reason = "none of its service types has labels, or it has just been deleted";
                making
                    .deciding
                    .add(name, Verdict::NoLabels, vec![reason.to_owned()]);
            }
        }
        let stale = stale_problem(memory);
        let stale = stale.map(|(problem, oldest)| {
            making.discovery.problems.push(problem);
            (oldest.at, failure(oldest.kind), oldest.error)
        });
        if let Some((at, kind, error)) = older(stale, unread(memory)) {
            let since = Timestamp::ago(at.elapsed());
            making.discovery = making.discovery.outdated(since, kind, error);
        }
        Some(Converted {
            discovery: making.discovery,
            parsed: making.parsed,
            decisions: making.deciding.finish(),
            subjects: making.subjects,
        })
    }

    fn one(&self, known: &KnownService, making: &mut Making) {
        let name = &known.name;
        if let Some(failed) = &known.failed {
            return self.unread(known, failed.problem.clone(), making);
        }
        let Some(labels) = &known.labels else { return };
        match (labels.enabled, &known.read) {
            (OptIn::No, _) => {
                // The parser may know the label that was probably intended.
                let parsed =
                    self.parsed(name, &Arc::new(known.described(labels, Vec::new())), making);
                let mut reasons = vec![not_enabled(labels)];
                reasons.extend(reasons_of(&labels.problems));
                reasons.extend(reasons_of(&parsed.problems));
                let mut problems = labels.problems.clone();
                problems.append(parsed.problems.clone());
                making.not_enabled(known, reasons, problems);
            }
            (OptIn::Yes, Some(read)) => {
                let parsed = self.parsed(name, &read.description, making);
                match making.conflicting_cluster(name, parsed.config.as_deref()) {
                    Some(cluster) => self.conflicting_owner(known, &cluster, making),
                    None => making.service(known, labels, &parsed),
                }
            }
            (OptIn::Unknown, _) | (OptIn::Yes, None) => {
                making.rejected(known, labels.problems.clone());
            }
        }
    }

    /// Rejects a service whose cluster has the name of another service's cluster, regardless of which came first.
    /// Otherwise proxies with different histories could send the requests for one name to different services.
    fn conflicting_owner(&self, known: &KnownService, cluster: &ClusterId, making: &mut Making) {
        let name = &known.name;
        let was_rejected = self
            .before
            .get(name)
            .is_some_and(|before| before.is_conflicting_owner);
        if let Some(parsed) = making.parsed.get_mut(name) {
            parsed.is_conflicting_owner = true;
        }
        let message = format!(
            "the cluster `{cluster}` has the name of another service, to which it belongs; choose another `BackendId`"
        );
        let mut problem = Problem::error(
            "/YARP.Backend.BackendId",
            "cluster_of_another_service",
            message,
        );
        if was_rejected {
            return making.rejected(known, problem.into());
        }
        // An error would keep serving its last known good form, which may have the cluster. Once that is
        // dropped, it is an error.
        problem.severity = Severity::Warning;
        let reasons = vec![problem.message.clone()];
        making.deciding.add(name, Verdict::Rejected, reasons);
        let service = DiscoveredService::not_enabled(Arc::clone(name)).with_problem(problem);
        making.push(known, service);
    }

    /// Handles a service that could not be read. Its earlier state is remembered.
    fn unread(&self, known: &KnownService, problem: Problem, making: &mut Making) {
        let name = &known.name;
        if let Some(before) = self.before.get(name)
            && let Some(cluster) = making.conflicting_cluster(name, before.parsed.config.as_deref())
        {
            making.parsed.insert(Arc::clone(name), before.clone());
            return self.conflicting_owner(known, &cluster, making);
        }
        let reasons = vec![problem.message.clone()];
        making.deciding.add(name, Verdict::NotRead, reasons);
        if let Some(parsed) = self.before.get(name) {
            making.parsed.insert(Arc::clone(name), parsed.clone());
        }
        making.subject(known, None);
        making.push(known, DiscoveredService::failed(Arc::clone(name), problem));
    }

    /// Returns the parse result of a service, from the last cycle if the service is unchanged.
    fn parsed(
        &self,
        name: &Arc<str>,
        description: &Arc<ServiceDescription>,
        making: &mut Making,
    ) -> Arc<ParsedService> {
        let before = self.before.get(name).filter(|before| {
            Arc::ptr_eq(&before.description, description) || before.description == *description
        });
        let parsed = match before {
            Some(before) => Arc::clone(&before.parsed),
            None => Arc::new(self.parse(description)),
        };
        making.parsed.insert(
            Arc::clone(name),
            Parsed {
                description: Arc::clone(description),
                parsed: Arc::clone(&parsed),
                is_conflicting_owner: false,
            },
        );
        parsed
    }

    /// Runs the parser, which may be foreign code. A panic affects only this service.
    fn parse(&self, description: &ServiceDescription) -> ParsedService {
        let parsed = catch_unwind(AssertUnwindSafe(|| {
            self.parser.parse(&description.name, description)
        }));
        let mut parsed = parsed.unwrap_or_else(|panic| {
            let message = format!("the labels parser panicked: {}", message_of(&*panic));
            ParsedService {
                problems: Problem::error("", "parser_failed", message).into(),
                ..ParsedService::default()
            }
        });
        // The report about a service names replicas only if none of them has a destination.
        let has_any = parsed.replicas.iter().any(|replica| replica.result.is_ok());
        if has_any && !self.reports_replicas {
            parsed.replicas = Vec::new();
        }
        parsed
    }
}

/// Returns one warning about everything that old responses replace, and the oldest of them.
fn stale_problem(memory: &Memory) -> Option<(Problem, StaleAnswer)> {
    let types = memory
        .types
        .values()
        .filter_map(|known| known.stale.as_ref());
    let lists = memory.lists.values().filter_map(|list| list.stale.as_ref());
    let services = memory.services.values().filter_map(|known| known.stale());
    let all = memory
        .stale
        .iter()
        .chain(types)
        .chain(lists)
        .chain(services);
    let (mut parts, mut oldest) = (0_usize, None);
    for stale in all {
        parts += 1;
        oldest = StaleAnswer::older(oldest, Some(stale.clone()));
    }
    let oldest = oldest?;
    let (age, error) = (age(oldest.at), &oldest.error);
    let message = match parts {
        1 => format!("a response that is {age} old replaces that of a failed call: {error}"),
        _ => format!(
            "{parts} older responses replace those of failed calls, the oldest {age} old: {error}"
        ),
    };
    Some((Problem::warning("", "stale_answer", message), oldest))
}

/// An unreadable part of the cluster: the time since which it is unreadable, the kind of failure, and its message.
type Unread = (Instant, DiscoverErrorKind, String);

/// Returns the partition that is unreadable for the longest time.
fn unread(memory: &Memory) -> Option<Unread> {
    let services = memory.services.values();
    let parts = services.flat_map(|known| known.unread_parts());
    let oldest = parts.min_by_key(|failed| failed.since)?;
    let kind = match oldest.problem.code == DENIED {
        true => DiscoverErrorKind::Rejected,
        false => DiscoverErrorKind::Transient,
    };
    Some((oldest.since, kind, oldest.problem.message.clone()))
}

fn older(first: Option<Unread>, second: Option<Unread>) -> Option<Unread> {
    let both = first.into_iter().chain(second);
    both.min_by_key(|(at, ..)| *at)
}

/// Returns the age as a text so rough that it does not change from cycle to cycle.
pub(super) fn age(at: Instant) -> String {
    let minutes = at.elapsed().as_secs() / 60;
    match minutes {
        0 => "less than a minute".to_owned(),
        1 => "a minute".to_owned(),
        minutes => format!("{minutes} minutes"),
    }
}

fn not_enabled(labels: &ServiceLabels) -> String {
    match labels.labels.get("YARP.Enable") {
        Some(value) => {
            let value: String = value.chars().take(60).collect();
            format!("its label `YARP.Enable` is `{}`", value.escape_debug())
        }
        None => "it has no label `YARP.Enable`".to_owned(),
    }
}

fn message_of(panic: &(dyn Any + Send)) -> String {
    let text = panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("a value that is no text");
    text.chars().take(500).collect()
}

/// A flag that cancels the conversion on its thread when dropped.
#[derive(Default)]
struct Cancelled(Arc<AtomicBool>);

impl Drop for Cancelled {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
