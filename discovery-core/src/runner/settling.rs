//! The configuration of a cycle, built service by service.

use std::collections::HashMap;
use std::sync::Arc;

use proxy_model::config::{ProxyConfig, RouteConfig};
use proxy_model::{ClusterId, Problem, Problems, RouteId, pointer_to};

use super::evaluate::Evaluation;
use super::good::Good;
use super::registry::Known;
use crate::discovery::DiscoveredService;
use crate::report::{ServiceOutcome, ServiceReport};
use crate::status::QuarantinedService;
use crate::timestamp::Timestamp;

/// The code of the warning that the cluster of a route is not there.
const UNKNOWN_CLUSTER: &str = "unknown_cluster";

/// Returns true if the route that a pointer names has a cluster that no service has.
fn misses_a_cluster(
    pointer: &str,
    routes: &HashMap<&RouteId, &RouteConfig>,
    clusters: &HashMap<ClusterId, Arc<str>>,
) -> bool {
    let route = pointer.split_once("/Routes/").and_then(|(_, rest)| {
        let id = rest.split('/').next()?;
        let id = id.replace("~1", "/").replace("~0", "~");
        routes.get(&RouteId::from(id))
    });
    let Some(route) = route else { return true };
    let weighted = route.weighted_clusters.iter().flatten();
    let weighted = weighted.map(|weighted| &weighted.cluster_id);
    let partitions = (route.partitioned_clusters.iter())
        .flat_map(|partitioned| &partitioned.partitions)
        .map(|partition| &partition.cluster_id);
    (route.cluster_id.iter())
        .chain(weighted)
        .chain(partitions)
        .any(|id| !clusters.contains_key(id))
}

/// The forms in which services serve, in their order. Together they are the configuration.
#[derive(Debug, Default)]
pub(super) struct Parts(Vec<Arc<ProxyConfig>>);

impl Parts {
    /// Returns true if both are the same configuration, in the same order. They nearly always share their parts, so
    /// the comparison need not build the configuration.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        let same = |(a, b): (&Arc<ProxyConfig>, &Arc<ProxyConfig>)| {
            Arc::ptr_eq(a, b)
                || (a == b
                    && a.routes.keys().eq(b.routes.keys())
                    && a.clusters.keys().eq(b.clusters.keys()))
        };
        self.0.len() == other.0.len() && self.0.iter().zip(&other.0).all(same)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Arc<ProxyConfig>> {
        self.0.iter()
    }

    /// Puts the configuration together.
    pub(super) fn config(&self) -> ProxyConfig {
        let mut config = ProxyConfig::default();
        // As large as needed: growth would leave more unused than some services need.
        let clusters = self.0.iter().map(|part| part.clusters.len());
        config.clusters.reserve_exact(clusters.sum());
        let routes = self.0.iter().map(|part| part.routes.len());
        config.routes.reserve_exact(routes.sum());
        for part in &self.0 {
            let clusters = part.clusters.iter();
            (config.clusters).extend(clusters.map(|(id, of)| (id.clone(), of.clone())));
            let routes = part.routes.iter();
            (config.routes).extend(routes.map(|(id, of)| (id.clone(), of.clone())));
        }
        config.shrink_to_fit();
        config
    }
}

/// The owner of each id.
#[derive(Debug, Default)]
pub(super) struct Owners {
    pub(super) clusters: HashMap<ClusterId, Arc<str>>,
    pub(super) routes: HashMap<RouteId, Arc<str>>,
}

/// The outcome of the services of a cycle.
#[derive(Debug)]
pub(super) struct Outcome {
    pub(super) services: Vec<ServiceReport>,
    /// Problems of the services, with pointers that begin at the source.
    pub(super) problems: Problems,
    pub(super) quarantined: Vec<QuarantinedService>,
}

/// The configuration of a cycle in the making.
#[derive(Default)]
pub(super) struct Settling {
    parts: Parts,
    taken: Owners,
    /// Ids that only their owner can take.
    reserved: Owners,
    services: Vec<ServiceReport>,
    problems: Problems,
    quarantined: Vec<QuarantinedService>,
}

/// The last known good rules of a service with its destinations, as far as these are known.
struct Fallback {
    rules: Arc<ProxyConfig>,
    /// The id prefixes of unreadable destinations.
    unread: Vec<Arc<str>>,
    /// True if some cluster has no destination although there are instances.
    has_unusable: bool,
}

impl Settling {
    /// Creates an empty state. Ids that are `reserved` go only to their owners.
    pub(super) fn new(reserved: Owners) -> Self {
        Self {
            reserved,
            ..Self::default()
        }
    }

    /// Adds a service that the result lists.
    pub(super) fn listed(
        &mut self,
        name: &Arc<str>,
        known: &mut Known,
        service: DiscoveredService,
        evaluation: Evaluation,
    ) {
        let mut problems = evaluation.problems.clone();
        problems.append(service.rejected.clone());
        problems.append(service.rejected_destinations.clone());
        if evaluation.is_good() {
            // Ids of clusters and routes are unique over all services. The service that has one keeps it.
            let claimed = match &evaluation.fragment {
                None => Ok(None),
                Some(fragment) => self.claim(name, fragment).map(|()| Some(fragment)),
            };
            match claimed {
                Ok(fragment) if service.is_earlier() => {
                    let fragment = fragment.map(Arc::clone);
                    self.keep_with_source(name, known, &service, fragment, problems);
                    known.accept(service, evaluation);
                    return;
                }
                Ok(fragment) => {
                    known.good =
                        fragment.map(|fragment| Good::now(&service, fragment, known.good.as_ref()));
                    known.quarantine = None;
                    let outcome = fragment.map_or(ServiceOutcome::NotEnabled, |fragment| {
                        ServiceOutcome::Accepted {
                            clusters: fragment.clusters.keys().cloned().collect(),
                            routes: fragment.routes.keys().cloned().collect(),
                        }
                    });
                    self.list_unusable(name, known, &service);
                    known.accept(service, evaluation);
                    self.report(name, outcome, problems);
                    return;
                }
                Err(clash) => problems.append(clash),
            }
        }
        let has_unusable = evaluation.has_unusable || !service.unusable.is_empty();
        let fallback = evaluation.fallback.map(|rules| Fallback {
            rules,
            unread: service.unread,
            has_unusable,
        });
        self.quarantine(name, known, problems, fallback);
    }

    /// Lists a service whose current instances cannot be destinations. It is not quarantined otherwise: its rules and
    /// destinations are current.
    fn list_unusable(&mut self, name: &Arc<str>, known: &mut Known, service: &DiscoveredService) {
        let Some(good) = known.good.as_ref().filter(|_| !service.unusable.is_empty()) else {
            known.unusable_since = None;
            return;
        };
        self.quarantined.push(QuarantinedService {
            service: Arc::clone(name),
            since: *known.unusable_since.get_or_insert_with(Timestamp::now),
            last_known_good: Some(good.at),
            destinations: good.serving_destinations_at(),
            problems: service.unusable.clone(),
            is_unusable: true,
            has_unusable: true,
        });
    }

    /// Adds a service of which the source itself keeps an earlier form.
    fn keep_with_source(
        &mut self,
        name: &Arc<str>,
        known: &mut Known,
        service: &DiscoveredService,
        fragment: Option<Arc<ProxyConfig>>,
        problems: Problems,
    ) {
        let before = known.good.take();
        known.good = fragment.map(|fragment| {
            let now = Good::now(service, &fragment, before.as_ref());
            let before = before.as_ref().unwrap_or(&now);
            // The source confirms only what it did not reject.
            let at = match service.rejected.is_empty() {
                true => now.at,
                false => before.at,
            };
            let read_at = match service.rejected_destinations.is_empty() {
                true => now.read_at,
                false => before.read_at,
            };
            Good {
                at,
                read_at,
                ..now.clone()
            }
        });
        let serves = known
            .good
            .as_ref()
            .filter(|good| !good.fragment.routes.is_empty() || !good.fragment.clusters.is_empty());
        let (good, destinations) = (
            serves.map(|good| good.at),
            serves.and_then(Good::serving_destinations_at),
        );
        let has_unusable = !service.unusable.is_empty();
        self.list_quarantined(name, known, problems, (good, destinations), has_unusable);
    }

    /// Adds a service that does not serve as described.
    fn quarantine(
        &mut self,
        name: &Arc<str>,
        known: &mut Known,
        mut problems: Problems,
        fallback: Option<Fallback>,
    ) {
        let has_unusable = fallback.as_ref().is_some_and(|form| form.has_unusable);
        let good = match fallback {
            Some(fallback) => self.serve_fallback(name, known, fallback),
            None => None,
        };
        let good = good.or_else(|| self.serve_last_known_good(name, known, &mut problems));
        let destinations = (known.good.as_ref()).and_then(Good::serving_destinations_at);
        let destinations = destinations.filter(|_| good.is_some());
        known.accepted = None;
        self.list_quarantined(name, known, problems, (good, destinations), has_unusable);
    }

    /// Lists a service that does not serve as described, with the times at which its rules and destinations
    /// were confirmed.
    fn list_quarantined(
        &mut self,
        name: &Arc<str>,
        known: &mut Known,
        problems: Problems,
        (good, destinations): (Option<Timestamp>, Option<Timestamp>),
        has_unusable: bool,
    ) {
        let since = known
            .quarantine
            .as_ref()
            .map_or_else(Timestamp::now, |(since, _)| *since);
        known.quarantine = Some((since, problems.clone()));
        self.quarantined.push(QuarantinedService {
            service: Arc::clone(name),
            since,
            last_known_good: good,
            destinations,
            problems: problems.clone(),
            is_unusable: false,
            has_unusable,
        });
        let outcome = ServiceOutcome::Quarantined {
            last_known_good_age: good.map(|at| at.age()),
            destinations_age: destinations.map(|at| at.age()),
        };
        self.report(name, outcome, problems);
    }

    /// Adds a service that is kept although the result does not list it.
    pub(super) fn unlisted(&mut self, name: &Arc<str>, known: &mut Known) {
        if let Some((_, problems)) = &known.quarantine {
            let problems = problems.clone();
            return self.quarantine(name, known, problems, None);
        }
        let mut problems = Problems::new();
        match self.serve_last_known_good(name, known, &mut problems) {
            Some(at) => {
                let last_known_good_age = at.age();
                self.report(
                    name,
                    ServiceOutcome::Kept {
                        last_known_good_age,
                    },
                    problems,
                );
            }
            None => self.quarantine(name, known, problems, None),
        }
    }

    /// Serves the last known good rules with the current destinations, unless that needs an id of another
    /// service: the service's parts may have changed, and its clusters with them.
    fn serve_fallback(
        &mut self,
        name: &Arc<str>,
        known: &mut Known,
        Fallback { rules, unread, .. }: Fallback,
    ) -> Option<Timestamp> {
        let good = known.good.as_mut()?;
        self.claim(name, &rules).ok()?;
        good.follow(rules, &unread);
        Some(good.at)
    }

    /// Serves the last known good form, unless another service has taken its ids meanwhile.
    fn serve_last_known_good(
        &mut self,
        name: &Arc<str>,
        known: &Known,
        problems: &mut Problems,
    ) -> Option<Timestamp> {
        let good = known.good.as_ref()?;
        match self.claim(name, &good.fragment) {
            Ok(()) => Some(good.at),
            Err(clash) => {
                for problem in clash {
                    if !problems.iter().any(|known| *known == problem) {
                        problems.push(problem);
                    }
                }
                None
            }
        }
    }

    /// Adds a service's fragment, unless one of its ids is taken.
    fn claim(&mut self, name: &Arc<str>, fragment: &Arc<ProxyConfig>) -> Result<(), Problems> {
        let mut clashes = Problems::new();
        for id in fragment.clusters.keys() {
            let owner = self
                .taken
                .clusters
                .get(id)
                .or_else(|| self.reserved.clusters.get(id));
            if let Some(owner) = owner.filter(|owner| *owner != name) {
                let pointer = pointer_to("/Clusters", id.as_str());
                let message = format!("the service `{owner}` already has a cluster `{id}`");
                clashes.push(Problem::error(pointer, "duplicate_cluster", message));
            }
        }
        for id in fragment.routes.keys() {
            let owner = self
                .taken
                .routes
                .get(id)
                .or_else(|| self.reserved.routes.get(id));
            if let Some(owner) = owner.filter(|owner| *owner != name) {
                let pointer = pointer_to("/Routes", id.as_str());
                let message = format!("the service `{owner}` already has a route `{id}`");
                clashes.push(Problem::error(pointer, "duplicate_route", message));
            }
        }
        if !clashes.is_empty() {
            return Err(clashes);
        }
        for id in fragment.clusters.keys() {
            self.taken.clusters.insert(id.clone(), Arc::clone(name));
        }
        for id in fragment.routes.keys() {
            self.taken.routes.insert(id.clone(), Arc::clone(name));
        }
        self.parts.0.push(Arc::clone(fragment));
        Ok(())
    }

    fn report(&mut self, name: &Arc<str>, outcome: ServiceOutcome, problems: Problems) {
        let pointer = pointer_to("/Services", name);
        self.problems.append(problems.clone().under(&pointer));
        self.services.push(ServiceReport {
            name: Arc::clone(name),
            outcome,
            problems,
        });
    }

    /// Returns the parts of the configuration and the result without it.
    pub(super) fn finish(mut self) -> (Parts, Owners, Outcome) {
        // Each service was compiled alone; the cluster of a route may be another one's.
        let is_doubtful = |problem: &Problem| problem.code == UNKNOWN_CLUSTER;
        if self.problems.iter().any(is_doubtful) {
            let routes = self.parts.0.iter().flat_map(|part| &part.routes).collect();
            let clusters = &self.taken.clusters;
            let is_true = |problem: &Problem| {
                !is_doubtful(problem) || misses_a_cluster(&problem.pointer, &routes, clusters)
            };
            if !self.problems.iter().all(is_true) {
                self.problems = self.problems.into_iter().filter(is_true).collect();
                for report in &mut self.services {
                    let problems = std::mem::take(&mut report.problems);
                    report.problems = problems.into_iter().filter(is_true).collect();
                }
            }
        }
        let outcome = Outcome {
            services: self.services,
            problems: self.problems,
            quarantined: self.quarantined,
        };
        (self.parts, self.taken, outcome)
    }
}
