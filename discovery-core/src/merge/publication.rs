//! Publication of the merged configuration.

use std::collections::HashSet;
use std::sync::Arc;

use proxy_model::{Problem, Problems};

use super::draft::Draft;
use super::driver::{Compiled, MergeWorker, Source};
use super::prepare::Prepared;
use super::state::{Contribution, MergedState, Origins, SourcedProblem, Written};
use crate::provider::ProviderState;
use crate::status::SourceState;
use crate::summary::Summary;
use crate::timestamp::Timestamp;

/// Problems beyond this number are not logged one by one.
const MOST_LOGGED: usize = 20;

impl MergeWorker {
    /// Publishes a draft and its compiled form, unless they equal the published ones.
    pub(super) fn publish(
        &mut self,
        states: &[Arc<ProviderState>],
        draft: &Draft,
        compiled: Compiled,
    ) {
        let before = Arc::clone(&self.state.borrow());
        self.note_what_serves(draft);
        let rejections = self.note_rejections(states, draft);
        let Compiled {
            snapshot,
            problems: found,
            changes,
        } = compiled;
        let changed = !draft.rejected && snapshot.revision() != before.snapshot.revision();
        let snapshot = if changed {
            Arc::new(snapshot)
        } else {
            Arc::clone(&before.snapshot)
        };
        let waiting_for: Vec<_> = self
            .sources
            .iter()
            .filter(|source| source.required && source.serving.is_none())
            .map(|source| Arc::clone(&source.preparation.provider))
            .collect();
        let state = MergedState {
            since: if changed {
                Timestamp::now()
            } else {
                before.since
            },
            publications: before.publications + u64::from(changed),
            rejections: before.rejections + rejections,
            ready: before.ready || waiting_for.is_empty(),
            snapshot: Arc::clone(&snapshot),
            problems: self.problems(states, draft, &found),
            waiting_for,
            contributions: self.contributions(draft, &before),
            origins: self.origins(states, draft, &before),
        };
        log(&before, &state, changed.then_some(&changes));
        if changed {
            self.snapshots.send_replace(snapshot);
        }
        let notify = changed
            || state.problems != before.problems
            || state.rejections != before.rejections
            || state.ready != before.ready
            || state.waiting_for != before.waiting_for
            || state.contributions != before.contributions;
        self.state.send_if_modified(|shared| {
            *shared = Arc::new(state);
            notify
        });
    }

    /// Records what each provider serves from now on, and the providers whose newest configuration does not
    /// serve.
    fn note_what_serves(&mut self, draft: &Draft) {
        for (position, (source, part)) in self.sources.iter_mut().zip(&draft.parts).enumerate() {
            let rejected = source.newest.as_ref().is_some_and(|p| p.rejected)
                || draft.reverted.contains(&position);
            if rejected {
                source.rejected_since.get_or_insert_with(Timestamp::now);
            } else {
                source.rejected_since = None;
            }
            if !draft.rejected {
                source.serving.clone_from(&part.prepared);
                source.accept(position, &draft.left_out);
            }
        }
    }

    /// Returns how many configurations have come since the last time that cannot be used.
    fn note_rejections(&mut self, states: &[Arc<ProviderState>], draft: &Draft) -> u64 {
        let mut rejections = 0;
        let sources = self.sources.iter_mut().zip(states);
        for (position, (source, state)) in sources.enumerate() {
            let is_reverted = draft.reverted.contains(&position);
            rejections += u64::from(source.note_usable(state, is_reverted));
        }
        rejections
    }

    fn origins(
        &self,
        states: &[Arc<ProviderState>],
        draft: &Draft,
        before: &MergedState,
    ) -> Arc<Origins> {
        if draft.rejected {
            return Arc::clone(&before.origins);
        }
        let names = self
            .sources
            .iter()
            .map(|source| Arc::clone(&source.preparation.provider));
        Arc::new(Origins {
            providers: names.collect(),
            written: states.iter().map(|state| Written::of(state)).collect(),
            routes: draft.combined.route_owners.clone(),
            clusters: draft.combined.cluster_owners.clone(),
        })
    }

    fn contributions(&self, draft: &Draft, before: &MergedState) -> Vec<Contribution> {
        let mut counts = vec![(0, 0); self.sources.len()];
        if draft.rejected {
            for (count, old) in counts.iter_mut().zip(&before.contributions) {
                *count = (old.routes, old.clusters);
            }
        } else {
            for &owner in draft.combined.route_owners.values() {
                counts[owner].0 += 1;
            }
            for &owner in draft.combined.cluster_owners.values() {
                counts[owner].1 += 1;
            }
        }
        let contribution = |(source, (routes, clusters)): (&Source, (usize, usize))| Contribution {
            revision: source.serving.as_ref().map(|p| p.revision),
            rejected_since: source.rejected_since,
            routes,
            clusters,
        };
        self.sources.iter().zip(counts).map(contribution).collect()
    }

    /// Returns all problems, provider by provider.
    fn problems(
        &self,
        states: &[Arc<ProviderState>],
        draft: &Draft,
        found: &Problems,
    ) -> Vec<SourcedProblem> {
        let mut own: Vec<Vec<Problem>> = vec![Vec::new(); self.sources.len()];
        let mut nobodys = Vec::new();
        let written: Vec<Written> = states.iter().map(|state| Written::of(state)).collect();
        let places = states.iter().zip(&written);
        for ((source, (state, written)), own) in self.sources.iter().zip(places).zip(&mut own) {
            own.extend(state.problems.iter().cloned());
            let newest = source.newest.iter().filter(|p| !is_replaced(p, state));
            let placed = |problem: &Problem| written.place(problem.clone());
            add_new(own, newest.clone().flat_map(|p| &p.problems).map(placed));
            let kept = newest.flat_map(|p| p.kept.values());
            let mut kept: Vec<Problem> = kept.map(|kept| placed(&kept.problem)).collect();
            kept.sort_by(|a, b| a.pointer.cmp(&b.pointer));
            add_new(own, kept);
        }
        for (position, problem) in &draft.combined.clashes {
            own[*position].push(written[*position].place(problem.clone()));
        }
        let owner = |problem: &Problem| draft.combined.named(&problem.pointer).map(|n| n.owner());
        let found = found.iter().map(|problem| (owner(problem), problem));
        let drafted = draft
            .problems
            .iter()
            .map(|(owner, problem)| (*owner, problem));
        let mut by_owner: Vec<Vec<Problem>> = vec![Vec::new(); self.sources.len()];
        for (owner, problem) in drafted.chain(found) {
            match owner {
                Some(owner) => {
                    by_owner[owner].push(written[owner].place(problem.clone()));
                }
                None => nobodys.push(problem.clone()),
            }
        }
        for (own, problems) in own.iter_mut().zip(by_owner) {
            add_new(own, problems);
        }

        let sourced = |provider: Option<&Arc<str>>, problem| SourcedProblem {
            provider: provider.cloned(),
            problem,
        };
        let names = self.sources.iter().map(|s| &s.preparation.provider);
        let mut problems: Vec<_> = names
            .zip(own)
            .flat_map(|(name, own)| own.into_iter().map(move |p| sourced(Some(name), p)))
            .collect();
        problems.extend(nobodys.into_iter().map(|problem| sourced(None, problem)));
        // Each provider is limited already, but many together are not.
        problems.truncate(Problems::MAX);
        problems
    }
}

/// Returns true if the rejected configuration belongs to a text that no longer exists, because the current
/// text cannot be read at all.
fn is_replaced(newest: &Prepared, state: &ProviderState) -> bool {
    newest.rejected && state.status.state == SourceState::Failing && state.problems.has_errors()
}

/// Adds the problems that are not known yet. A runner checks its services with the same rules, so a problem
/// of a service is the same as that of its route or cluster here.
fn add_new(known: &mut Vec<Problem>, problems: impl IntoIterator<Item = Problem>) {
    type Key = (String, String, String);
    let key = |problem: &Problem| -> Key {
        let place = below_service(&problem.pointer).to_owned();
        (problem.code.to_string(), problem.message.clone(), place)
    };
    let mut seen: HashSet<Key> = known.iter().map(key).collect();
    known.extend(
        problems
            .into_iter()
            .filter(|problem| seen.insert(key(problem))),
    );
}

/// Returns the part of a pointer below the service that it names: `/Routes/r` for
/// `/Services/orders/Routes/r`.
fn below_service(pointer: &str) -> &str {
    let Some(service) = pointer.strip_prefix("/Services/") else {
        return pointer;
    };
    service.find('/').map_or("", |at| &service[at..])
}

fn log(before: &MergedState, state: &MergedState, changes: Option<&Summary>) {
    if let Some(changes) = changes {
        tracing::info!(
            target: "discovery::merge",
            revision = %state.snapshot.revision(),
            publication = state.publications,
            %changes,
            "configuration published",
        );
    }
    if state.ready && !before.ready {
        tracing::info!(target: "discovery::merge", "every required provider has a configuration");
    }
    let known: HashSet<_> = before.problems.iter().collect();
    let new = state.problems.iter().filter(|p| !known.contains(p));
    let mut count = 0;
    for problem in new {
        count += 1;
        if count <= MOST_LOGGED {
            tracing::warn!(target: "discovery::merge", "{problem}");
        }
    }
    if count > MOST_LOGGED {
        let more = count - MOST_LOGGED;
        tracing::warn!(target: "discovery::merge", more, "more problems");
    }
}
