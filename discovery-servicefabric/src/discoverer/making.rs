//! The result of a discoverer, built service by service.

use std::collections::HashSet;
use std::sync::Arc;

use discovery_core::{DiscoveredService, Discovery, LabelsParser, Parsed};
use proxy_model::config::ProxyConfig;
use proxy_model::{ClusterId, Problem, Problems, Severity, pointer_to};

use super::converting::{ParsedServices, age};
use super::decisions::{Deciding, Verdict, reasons_of};
use crate::extension::ServiceLabels;
use crate::health::{Subject, Subjects};
use crate::labels::{NO_USABLE_ENDPOINT, ParsedService, ServiceParser, partition_prefix};
use crate::service::ServiceDescription;
use crate::topology::{KnownService, Memory, service_id};

/// A result that is being built.
#[derive(Default)]
pub(super) struct Making {
    pub(super) discovery: Discovery,
    pub(super) parsed: ParsedServices,
    pub(super) deciding: Deciding,
    pub(super) subjects: Subjects,
    /// Names of the services that opted in to be served, or may have.
    pub(super) names: HashSet<ClusterId>,
    /// Makes configuration of services.
    pub(super) parser: Option<Arc<ServiceParser>>,
}

fn has_unusable(problems: &Problems) -> bool {
    let mut problems = problems.iter();
    problems.any(|problem| problem.code == NO_USABLE_ENDPOINT)
}

impl Making {
    /// The cluster of a service that has the name of another one.
    pub(super) fn conflicting_cluster(
        &self,
        name: &Arc<str>,
        config: Option<&ProxyConfig>,
    ) -> Option<ClusterId> {
        let own = ClusterId::new(Arc::clone(name));
        let mut clusters = config?.clusters.keys();
        let conflicting_cluster = clusters.find(|id| **id != own && self.names.contains(*id));
        conflicting_cluster.cloned()
    }

    /// Adds applications and services whose ids the gateway would confuse with others.
    pub(super) fn unnameable(&mut self, memory: &Memory) {
        for (name, error) in &memory.unnameable {
            let message = format!("the application `{name}` is not read: {error}");
            self.deciding
                .add(name, Verdict::Rejected, vec![message.clone()]);
            let pointer = pointer_to("/Applications", name);
            let discovery = std::mem::take(&mut self.discovery);
            self.discovery =
                discovery.with_problem(Problem::warning(pointer, "name_not_usable", message));
        }
        let mut seen = HashSet::new();
        for (application, list) in &memory.lists {
            for (name, error) in &list.unnameable {
                if !seen.insert(name) {
                    continue;
                }
                let message = format!("the service is not read: {error}");
                self.deciding
                    .add(name, Verdict::Rejected, vec![message.clone()]);
                // It must not keep a last known good form, which would be that of another service.
                let service = DiscoveredService::not_enabled(Arc::clone(name))
                    .in_group(Arc::clone(application))
                    .with_problem(Problem::warning("", "name_not_usable", message));
                self.discovery.services.push(service);
            }
        }
    }

    pub(super) fn service(
        &mut self,
        known: &KnownService,
        labels: &ServiceLabels,
        parsed: &Arc<ParsedService>,
    ) {
        let mut problems = labels.problems.clone();
        problems.append(parsed.problems.clone());
        problems.extend(known.unread());
        let Some(config) = &parsed.config else {
            if problems.has_errors() {
                return self.rejected(known, problems);
            }
            let mut reasons = vec!["its labels do not opt in".to_owned()];
            reasons.extend(reasons_of(&problems));
            return self.not_enabled(known, reasons, problems);
        };
        let verdict = match problems.has_errors() {
            true => Verdict::Rejected,
            false => Verdict::Served,
        };
        let mut reasons = reasons_of(&problems);
        if verdict == Verdict::Served {
            let destinations: usize = config
                .clusters
                .values()
                .map(|cluster| cluster.destinations.len())
                .sum();
            reasons.insert(
                0,
                format!(
                    "{} clusters with {destinations} destinations, {} routes",
                    config.clusters.len(),
                    config.routes.len()
                ),
            );
        }
        reasons.extend(
            known
                .stale()
                .map(|stale| format!("its state is {} old: {}", age(stale.at), stale.error)),
        );
        self.deciding.add(&known.name, verdict, reasons);
        self.subject(known, Some(parsed));
        let mut service =
            DiscoveredService::configured(Arc::clone(&known.name), Arc::clone(config));
        // Requests get 503, so a warning among others is not enough.
        let unusable = problems.iter().filter(|p| p.code == NO_USABLE_ENDPOINT);
        service = service.with_unusable(unusable.cloned().collect());
        service.problems = problems;
        self.push(known, self.with_rebuild(known, service));
    }

    /// Adds a service that did not opt in to be served. Its problems are warnings: an error would
    /// quarantine a service that needs nothing.
    pub(super) fn not_enabled(
        &mut self,
        known: &KnownService,
        reasons: Vec<String>,
        problems: Problems,
    ) {
        self.deciding.add(&known.name, Verdict::NotEnabled, reasons);
        let mut service = DiscoveredService::not_enabled(Arc::clone(&known.name));
        let warnings = problems.into_iter().map(|mut problem| {
            problem.severity = Severity::Warning;
            problem
        });
        service.problems = warnings.collect();
        self.push(known, service);
    }

    /// Adds a service without configuration, only with its problems.
    pub(super) fn rejected(&mut self, known: &KnownService, problems: Problems) {
        self.deciding
            .add(&known.name, Verdict::Rejected, reasons_of(&problems));
        self.subjects.insert(
            Arc::clone(&known.name),
            Subject {
                service_id: service_id(&known.info),
                ..Subject::default()
            },
        );
        let unknown = Problem::error("", "labels_unknown", "its labels cannot be read");
        let mut service = DiscoveredService::failed(Arc::clone(&known.name), unknown);
        if problems.has_errors() {
            service.problems = problems;
        }
        service.problems.extend(known.unread());
        self.push(known, self.with_rebuild(known, service));
    }

    /// Adds to the service the means to make its configuration from earlier valid labels. Replicas move
    /// while a label waits for its correction.
    fn with_rebuild(&self, known: &KnownService, service: DiscoveredService) -> DiscoveredService {
        let (Some(read), Some(parser)) = (&known.read, &self.parser) else {
            return service;
        };
        // What served of partitions that cannot be read serves on for a while.
        let unread = read.unread.keys().map(|id| partition_prefix(id));
        let service = unread.fold(service, DiscoveredService::with_unread);
        let parser = Arc::clone(parser);
        let description = Arc::clone(&read.description);
        service.with_rebuild(Arc::clone(&read.description.labels), move |labels| {
            let description = ServiceDescription {
                labels: Arc::new(labels.clone()),
                ..ServiceDescription::clone(&description)
            };
            let parsed = parser.parse(&description.name, &description);
            let config = parsed.config.map(Arc::unwrap_or_clone);
            let made = config.map_or_else(Parsed::not_enabled, Parsed::new);
            let has_unusable = has_unusable(&parsed.problems);
            made.with_problems(parsed.problems)
                .with_unusable(has_unusable)
        })
    }

    pub(super) fn push(&mut self, known: &KnownService, service: DiscoveredService) {
        let group = Arc::clone(&known.application.name);
        self.discovery.services.push(service.in_group(group));
    }

    /// Adds the data for health reports about the service.
    pub(super) fn subject(&mut self, known: &KnownService, parsed: Option<&Arc<ParsedService>>) {
        let subject = Subject {
            service_id: service_id(&known.info),
            is_unread: parsed.is_none(),
            stale: known.stale().cloned(),
            parsed: parsed.cloned(),
        };
        self.subjects.insert(Arc::clone(&known.name), subject);
    }
}
