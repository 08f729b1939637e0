//! The services of a source: the last valid data of each, and the configuration that they make together.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use indexmap::IndexMap;
use proxy_model::config::ProxyConfig;
use proxy_model::{ClusterId, Problem, Problems, Revision, RouteId, pointer_to};
use tokio::time::Instant;

use super::evaluate::Evaluation;
use super::good::Good;
use super::options::ConfirmRemoval;
use super::seniority::Seniority;
use super::settling::{Outcome, Owners, Parts, Settling};
use crate::discovery::{DiscoveredService, FailedGroup, ServiceContent};
use crate::timestamp::Timestamp;

/// The services of a source. Pure bookkeeping: time is an argument, and nothing waits.
#[derive(Debug)]
pub(super) struct Registry {
    services: IndexMap<Arc<str>, Known>,
    keep_order: bool,
    confirm_removal: Option<ConfirmRemoval>,
    /// Services whose disappearance is not believed yet, and since when each is missing.
    doubted: HashMap<Arc<str>, Instant>,
    /// The owner of each id, since the last successful poll.
    owners: Owners,
    /// The order among routes with equal criteria.
    seniority: Seniority,
    /// The configuration of the last cycle, and its parts.
    current: Option<Current>,
    /// The text that the source gets back after a restart.
    memo: Option<Arc<str>>,
    /// The services that were quarantined in the last cycle.
    quarantined: Vec<Arc<str>>,
    /// True if something besides the configuration has changed that is kept on disk.
    has_news: bool,
}

/// A configuration with its parts.
#[derive(Debug)]
struct Current {
    parts: Parts,
    config: Arc<ProxyConfig>,
    revision: Revision,
}

/// The state of a service that is kept between cycles.
#[derive(Debug, Default)]
pub(super) struct Known {
    group: Option<Arc<str>>,
    /// The last valid content from the source, and its evaluation.
    pub(super) accepted: Option<(ServiceContent, Problems, Evaluation)>,
    /// The form that serves.
    pub(super) good: Option<Good>,
    /// The time since which the service does not serve as described, with the reasons.
    pub(super) quarantine: Option<(Timestamp, Problems)>,
    /// The time since which instances of the service cannot be destinations.
    pub(super) unusable_since: Option<Timestamp>,
}

impl Known {
    /// Remembers the evaluation of a service that is valid.
    pub(super) fn accept(&mut self, service: DiscoveredService, evaluation: Evaluation) {
        let evaluation = Evaluation {
            fallback: None,
            has_unusable: false,
            ..evaluation
        };
        self.accepted = Some((service.content, service.problems, evaluation));
    }
}

/// A service in the form in which it is kept on disk.
#[derive(Clone, Debug)]
pub(crate) struct KeptService {
    pub(crate) name: Arc<str>,
    pub(crate) group: Option<Arc<str>>,
    pub(crate) good: Good,
    /// The numbers of the changes that brought its routes, for those that came after others.
    pub(crate) later: BTreeMap<RouteId, u64>,
}

/// A quarantined service in the form in which it is kept on disk.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct KeptQuarantine {
    pub(crate) name: Arc<str>,
    pub(crate) since: Timestamp,
    pub(crate) problems: Problems,
}

/// The state that is kept on disk.
#[derive(Clone, Debug, Default)]
pub(crate) struct KeptState {
    pub(crate) services: Vec<KeptService>,
    pub(crate) quarantined: Vec<KeptQuarantine>,
    /// The text that the source gets back after a restart.
    pub(crate) memo: Option<Arc<str>>,
}

/// The result of a cycle.
#[derive(Debug)]
pub(super) struct Settled {
    /// The configuration, shared with that of the cycle before if it is the same.
    pub(super) config: Arc<ProxyConfig>,
    pub(super) revision: Revision,
    pub(super) outcome: Outcome,
    /// True if missing services wait for their removal to be confirmed.
    pub(super) removal_pending: bool,
}

/// A service of a discovery result with its evaluation.
pub(super) type Evaluated = (DiscoveredService, Evaluation);

/// A service of a cycle: its name, its state, and its evaluated data. `None` if the source does not list it and it
/// is kept.
type Met = (Arc<str>, Known, Option<Evaluated>);

impl Registry {
    pub(super) fn new(keep_order: bool, confirm_removal: Option<ConfirmRemoval>) -> Self {
        Self {
            services: IndexMap::new(),
            keep_order,
            confirm_removal,
            doubted: HashMap::new(),
            owners: Owners::default(),
            seniority: Seniority::default(),
            current: None,
            memo: None,
            quarantined: Vec::new(),
            has_news: false,
        }
    }

    /// Sorts the services of a result, and removes those with the name of another.
    pub(super) fn arrange(
        &self,
        mut services: Vec<DiscoveredService>,
        problems: &mut Problems,
    ) -> Vec<DiscoveredService> {
        if !self.keep_order {
            // Stable: of two services with one name the first in the result stays the first.
            services.sort_by(|a, b| a.name.cmp(&b.name));
        }
        let mut seen = HashSet::with_capacity(services.len());
        services.retain(|service| {
            let first = seen.insert(Arc::clone(&service.name));
            if !first {
                let pointer = pointer_to("/Services", &service.name);
                let message = format!("the source lists two services called `{}`", service.name);
                problems.push(Problem::warning(pointer, "duplicate_service", message));
            }
            first
        });
        services
    }

    /// Adds the unreadable destinations that served last and are not too old.
    pub(super) fn add_unread(&self, service: &mut DiscoveredService, grace: Duration) {
        let known = self.services.get(&service.name);
        if let Some(good) = known.and_then(|known| known.good.as_ref()) {
            good.add_unread_to(service, grace);
        }
    }

    /// Returns the previous evaluation of a service whose content is unchanged and was valid.
    pub(super) fn remembered(&self, service: &DiscoveredService) -> Option<Evaluation> {
        let (content, problems, evaluation) =
            self.services.get(&service.name)?.accepted.as_ref()?;
        let same = is_same(content, &service.content) && *problems == service.problems;
        same.then(|| evaluation.clone())
    }

    /// Returns the services that may have to serve in their last known good form, by position, each with
    /// that form: those with errors, and those that claim an id that another one has or claims.
    pub(super) fn in_doubt(&self, answer: &[Evaluated]) -> Vec<(usize, Good)> {
        let mut claims = Claims::default();
        for (service, evaluation) in answer {
            if let Some(fragment) = evaluation
                .fragment
                .as_ref()
                .filter(|_| evaluation.is_good())
            {
                claims.add(&service.name, fragment);
            }
        }
        let in_doubt = |(service, evaluation): &Evaluated| match &evaluation.fragment {
            _ if !evaluation.is_good() => true,
            None => false,
            Some(fragment) => claims.is_contested(&service.name, fragment, &self.owners),
        };
        let answer = answer.iter().enumerate();
        answer
            .filter(|(_, evaluated)| in_doubt(evaluated))
            .filter_map(|(position, (service, _))| {
                let known = self.services.get(&service.name)?;
                Some((position, known.good.clone()?))
            })
            .collect()
    }

    /// Restores what was kept on disk.
    pub(super) fn restore(&mut self, kept: KeptState) {
        self.memo = kept.memo;
        for service in kept.services {
            self.seniority.restore(service.later);
            let known = Known {
                group: service.group,
                good: Some(service.good),
                ..Known::default()
            };
            self.services.insert(service.name, known);
        }
        for quarantined in kept.quarantined {
            let known = self.services.entry(quarantined.name).or_default();
            known.quarantine = Some((quarantined.since, quarantined.problems));
        }
    }

    /// Sets what the source needs to know after a restart.
    pub(super) fn remember(&mut self, memo: Option<Arc<str>>) {
        self.has_news |= self.memo != memo;
        self.memo = memo;
    }

    /// Returns true if something besides the configuration has changed that is kept on disk, since the last
    /// call.
    pub(super) fn take_news(&mut self) -> bool {
        std::mem::take(&mut self.has_news)
    }

    /// The service that has the cluster.
    pub(super) fn owner_of(&self, cluster: &ClusterId) -> Option<&Arc<str>> {
        self.owners.clusters.get(cluster)
    }

    /// The form in which the service serves.
    pub(super) fn form_of(&self, service: &str) -> Option<&Arc<ProxyConfig>> {
        let good = self.services.get(service)?.good.as_ref()?;
        Some(&good.fragment)
    }

    /// Returns what to keep on disk.
    pub(super) fn kept(&self) -> KeptState {
        let kept = |(name, known): (&Arc<str>, &Known)| {
            let good = known.good.clone()?;
            Some(KeptService {
                name: Arc::clone(name),
                group: known.group.clone(),
                later: self.seniority.of(&good.fragment),
                good,
            })
        };
        let quarantined = |(name, known): (&Arc<str>, &Known)| {
            let (since, problems) = known.quarantine.clone()?;
            Some(KeptQuarantine {
                name: Arc::clone(name),
                since,
                problems,
            })
        };
        KeptState {
            services: self.services.iter().filter_map(kept).collect(),
            quarantined: self.services.iter().filter_map(quarantined).collect(),
            memo: self.memo.clone(),
        }
    }

    /// Applies a successful discovery result.
    pub(super) fn answer(
        &mut self,
        answer: Vec<Evaluated>,
        failed_groups: &[FailedGroup],
        now: Instant,
    ) -> Settled {
        let (kept, removal_pending) = self.missing_but_kept(&answer, failed_groups, now);
        let mut old = std::mem::take(&mut self.services);
        let mut services: Vec<Met> = answer
            .into_iter()
            .map(|(service, evaluation)| {
                let mut known = old.swap_remove(&service.name).unwrap_or_default();
                known.group.clone_from(&service.group);
                let name = Arc::clone(&service.name);
                (name, known, Some((service, evaluation)))
            })
            .collect();
        for name in kept {
            if let Some(known) = old.swap_remove(&name) {
                services.push((name, known, None));
            }
        }
        drop(old);
        if !self.keep_order {
            services.sort_unstable_by(|(a, ..), (b, ..)| a.cmp(b));
        }

        let mut settling = Settling::new(self.reserved(&services));
        self.services.reserve_exact(services.len());
        for (name, mut known, evaluated) in services {
            match evaluated {
                Some((service, evaluation)) => {
                    settling.listed(&name, &mut known, service, evaluation);
                }
                None => settling.unlisted(&name, &mut known),
            }
            self.services.insert(name, known);
        }
        self.settled(settling, removal_pending)
    }

    /// Returns the configuration of the restored services, before the first successful poll.
    pub(super) fn without_answer(&mut self) -> Settled {
        let mut settling = Settling::default();
        for (name, known) in &mut self.services {
            settling.unlisted(name, known);
        }
        self.settled(settling, false)
    }

    /// Returns the result of a cycle. The configuration is built only if its parts have changed.
    fn settled(&mut self, settling: Settling, removal_pending: bool) -> Settled {
        let (parts, owners, outcome) = settling.finish();
        self.owners = owners;
        let quarantined = || outcome.quarantined.iter().map(|service| &service.service);
        if quarantined().ne(&self.quarantined) {
            self.quarantined = quarantined().cloned().collect();
            self.has_news = true;
        }
        let current = match self.current.take() {
            Some(current) if current.parts.is_same(&parts) => Current { parts, ..current },
            before => {
                let known = before.as_ref().map(|before| Arc::clone(&before.config));
                self.seniority.note(&known.unwrap_or_default(), &parts);
                let mut config = parts.config();
                self.seniority.arrange(&mut config);
                let revision = Revision::of(&config);
                let same = before.filter(|before| before.revision == revision);
                let config = same.map_or_else(|| Arc::new(config), |before| before.config);
                Current {
                    parts,
                    config,
                    revision,
                }
            }
        };
        let settled = Settled {
            config: Arc::clone(&current.config),
            revision: current.revision,
            outcome,
            removal_pending,
        };
        self.current = Some(current);
        settled
    }

    /// Returns the services that serve, are missing from the result and continue to serve, and true if they
    /// do so until their removal is confirmed.
    fn missing_but_kept(
        &mut self,
        answer: &[Evaluated],
        failed_groups: &[FailedGroup],
        now: Instant,
    ) -> (Vec<Arc<str>>, bool) {
        let listed: HashSet<&str> = answer.iter().map(|(service, _)| &*service.name).collect();
        let failed: HashSet<&str> = failed_groups.iter().map(|failed| &*failed.group).collect();
        let serving = self
            .services
            .iter()
            .filter(|(_, known)| known.good.is_some());
        let total = serving.clone().count();
        let missing = serving.filter(|(name, _)| !listed.contains(&***name));
        let (mut kept, mut gone) = (Vec::new(), Vec::new());
        for (name, known) in missing {
            let unlisted = known
                .group
                .as_deref()
                .is_some_and(|group| failed.contains(group));
            let list = if unlisted { &mut kept } else { &mut gone };
            list.push(Arc::clone(name));
        }
        let doubted = self.doubt(gone, total, now);
        let pending = !doubted.is_empty();
        kept.extend(doubted);
        (kept, pending)
    }

    /// Returns the missing services whose removal must still be confirmed. `total` services served before.
    ///
    /// Each doubted service is doubted for its own time, independent of the others: a recovering registry
    /// lists its services a few at a time. The check whether too many services disappeared is repeated each
    /// time, for those that disappeared since.
    fn doubt(&mut self, gone: Vec<Arc<str>>, total: usize, now: Instant) -> Vec<Arc<str>> {
        let Some(rule) = self.confirm_removal else {
            return Vec::new();
        };
        let sudden = !gone.is_empty() && gone.len() as f64 >= rule.share * total as f64;
        let before = std::mem::take(&mut self.doubted);
        let mut still = Vec::new();
        for name in gone {
            let since = match before.get(&name) {
                Some(&since) => since,
                None if sudden => now,
                None => continue,
            };
            if now.duration_since(since) < rule.settle {
                self.doubted.insert(Arc::clone(&name), since);
                still.push(name);
            }
        }
        still
    }

    /// Returns the ids that services held before and still claim. They are reserved regardless of the order, so
    /// that a new service cannot take the id of a running one.
    fn reserved(&self, services: &[Met]) -> Owners {
        let mut reserved = Owners::default();
        for (name, known, evaluated) in services {
            let fragment = match evaluated {
                Some((_, evaluation)) if evaluation.is_good() => evaluation.fragment.as_ref(),
                _ => known.good.as_ref().map(|good| &good.fragment),
            };
            let Some(fragment) = fragment else { continue };
            let clusters = fragment.clusters.keys();
            for id in clusters.filter(|id| self.owners.clusters.get(*id) == Some(name)) {
                reserved.clusters.insert(id.clone(), Arc::clone(name));
            }
            let routes = fragment.routes.keys();
            for id in routes.filter(|id| self.owners.routes.get(*id) == Some(name)) {
                reserved.routes.insert(id.clone(), Arc::clone(name));
            }
        }
        reserved
    }
}

/// The claims to ids in one discovery result.
#[derive(Default)]
struct Claims<'a> {
    /// The claimed clusters. `None` if more than one service claims one.
    clusters: HashMap<&'a ClusterId, Option<&'a Arc<str>>>,
    routes: HashMap<&'a RouteId, Option<&'a Arc<str>>>,
}

impl<'a> Claims<'a> {
    fn add(&mut self, name: &'a Arc<str>, fragment: &'a ProxyConfig) {
        for id in fragment.clusters.keys() {
            let claim = self.clusters.entry(id).or_insert(Some(name));
            *claim = claim.filter(|other| *other == name);
        }
        for id in fragment.routes.keys() {
            let claim = self.routes.entry(id).or_insert(Some(name));
            *claim = claim.filter(|other| *other == name);
        }
    }

    fn is_contested(&self, name: &Arc<str>, fragment: &ProxyConfig, owners: &Owners) -> bool {
        let mut clusters = fragment.clusters.keys();
        let mut routes = fragment.routes.keys();
        clusters.any(|id| {
            self.clusters.get(id) == Some(&None)
                || owners.clusters.get(id).is_some_and(|owner| owner != name)
        }) || routes.any(|id| {
            self.routes.get(id) == Some(&None)
                || owners.routes.get(id).is_some_and(|owner| owner != name)
        })
    }
}

/// Returns true if the source's content is unchanged. If several routes match the same requests, the first
/// takes them all. The order of routes is therefore compared too, which equality of maps does not do.
fn is_same(before: &ServiceContent, now: &ServiceContent) -> bool {
    let same_order = match (before, now) {
        (ServiceContent::Config(before), ServiceContent::Config(now)) => {
            before.routes.keys().eq(now.routes.keys())
        }
        _ => true,
    };
    same_order && before == now
}
