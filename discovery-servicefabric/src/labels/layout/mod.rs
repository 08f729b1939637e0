//! The conversion of labels and replicas to clusters and routes.

mod clusters;
mod listeners;
mod precedence;
mod roles;
mod routes;
mod size;

use discovery_core::labels::LabelNode;
use proxy_model::Problem;
use proxy_model::config::ProxyConfig;

use self::listeners::Listener;
pub(crate) use self::listeners::NO_USABLE_ENDPOINT;
use super::ReplicaOutcome;
use super::partitions::{self, Division, Keys};
use super::read::Labelled;
use super::replicas::{Candidate, Pool, candidates};
use crate::service::ServiceDescription;

/// The input of clusters and routes.
struct Layout<'a> {
    service: &'a ServiceDescription,
    labelled: &'a Labelled,
    division: Division,
    /// The partitions by position, in the order in which they are written.
    order: Vec<usize>,
    /// The keys of each partition in `order`; empty unless they divide.
    keys: Vec<Keys>,
    candidates: Vec<Candidate<'a>>,
    /// The first is the one of routes that name none.
    listeners: Vec<Listener>,
    pools: &'static [Pool],
}

/// A part of the service that has clusters of its own.
#[derive(Clone, Copy)]
struct Group<'l, 'a> {
    /// The partition's id, if the group is one partition.
    id: Option<&'a str>,
    candidates: &'l [Candidate<'a>],
}

impl<'a> Layout<'a> {
    fn new(service: &'a ServiceDescription, labelled: &'a Labelled) -> Self {
        let settings = &labelled.settings;
        let order = partitions::sorted(&service.partitions);
        let candidates = candidates(service, &order, settings);
        let division = Division::of(settings, &service.partitions);
        let pools = settings.roles.pools();
        let groups = size::groups(division, &order);
        let most = size::most_listeners(settings, groups, candidates.len());
        Self {
            division,
            keys: Vec::new(),
            listeners: listeners::all(labelled, &candidates, most),
            pools,
            service,
            labelled,
            order,
            candidates,
        }
    }

    /// Makes all clusters and routes.
    fn build(&mut self) -> Result<ProxyConfig, Problem> {
        let partitions = &self.service.partitions;
        if self.division != Division::Merged {
            partitions::check_ids(partitions, &self.order)?;
        }
        if self.division == Division::ByKey {
            self.keys = partitions::keys(partitions, &self.order)?;
        }
        let mut config = ProxyConfig::default();
        clusters::build(self, &mut config)?;
        routes::build(self, &mut config);
        Ok(config)
    }

    /// The parts of the service, in the order in which they are written.
    fn groups(&self) -> Vec<Group<'_, 'a>> {
        if self.division == Division::Merged {
            return vec![Group {
                id: None,
                candidates: &self.candidates,
            }];
        }
        // Candidates are in the order of their partitions.
        let mut rest = self.candidates.as_slice();
        let group = |&partition: &usize| {
            let count = rest.iter().take_while(|c| c.partition == partition).count();
            let (candidates, others) = rest.split_at(count);
            rest = others;
            Group {
                id: Some(&self.service.partitions[partition].information.id),
                candidates,
            }
        };
        self.order.iter().map(group).collect()
    }
}

/// Makes the configuration from labels and replicas, and returns it with the outcome of each replica.
/// Problems are reported below `root`; if there are errors, the configuration is empty.
pub(super) fn lay_out(
    root: &LabelNode<'_>,
    service: &ServiceDescription,
    labelled: &Labelled,
    is_good: bool,
) -> (ProxyConfig, Vec<ReplicaOutcome>) {
    let mut layout = Layout::new(service, labelled);
    if let Err(problem) = size::check(&layout) {
        root.report(problem);
        return (ProxyConfig::default(), Vec::new());
    }
    let outcomes = listeners::outcomes(&layout);
    if !is_good {
        return (ProxyConfig::default(), outcomes);
    }
    let dark = listeners::warn_of_darkness(root, &layout);
    listeners::warn_of_left_out(root, &layout, &outcomes, &dark);
    precedence::warn(root, labelled);
    let config = layout.build().unwrap_or_else(|problem| {
        root.report(problem);
        ProxyConfig::default()
    });
    (config, outcomes)
}
