//! The policies of a route, one after the other.

use std::sync::Arc;

use proxy_model::compiled::Route;
use proxy_runtime::ConnectionInfo;
use proxy_runtime::filter::RequestEdit;
use proxy_runtime::policy::{Decide, PolicyDecision, PolicyPreview, RoutePolicies};
use tokio::time::Instant;

use crate::authorization::Claims;
use crate::named::{Named, Step, Visit};

/// The policies of a route, in the order in which a request meets them.
#[derive(Clone, Debug)]
pub(crate) struct Guards(pub(crate) Arc<[Arc<Named>]>);

impl RoutePolicies for Guards {
    fn judge(
        &self,
        head: &mut RequestEdit<'_>,
        route: &Route,
        connection: ConnectionInfo,
    ) -> PolicyDecision {
        self.judge_from(0, head, (route, connection), None)
    }

    fn preview(
        &self,
        head: &mut RequestEdit<'_>,
        route: &Route,
        connection: ConnectionInfo,
    ) -> PolicyPreview {
        let mut known = PolicyPreview::default();
        let mut claims = None;
        for policy in self.0.iter() {
            let described = || format!("{} {}", policy.kind.route_key(), policy.name);
            let limit = policy.limit();
            known
                .rules
                .extend(limit.map(|limit| format!("{}: {limit}", described())));
            let mut visit = Visit {
                route,
                connection,
                now: Instant::now(),
                claims: claims.take(),
            };
            match policy.preview(head, &mut visit) {
                Some(Step::Pass(_)) => {}
                Some(Step::Answer(answer)) => {
                    known.reply = Some((described(), answer.into_reply()));
                    break;
                }
                Some(Step::Wait(_)) | None => known.undecided.push(described()),
            }
            claims = visit.claims;
        }
        known
    }
}

impl Guards {
    /// Asks the policies from `first` on.
    fn judge_from(
        &self,
        first: usize,
        head: &mut RequestEdit<'_>,
        (route, connection): (&Route, ConnectionInfo),
        mut claims: Option<Arc<Claims>>,
    ) -> PolicyDecision {
        for (position, policy) in self.0.iter().enumerate().skip(first) {
            let mut visit = Visit {
                route,
                connection,
                now: Instant::now(),
                claims: claims.take(),
            };
            let step = policy.check(head, &mut visit);
            claims = visit.claims;
            match step {
                Step::Pass(None) => {}
                Step::Pass(Some(permit)) => head.hold(permit),
                Step::Answer(answer) => return PolicyDecision::Respond(answer.into_reply()),
                Step::Wait(pending) => {
                    let guards = self.clone();
                    return PolicyDecision::Wait(Box::pin(async move {
                        let ended = pending.wait().await;
                        let decide = move |head: &mut RequestEdit<'_>, route: &Route| {
                            let mut visit = Visit {
                                route,
                                connection,
                                now: Instant::now(),
                                claims,
                            };
                            let step = guards.0[position].end(ended, head, &mut visit);
                            guards.go_on(position, step, head, visit)
                        };
                        Box::new(decide) as Decide
                    }));
                }
            }
        }
        PolicyDecision::Pass
    }

    /// Goes on after the wait of a policy.
    fn go_on(
        &self,
        position: usize,
        step: Step,
        head: &mut RequestEdit<'_>,
        visit: Visit<'_>,
    ) -> PolicyDecision {
        match step {
            Step::Answer(answer) => return PolicyDecision::Respond(answer.into_reply()),
            // No policy waits twice.
            Step::Wait(_) => return PolicyDecision::Respond(crate::named::closed().into_reply()),
            Step::Pass(None) => {}
            Step::Pass(Some(permit)) => head.hold(permit),
        }
        let of_request = (visit.route, visit.connection);
        self.judge_from(position + 1, head, of_request, visit.claims)
    }
}
