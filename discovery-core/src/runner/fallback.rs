//! The fallback for a service with a bad description: its last known good rules, with its current
//! destinations.
//!
//! Destinations are not configuration. Instances move while a label waits for its correction, and old
//! addresses lead nowhere, or to another service.

use std::sync::Arc;

use proxy_model::Problems;
use proxy_model::config::ProxyConfig;

use super::evaluate::{Evaluation, Evaluator};
use super::good::Good;
use super::registry::Evaluated;
use super::validation::Question;
use crate::contain::contained_call;
use crate::discovery::{DiscoveredService, LabelledService, Labels, ServiceContent};
use crate::endpoints::{add_unread, with_destinations};
use crate::labels::Parsed;

impl Evaluator {
    /// Adds fallback forms: for each service that may need one, its last known good rules with its current
    /// destinations. Returns those that validators have not accepted yet, each with its position.
    pub(super) fn add_fallbacks(
        &self,
        answer: &mut [Evaluated],
        in_doubt: Vec<(usize, Good)>,
    ) -> Vec<(usize, Question)> {
        let mut changed = Vec::new();
        for (position, good) in in_doubt {
            let (service, evaluation) = &mut answer[position];
            let (fallback, warnings, has_unusable) = self.fallback(service, evaluation, &good);
            evaluation.fallback = fallback;
            evaluation.has_unusable = has_unusable;
            // The problems of the rules that serve, such as those of addresses, which are not checked while labels are
            // wrong.
            for warning in warnings {
                if !evaluation.problems.iter().any(|known| *known == warning) {
                    evaluation.problems.push(warning);
                }
            }
            let fallback = evaluation.fallback.as_ref();
            if let Some(fallback) = fallback.filter(|fallback| **fallback != good.fragment) {
                let question = Question {
                    service: Arc::clone(&service.name),
                    fragment: Arc::clone(fallback),
                };
                changed.push((position, question));
            }
        }
        changed
    }

    /// Returns the last known good rules with the current destinations, their warnings, and true if a cluster has no
    /// destination although there are instances. `None` if the current addresses are unknown.
    fn fallback(
        &self,
        service: &DiscoveredService,
        evaluation: &Evaluation,
        good: &Good,
    ) -> (Option<Arc<ProxyConfig>>, Problems, bool) {
        let labels = good.labels.as_ref();
        let made = labels.and_then(|labels| self.made_again(service, labels, good));
        let (fragment, warnings, has_unusable) = match made {
            Some((fragment, warnings, has_unusable)) => (Some(fragment), warnings, has_unusable),
            None => (
                self.grafted(service, evaluation, good),
                Problems::new(),
                false,
            ),
        };
        // Also those that were left out here.
        let is_empty = fragment
            .as_ref()
            .is_some_and(|made| !has_destinations(made));
        let has_instances = match &service.content {
            ServiceContent::Labelled(described) => !described.destinations.is_empty(),
            ServiceContent::Config(config) => has_destinations(config),
            _ => false,
        };
        (
            fragment,
            warnings,
            has_unusable || is_empty && has_instances,
        )
    }

    /// Returns the configuration that the last known good labels make of the service's current state.
    fn made_again(
        &self,
        service: &DiscoveredService,
        labels: &Labels,
        good: &Good,
    ) -> Option<(Arc<ProxyConfig>, Problems, bool)> {
        let parsed: Parsed = match (&service.rebuild, &service.content) {
            (Some(rebuild), _) => contained_call(|| rebuild.with(labels)).ok()?,
            (None, ServiceContent::Labelled(described)) => {
                let described =
                    LabelledService::new(labels.clone(), described.destinations.clone());
                contained_call(|| self.parser.parse(&service.name, &described)).ok()?
            }
            (None, _) => return None,
        };
        if parsed.problems.has_errors() {
            return None;
        }
        let mut fragment = parsed.fragment?;
        let recent = good.recent(&service.unread, self.unread_grace);
        add_unread(&mut fragment, &good.fragment, &recent);
        if self.filter(&mut fragment).has_errors() {
            return None;
        }
        let has_unusable = parsed.has_unusable;
        Some((self.usable(fragment)?, parsed.problems, has_unusable))
    }

    /// Returns the last known good form with the current destinations of clusters of the same name.
    fn grafted(
        &self,
        service: &DiscoveredService,
        evaluation: &Evaluation,
        good: &Good,
    ) -> Option<Arc<ProxyConfig>> {
        let now = &evaluation.fragment.as_ref()?.clusters;
        let mut fragment = ProxyConfig::clone(&good.fragment);
        // The only cluster of a service is the same one under another name.
        let only = (now.len() == 1 && fragment.clusters.len() == 1).then(|| &now[0]);
        let mut is_known = false;
        for (id, cluster) in &mut fragment.clusters {
            let current = now.get(id).or(only);
            let live = current.and_then(|current| {
                with_destinations(cluster, &current.destinations, &self.compile)
            });
            if let Some(live) = live {
                *cluster = live;
                is_known = true;
            }
        }
        if !is_known {
            return None;
        }
        // Who reports an error itself may have left out a cluster that it could not make, and so may a filter.
        if let ServiceContent::Config(said) = &service.content
            && !service.problems.has_errors()
            && only.is_none()
        {
            for (id, cluster) in &mut fragment.clusters {
                if !said.clusters.contains_key(id) {
                    cluster.destinations.clear();
                }
            }
        }
        self.usable(fragment)
    }

    /// The fragment without destinations that cannot be used.
    fn usable(&self, mut fragment: ProxyConfig) -> Option<Arc<ProxyConfig>> {
        let compiles = |fragment: &Arc<ProxyConfig>| {
            let mut problems = Problems::new();
            self.check_compiles(fragment, &mut problems);
            !problems.has_errors()
        };
        let whole = Arc::new(fragment.clone());
        if compiles(&whole) {
            return Some(whole);
        }
        for cluster in fragment.clusters.values_mut() {
            *cluster = with_destinations(cluster, &cluster.destinations, &self.compile)?;
        }
        let left = Arc::new(fragment);
        compiles(&left).then_some(left)
    }
}

fn has_destinations(config: &ProxyConfig) -> bool {
    let mut clusters = config.clusters.values();
    clusters.any(|cluster| !cluster.destinations.is_empty())
}
