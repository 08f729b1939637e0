//! A configuration that is about to be published: combined, resolved, and accepted by the validators.

use std::collections::HashSet;
use std::sync::Arc;

use proxy_model::{Problem, Problems, Revision};
use tokio::time::Instant;

use super::accepted::Form;
use super::combine::{Combined, LeftOut, Named, Part, combine};
use super::driver::{MergeWorker, Source};
use crate::contain::{contained, off_the_runtime};
use crate::provider::Strictness;
use crate::validator::Candidate;

/// A configuration that is about to be published.
pub(super) struct Draft {
    pub(super) parts: Vec<Part>,
    pub(super) combined: Combined,
    /// Problems from resolvers and validators, with the position of the provider concerned.
    pub(super) problems: Vec<(Option<usize>, Problem)>,
    /// Providers whose newest configuration a validator rejected.
    pub(super) reverted: Vec<usize>,
    /// Other parts that validators rejected.
    pub(super) left_out: LeftOut,
    /// True if the draft is rejected as a whole.
    pub(super) rejected: bool,
    /// True if the rejection was not caused by the configuration, so that a retry may succeed.
    pub(super) retry: bool,
}

/// The result of the validators.
struct DraftValidation {
    problems: Problems,
    /// True if all validators responded.
    complete: bool,
}

impl MergeWorker {
    /// Combines the providers' configurations until validators and resolvers find no more errors in the
    /// rest.
    pub(super) async fn draft(&mut self) -> Option<Draft> {
        let mut left_out = LeftOut::default();
        let mut reverted = Vec::new();
        let mut problems = Vec::new();
        // Every turn but the last leaves something out, so the loop ends; a validator with a new objection
        // each time is stopped by the limit.
        for _ in 0..=self.options.max_objections {
            let mut combined = self.combine(&reverted, &left_out).await?;
            let unresolved = match &mut self.resolutions {
                Some(resolutions) => {
                    resolutions
                        .resolve(Arc::make_mut(&mut combined.config))
                        .await
                }
                None => Problems::new(),
            };
            let verdict = self.validate(&combined).await;
            let turn = (left_out.len(), reverted.len());
            let mut rejected = false;
            let mut objected = HashSet::new();
            for problem in &verdict.problems {
                let named = combined.named(&problem.pointer);
                let owner = named.as_ref().map(Named::owner);
                problems.push((owner, problem.clone()));
                if problem.severity == proxy_model::Severity::Warning {
                    continue;
                }
                match named {
                    None => rejected = true,
                    Some(named) if self.stands_as_a_whole(named.owner(), &reverted) => {
                        reverted.push(named.owner());
                    }
                    Some(named) => {
                        objected.insert(named);
                    }
                }
            }
            let parts = self.parts(&reverted);
            for named in objected {
                // What serves goes on serving, unless the objection is to just that.
                let part = &parts[named.owner()];
                match part.has_older(&named) {
                    true => left_out.object(named.clone(), part.has_older_settings(&named)),
                    false => left_out.insert(named),
                }
            }
            if rejected || turn == (left_out.len(), reverted.len()) {
                let owner = |problem: &Problem| combined.named(&problem.pointer).map(|n| n.owner());
                problems.extend(unresolved.into_iter().map(|p| (owner(&p), p)));
                problems.extend(self.held(&left_out));
                return Some(Draft {
                    parts,
                    combined,
                    problems,
                    reverted,
                    left_out,
                    rejected,
                    retry: !verdict.complete,
                });
            }
        }
        let message = "the validators object to something else each time; the previous configuration continues to serve";
        problems.push((None, Problem::error("", "too_many_objections", message)));
        Some(Draft {
            parts: self.parts(&reverted),
            combined: Combined::default(),
            problems,
            reverted,
            left_out,
            rejected: true,
            retry: false,
        })
    }

    /// The problems that report items serving in an older form.
    fn held(&self, left_out: &LeftOut) -> Vec<(Option<usize>, Problem)> {
        let held = left_out.held.iter().filter(|(held, _)| match held {
            Named::Route(id, _) => !left_out.routes.contains(id),
            Named::Cluster(id, _) => !left_out.clusters.contains(id),
        });
        let told = |(named, form): (&Named, &Form)| -> Option<(Option<usize>, Problem)> {
            let accepted = self.sources[named.owner()].accepted.as_ref()?;
            let kept = accepted.kept(&named.item(), *form);
            Some((Some(named.owner()), kept.problem))
        };
        let mut told: Vec<_> = held.filter_map(told).collect();
        told.sort_by(|(_, a), (_, b)| a.pointer.cmp(&b.pointer));
        told
    }

    async fn combine(&self, reverted: &[usize], left_out: &LeftOut) -> Option<Combined> {
        let parts = self.parts(reverted);
        let left_out = left_out.clone();
        off_the_runtime(move || combine(&parts, &left_out)).await
    }

    /// Returns true if an objection to a part of the provider's configuration reverts the whole of it to
    /// what served before.
    fn stands_as_a_whole(&self, provider: usize, reverted: &[usize]) -> bool {
        self.sources[provider].preparation.strictness == Strictness::AllOrNothing
            && !reverted.contains(&provider)
    }

    /// The part of each provider: its newest configuration, or the one that serves if that cannot be used.
    fn parts(&self, reverted: &[usize]) -> Vec<Part> {
        let part = |(position, source): (usize, &Source)| {
            let newest = source.newest.as_ref();
            let usable = newest.filter(|p| !p.rejected && !reverted.contains(&position));
            Part {
                provider: Arc::clone(&source.preparation.provider),
                prepared: usable.or(source.serving.as_ref()).cloned(),
                accepted: source.accepted.clone(),
            }
        };
        self.sources.iter().enumerate().map(part).collect()
    }

    /// Returns the problems that the validators report. They are called once for the same configuration.
    async fn validate(&mut self, combined: &Combined) -> DraftValidation {
        let mut verdict = DraftValidation {
            problems: Problems::new(),
            complete: true,
        };
        if self.validators.is_empty() {
            return verdict;
        }
        let revision = Revision::of(&combined.config);
        if let Some((judged, problems)) = &self.judged
            && *judged == revision
        {
            verdict.problems = problems.clone();
            return verdict;
        }
        let deadline = Instant::now() + self.options.validate_timeout;
        for validator in &self.validators {
            let candidate = Candidate::merged(&combined.config);
            let answer = contained(validator.validate(&candidate));
            let problem = match tokio::time::timeout_at(deadline, answer).await {
                Ok(Ok(found)) => {
                    verdict.problems.append(found);
                    continue;
                }
                Ok(Err(broken)) => {
                    Problem::error("", "validator_failed", format!("a validator {broken}"))
                }
                Err(_) => {
                    let message = "the validators did not answer in time";
                    Problem::error("", "validator_timed_out", message)
                }
            };
            verdict.complete = false;
            verdict.problems.push(problem);
        }
        self.judged = verdict
            .complete
            .then(|| (revision, verdict.problems.clone()));
        verdict
    }
}
