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

/// Warns of partitions with replicas, none of which can be reached at a selected listener.
pub(super) fn warn_of_darkness(root: &LabelNode<'_>, layout: &Layout<'_>) {
    let groups = layout.groups();
    for listener in layout
        .listeners
        .iter()
        .filter(|l| l.is_default || l.asked_by.is_some())
    {
        let dark: Vec<(Group<'_, '_>, EndpointError)> = groups
            .iter()
            .filter_map(|&group| Some((group, darkness(layout, listener, group)?)))
            .collect();
        let Some((first, error)) = dark.first() else {
            continue;
        };
        let what = match &listener.name {
            Some(name) => format!("a usable endpoint called `{}`", shortened(name)),
            None => "a usable endpoint".to_owned(),
        };
        let message = match first.id {
            Some(id) => {
                let (dark, all, id) = (dark.len(), groups.len(), shortened(id));
                format!("in {dark} of {all} partitions no replica has {what}; in {id}, {error}")
            }
            None => format!("no replica has {what}: of the first one, {error}"),
        };
        let pointer = match &listener.asked_by {
            Some(path) => root.locate(path.iter().map(String::as_str)),
            None => String::new(),
        };
        let mut problem = Problem::warning(pointer, NO_USABLE_ENDPOINT, message);
        problem.suggestion = error.suggestion();
        root.report(problem);
    }
}

/// Warns of replicas that are no destinations while others of their partition are.
pub(super) fn warn_of_left_out(
    root: &LabelNode<'_>,
    layout: &Layout<'_>,
    outcomes: &[ReplicaOutcome],
) {
    let (mut rest, mut left_out, mut named) = (outcomes, 0_usize, Vec::new());
    for group in layout.groups() {
        // Outcomes are in the order of the candidates.
        let (of_group, others) = rest.split_at(group.candidates.len());
        rest = others;
        if of_group.iter().all(|outcome| outcome.result.is_err()) {
            // The other warning is about them.
            continue;
        }
        for outcome in of_group {
            let Err(reason) = &outcome.result else {
                continue;
            };
            left_out += 1;
            if named.len() < MOST_NAMED {
                let id = destination_id(&outcome.partition_id, outcome.replica_id);
                named.push(format!("{}: {reason}", shortened(id.as_str())));
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
    let message = format!("{left_out} of {all} replicas cannot be used: {named}");
    root.report(Problem::warning("", "replica_not_usable", message));
}

/// Returns the reason why no replica of a group can be reached at a listener. `None` if one can, or if
/// there is none.
fn darkness(
    layout: &Layout<'_>,
    listener: &Listener,
    group: Group<'_, '_>,
) -> Option<EndpointError> {
    let mut first = None;
    for candidate in group.candidates {
        if first.is_some() && listener.is_missing_at(candidate) {
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
