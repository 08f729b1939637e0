//! Listeners: which of them have clusters, and which replicas cannot be reached at any.

use std::collections::{BTreeSet, HashSet};

use discovery_core::labels::LabelNode;
use proxy_model::{ClusterId, Problem};

use super::clusters::SECONDARIES;
use super::{Group, Layout};
use crate::labels::ReplicaOutcome;
use crate::labels::endpoints::{Endpoint, EndpointError, Schemes, shortened};
use crate::labels::ids::destination_id;
use crate::labels::options::ListenerMode;
use crate::labels::read::Labelled;
use crate::labels::replicas::{Candidate, Pool};

/// The code of the warning that no replica can be reached at a listener.
pub(crate) const NO_USABLE_ENDPOINT: &str = "no_usable_endpoint";

/// Maximum number of replicas that a warning names.
const MOST_NAMED: usize = 4;

/// A listener that has clusters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Listener {
    /// The listener's name. `None` for the first usable listener.
    pub(super) name: Option<String>,
    /// True if this is the listener of routes that name none. Its name is then left out of ids.
    pub(super) is_default: bool,
    /// The label that selects it, below the service's.
    asked_by: Option<Vec<String>>,
}

impl Listener {
    /// Returns the listener's name, if it has one.
    pub(super) fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// The listener's part in the ids of clusters.
    pub(super) fn in_id(&self) -> Option<&str> {
        match self.is_default {
            true => None,
            false => self.name.as_deref(),
        }
    }

    /// Returns true if routes or labels name the listener, or if it is the default one. Replicas may lack others.
    fn is_asked(&self) -> bool {
        self.is_default || self.asked_by.is_some()
    }

    /// Returns true if a replica lacks a listener of this name. Cheap, where the reason is not needed.
    pub(super) fn is_missing_at(&self, candidate: &Candidate<'_>) -> bool {
        match (&self.name, &candidate.endpoints) {
            (Some(name), Ok(endpoints)) => !endpoints.has(name),
            _ => false,
        }
    }

    /// Returns the endpoint of the listener at one replica.
    pub(super) fn at<'c>(
        &self,
        candidate: &'c Candidate<'_>,
        schemes: Schemes,
    ) -> Result<Endpoint<'c>, EndpointError> {
        let endpoints = candidate.endpoints.as_ref().map_err(Clone::clone)?;
        endpoints.choose(self.name.as_deref(), schemes)
    }
}

/// Returns all listeners that have clusters: the default one, those that routes name, and by option all
/// listeners of any replica. The search stops at more than `most`, which is too many.
pub(super) fn all(labelled: &Labelled, candidates: &[Candidate<'_>], most: usize) -> Vec<Listener> {
    let settings = &labelled.settings;
    let path = |path: &[&str]| path.iter().map(|&part| part.to_owned()).collect();
    let mut listeners = vec![Listener {
        name: settings.listener.clone(),
        is_default: true,
        asked_by: settings
            .listener
            .as_ref()
            .map(|_| path(&["Backend", "ServiceFabric", "ListenerName"])),
    }];
    let mut known: HashSet<&str> = settings.listener.as_deref().into_iter().collect();
    for route in &labelled.routes {
        let Some(name) = &route.listener else {
            continue;
        };
        if known.insert(name) {
            listeners.push(Listener {
                name: Some(name.clone()),
                is_default: false,
                asked_by: Some(path(&[
                    "Routes",
                    route.name(),
                    "ServiceFabric",
                    "ListenerName",
                ])),
            });
        }
    }
    if settings.listeners == ListenerMode::PerListener {
        let mut taken: BTreeSet<ClusterId> = listeners
            .iter()
            .filter_map(|listener| listener.name.as_deref())
            .map(ClusterId::from)
            .collect();
        if settings.roles.pools().contains(&Pool::Reads) {
            taken.insert(ClusterId::from(SECONDARIES));
        }
        let left = most.saturating_sub(listeners.len());
        for name in usable(candidates, settings.schemes, &taken, left) {
            // Of two that differ in case, one can have the id.
            if taken.insert(ClusterId::from(name)) {
                listeners.push(Listener {
                    name: Some(name.to_owned()),
                    is_default: false,
                    asked_by: None,
                });
            }
        }
    }
    listeners
}

/// The names of listeners at which some replica can be reached, in ordinal order of bytes. No more are looked for once
/// they would have more than `most` clusters beside those that are taken.
fn usable<'c>(
    candidates: &'c [Candidate<'_>],
    schemes: Schemes,
    taken: &BTreeSet<ClusterId>,
    most: usize,
) -> BTreeSet<&'c str> {
    let mut names = BTreeSet::new();
    let mut ids = HashSet::new();
    for candidate in candidates.iter().filter(|c| c.health.is_ok()) {
        let Ok(endpoints) = &candidate.endpoints else {
            continue;
        };
        for name in endpoints.names() {
            // A listener without a name cannot be selected. One that is usable somewhere need not be
            // checked again.
            let is_new = !name.is_empty() && !names.contains(name);
            if !is_new || endpoints.choose(Some(name), schemes).is_err() {
                continue;
            }
            names.insert(name);
            let id = ClusterId::from(name);
            if !taken.contains(&id) && ids.insert(id) && ids.len() > most {
                return names;
            }
        }
    }
    names
}

/// Returns the outcome of each replica.
pub(super) fn outcomes(layout: &Layout<'_>) -> Vec<ReplicaOutcome> {
    let outcome = |candidate: &Candidate<'_>| {
        let information = &layout.service.partitions[candidate.partition].information;
        ReplicaOutcome::new(
            information.id.as_str(),
            candidate.replica.replica_id,
            candidate.kind.clone(),
            result(layout, candidate).map_err(|error| error.to_string()),
        )
    };
    layout.candidates.iter().map(outcome).collect()
}

/// The listeners that requests are sent to.
fn result(layout: &Layout<'_>, candidate: &Candidate<'_>) -> Result<Vec<String>, EndpointError> {
    if let Err(error) = &candidate.health {
        return Err(error.clone());
    }
    let schemes = layout.labelled.settings.schemes;
    let mut names = BTreeSet::new();
    let mut first_error = None;
    for listener in &layout.listeners {
        if first_error.is_some() && listener.is_missing_at(candidate) {
            continue;
        }
        match listener.at(candidate, schemes) {
            Ok(endpoint) => {
                names.insert(endpoint.listener.to_owned());
            }
            Err(error) => {
                first_error.get_or_insert(error);
            }
        }
    }
    match first_error {
        Some(error) if names.is_empty() => Err(error),
        _ => Ok(names.into_iter().collect()),
    }
}

/// Clusters without a destination although replicas are ready, by the positions of their listener and their group.
#[derive(Debug, Default)]
pub(super) struct Dark {
    /// All clusters of the group.
    all: HashSet<(usize, usize)>,
    /// The cluster of writes alone.
    writes: HashSet<(usize, usize)>,
}

impl Dark {
    /// Returns true if the warning about clusters without a destination is about this replica, too.
    fn is_about(&self, place: (usize, usize), candidate: &Candidate<'_>) -> bool {
        let is_writer = || Pool::Writes.tier(candidate.role).is_some();
        self.all.contains(&place) || self.writes.contains(&place) && is_writer()
    }
}

/// Warns of clusters without a destination at a listener although replicas are ready, and returns them.
pub(super) fn warn_of_darkness(root: &LabelNode<'_>, layout: &Layout<'_>) -> Dark {
    let groups = layout.groups();
    let mut found = Dark::default();
    for (at, listener) in layout.listeners.iter().enumerate() {
        let (mut all, mut writes) = (Vec::new(), Vec::new());
        for (position, &group) in groups.iter().enumerate() {
            if let Some(error) = darkness(layout, listener, group, None) {
                found.all.insert((at, position));
                all.push((group, error));
                continue;
            }
            // Reads need no check of their own: the primary is among their replicas.
            let pool = layout.pools.iter().find(|pool| **pool == Pool::Writes);
            if let Some(error) = pool.and_then(|_| darkness(layout, listener, group, pool)) {
                found.writes.insert((at, position));
                writes.push((group, error));
            }
        }
        report_darkness(root, listener, groups.len(), &all, "no replica has");
        report_darkness(
            root,
            listener,
            groups.len(),
            &writes,
            "writes have no destination, since the primary has not",
        );
    }
    found
}

/// Reports the groups that are dark at a listener for the same reason.
fn report_darkness(
    root: &LabelNode<'_>,
    listener: &Listener,
    groups: usize,
    dark: &[(Group<'_, '_>, EndpointError)],
    who: &str,
) {
    let Some((first, error)) = dark.first() else {
        return;
    };
    let what = match &listener.name {
        Some(name) => format!("a usable endpoint called `{}`", shortened(name)),
        None => "a usable endpoint".to_owned(),
    };
    let message = match first.id {
        Some(id) => {
            let (dark, id) = (dark.len(), shortened(id));
            format!("in {dark} of {groups} partitions {who} {what}; in {id}, {error}")
        }
        None => format!("{who} {what}: of the first one, {error}"),
    };
    let pointer = match &listener.asked_by {
        Some(path) => root.locate(path.iter().map(String::as_str)),
        None => String::new(),
    };
    let mut problem = Problem::warning(pointer, NO_USABLE_ENDPOINT, message);
    problem.suggestion = error.suggestion();
    root.report(problem);
}

/// Warns of replicas that are left out of a cluster while others serve there.
pub(super) fn warn_of_left_out(
    root: &LabelNode<'_>,
    layout: &Layout<'_>,
    outcomes: &[ReplicaOutcome],
    dark: &Dark,
) {
    let (mut rest, mut left_out, mut named) = (outcomes, 0_usize, Vec::new());
    let mut is_partial = false;
    for (position, group) in layout.groups().into_iter().enumerate() {
        // Outcomes are in the order of the candidates.
        let (of_group, others) = rest.split_at(group.candidates.len());
        rest = others;
        for (outcome, candidate) in of_group.iter().zip(group.candidates) {
            let Some(error) = left_out_of(layout, position, candidate, dark) else {
                continue;
            };
            left_out += 1;
            is_partial |= outcome.result.is_ok();
            if named.len() < MOST_NAMED {
                let id = destination_id(&outcome.partition_id, outcome.replica_id);
                let id = shortened(id.as_str());
                named.push(match &outcome.result {
                    Err(reason) => format!("{id}: {reason}"),
                    Ok(listeners) => {
                        format!("{id}: {error}; it is used at {}", some_of(listeners))
                    }
                });
            }
        }
    }
    if left_out == 0 {
        return;
    }
    if left_out > named.len() {
        named.push(format!("{} more", left_out - named.len()));
    }
    let all = outcomes.len();
    let named = named.join("; ");
    let what = match is_partial {
        true => "cannot be used at every listener",
        false => "cannot be used",
    };
    let message = format!("{left_out} of {all} replicas {what}: {named}");
    root.report(Problem::warning("", "replica_not_usable", message));
}

/// Returns the reason why a replica is left out of a cluster that has other destinations. `None` if it is in all of
/// them, except those of listeners that it need not have.
fn left_out_of(
    layout: &Layout<'_>,
    group: usize,
    candidate: &Candidate<'_>,
    dark: &Dark,
) -> Option<EndpointError> {
    let schemes = layout.labelled.settings.schemes;
    let mut listeners = layout.listeners.iter().enumerate();
    listeners.find_map(|(at, listener)| {
        let may_lack = !listener.is_asked() || candidate.need_not_listen;
        if may_lack && listener.is_missing_at(candidate) || dark.is_about((at, group), candidate) {
            return None;
        }
        match &candidate.health {
            Err(error) => Some(error.clone()),
            Ok(_) => listener.at(candidate, schemes).err(),
        }
    })
}

/// Some names of listeners.
fn some_of(listeners: &[String]) -> String {
    let some = listeners.iter().take(MOST_NAMED);
    let mut some: Vec<_> = some.map(|name| format!("`{}`", shortened(name))).collect();
    if listeners.len() > MOST_NAMED {
        some.push("…".to_owned());
    }
    some.join(", ")
}

/// Returns the reason why no replica of a group, or of one pool of it, can be reached at a listener. `None` if one
/// can, or if there is none, or none has the listener and no label names it.
fn darkness(
    layout: &Layout<'_>,
    listener: &Listener,
    group: Group<'_, '_>,
    pool: Option<&Pool>,
) -> Option<EndpointError> {
    let mut first = None;
    let is_in = |role| pool.is_none_or(|pool| pool.tier(role).is_some());
    for candidate in group.candidates.iter().filter(|c| is_in(c.role)) {
        if (first.is_some() || !listener.is_asked()) && listener.is_missing_at(candidate) {
            continue;
        }
        let error = match (
            &candidate.health,
            listener.at(candidate, layout.labelled.settings.schemes),
        ) {
            (Ok(_), Ok(_)) => return None,
            (Err(error), _) => error.clone(),
            (_, Err(error)) => error,
        };
        first.get_or_insert(error);
    }
    first
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::labels::endpoints::Endpoints;
    use crate::labels::replicas::Role;
    use crate::model::{Replica, ServiceKind};

    /// 500 replicas with 20 listeners each; `name` names one.
    fn found(most: usize, name: impl Fn(usize, usize) -> String) -> Vec<String> {
        let replica = Replica::default();
        let candidate = |i: usize| {
            let all: serde_json::Map<_, _> = (0..20)
                .map(|j| (name(i, j), "https://10.0.0.1".into()))
                .collect();
            let address = serde_json::json!({ "Endpoints": all }).to_string();
            Candidate {
                partition: 0,
                replica: &replica,
                role: Role::Stateless,
                kind: ServiceKind::Stateless,
                endpoints: Endpoints::parse(&address),
                health: Ok(None),
                need_not_listen: false,
            }
        };
        let candidates: Vec<_> = (0..500).map(candidate).collect();
        let taken = [ClusterId::from("taken")].into();
        let names = usable(&candidates, Schemes::Secure, &taken, most);
        names.into_iter().map(str::to_owned).collect()
    }

    #[test]
    fn no_more_listeners_are_looked_for_than_there_may_be() {
        assert_eq!(found(7, |i, j| format!("{i}-{j}")).len(), 8);
        // Those that have no cluster of their own do not count.
        let few = found(2, |i, j| match j % 4 {
            0 => String::new(),
            1 => "taken".to_owned(),
            2 => ["web", "Web", "WEB"][i % 3].to_owned(),
            _ => "admin".to_owned(),
        });
        assert_eq!(few, ["WEB", "Web", "admin", "taken", "web"]);
    }
}
