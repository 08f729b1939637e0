//! Compiled policies by name.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use discovery_http::Transport;
use proxy_model::compiled::Route;
use proxy_model::config::{PolicyConfig, PolicyKind};
use proxy_model::{Problem, pointer_to};
use proxy_runtime::policy::{FailingPolicy, PolicyCount};
use proxy_runtime::{Cause, ConnectionInfo};
use serde_json::Value;
use tokio::time::Instant;

use crate::authorization::{Authorization, Claims, Judged, Judging};
use crate::cors::Cors;
use crate::head::{Answer, Head};
use crate::limiter::{self, Permit, Permitted, Queued, RateLimiter, Standing};

/// The request that policies judge.
pub(crate) struct Visit<'a> {
    pub(crate) route: &'a Route,
    pub(crate) connection: ConnectionInfo,
    pub(crate) now: Instant,
    /// The claims of an authorization policy.
    pub(crate) claims: Option<Arc<Claims>>,
}

impl Visit<'_> {
    /// The value of a claim.
    pub(crate) fn claim(&self, name: &str) -> Option<&str> {
        let claims = self.claims.as_ref()?;
        let exact = claims.get(name);
        // Claims of `ForwardAuth` are names of headers.
        let found = exact.or_else(|| {
            let mut others = claims.iter();
            let other = others.find(|(known, _)| known.eq_ignore_ascii_case(name));
            other.map(|(_, value)| value)
        });
        found.map(String::as_str)
    }
}

/// A policy with its state.
pub(crate) struct Named {
    pub(crate) kind: PolicyKind,
    pub(crate) name: Arc<str>,
    settings: Value,
    rule: Rule,
    counts: [AtomicU64; OUTCOMES.len()],
}

enum Rule {
    Cors(Cors),
    Authorization(Authorization),
    RateLimiter(RateLimiter),
}

/// The decision of a policy, for metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PolicyOutcome {
    Admitted,
    Preflight,
    Denied,
    Unauthenticated,
    Unavailable,
    Limited,
}

const OUTCOMES: [(PolicyOutcome, &str); 6] = [
    (PolicyOutcome::Admitted, "admitted"),
    (PolicyOutcome::Preflight, "preflight"),
    (PolicyOutcome::Denied, "denied"),
    (PolicyOutcome::Unauthenticated, "unauthenticated"),
    (PolicyOutcome::Unavailable, "unavailable"),
    (PolicyOutcome::Limited, "limited"),
];

/// The next step of a request.
pub(crate) enum Step {
    /// The next policy. A permit is held until the response has ended.
    Pass(Option<Permit>),
    Answer(Answer),
    /// A wait.
    Wait(Pending),
}

/// A decision that takes time.
pub(crate) enum Pending {
    Queued(Queued),
    #[cfg(feature = "redis")]
    Asking(limiter::SharedAsk),
    Judging(Box<Judging>),
}

impl Named {
    /// Compiles a policy.
    ///
    /// # Errors
    ///
    /// The settings are none that [`read`](crate::read) gives.
    pub(crate) fn new(
        config: &PolicyConfig,
        transport: Option<&Arc<dyn Transport>>,
    ) -> Result<Self, Problem> {
        let (name, settings) = (&config.name, &config.settings);
        let rule = match config.kind {
            PolicyKind::Cors => rule(settings, |config| Ok(Rule::Cors(Cors::new(&config)))),
            PolicyKind::Authorization => rule(settings, |config| {
                Authorization::new(name, &config, transport).map(Rule::Authorization)
            }),
            PolicyKind::RateLimiter => rule(settings, |limits| {
                RateLimiter::new(name, &limits).map(Rule::RateLimiter)
            }),
            PolicyKind::Timeout => Err("a timeout is honoured by the model".to_owned()),
        };
        let rule = rule.map_err(|reason| {
            let section = pointer_to(&format!("/{}", crate::SECTION), config.kind.section());
            let pointer = pointer_to(&section, &config.name);
            let message = format!("the policy cannot be used: {reason}");
            Problem::error(pointer, "invalid_policy", message)
                .with_suggestion("read policies with `proxy_policies::read`")
        })?;
        Ok(Self {
            kind: config.kind,
            name: Arc::clone(&config.name),
            settings: settings.clone(),
            rule,
            counts: Default::default(),
        })
    }

    /// The CORS policy that permits nothing.
    pub(crate) fn no_cors() -> Self {
        Self {
            kind: PolicyKind::Cors,
            name: Arc::from(proxy_model::compiled::ChosenPolicy::DISABLE),
            settings: Value::Null,
            rule: Rule::Cors(Cors::default()),
            counts: Default::default(),
        }
    }

    /// Returns true if this is what `config` compiles to.
    pub(crate) fn is(&self, config: &PolicyConfig) -> bool {
        self.kind == config.kind && self.name == config.name && self.settings == config.settings
    }

    /// Judges a request.
    pub(crate) fn check(&self, head: &mut impl Head, visit: &mut Visit<'_>) -> Step {
        match &self.rule {
            Rule::Cors(cors) => {
                let step = preflight(cors, head);
                if let Step::Answer(answer) = &step {
                    self.count(match answer.has("access-control-allow-origin") {
                        true => PolicyOutcome::Preflight,
                        false => PolicyOutcome::Denied,
                    });
                }
                step
            }
            Rule::Authorization(authorization) => match authorization.check(head, visit) {
                Ok(judging) => Step::Wait(Pending::Judging(Box::new(judging))),
                Err(judged) => {
                    self.count(judged.outcome());
                    self.judged(judged, head, visit)
                }
            },
            Rule::RateLimiter(limiter) => match limiter.check(head, visit) {
                limiter::Outcome::Pass(permit) => {
                    self.count(PolicyOutcome::Admitted);
                    Step::Pass(permit)
                }
                limiter::Outcome::Wait(queued) => Step::Wait(Pending::Queued(queued)),
                #[cfg(feature = "redis")]
                limiter::Outcome::Ask(asking) => Step::Wait(Pending::Asking(asking)),
                limiter::Outcome::Reject(answer) => {
                    self.count(PolicyOutcome::Limited);
                    Step::Answer(answer)
                }
            },
        }
    }

    /// Judges a request without an effect on others. `None`: a service, a password or a count decides.
    pub(crate) fn preview(&self, head: &mut impl Head, visit: &mut Visit<'_>) -> Option<Step> {
        match &self.rule {
            Rule::Cors(cors) => Some(preflight(cors, head)),
            Rule::Authorization(authorization) => {
                let judged = authorization.check(head, visit).err()?;
                Some(self.judged(judged, head, visit))
            }
            Rule::RateLimiter(_) => None,
        }
    }

    /// Ends a decision that took time. Must not wait again.
    pub(crate) fn end(&self, ended: Ended, head: &mut impl Head, visit: &mut Visit<'_>) -> Step {
        match (ended, &self.rule) {
            (Ended::Permitted(permitted), Rule::RateLimiter(limiter)) => {
                self.count(PolicyOutcome::Admitted);
                limiter.tell(permitted.standing, head);
                Step::Pass(permitted.permit)
            }
            (Ended::Displaced(standing), Rule::RateLimiter(limiter)) => {
                self.count(PolicyOutcome::Limited);
                Step::Answer(limiter.reject(standing, Cause::OverLimit))
            }
            #[cfg(feature = "redis")]
            (Ended::Asked(asked), Rule::RateLimiter(limiter)) => {
                match limiter.end(asked, head, visit) {
                    Ok(()) => {
                        self.count(PolicyOutcome::Admitted);
                        Step::Pass(None)
                    }
                    Err(answer) => {
                        self.count(PolicyOutcome::Limited);
                        Step::Answer(answer)
                    }
                }
            }
            #[cfg(feature = "redis")]
            (Ended::Asked(_), _) => Step::Answer(closed()),
            (Ended::Permitted(_) | Ended::Displaced(_), _) => Step::Answer(closed()),
            (Ended::Judged(judged), _) => {
                self.count(judged.outcome());
                self.judged(judged, head, visit)
            }
        }
    }

    fn judged(&self, judged: Judged, head: &mut impl Head, visit: &mut Visit<'_>) -> Step {
        match judged {
            Judged::Admitted(claims) => {
                if let (Some(claims), Rule::Authorization(authorization)) = (&claims, &self.rule) {
                    authorization.tell(claims, head);
                }
                visit.claims = claims;
                Step::Pass(None)
            }
            Judged::Told(claims, headers) => {
                for (name, value) in headers {
                    head.append(name, value);
                }
                visit.claims = Some(claims);
                Step::Pass(None)
            }
            Judged::Denied(answer)
            | Judged::Unauthenticated(answer)
            | Judged::Unavailable(answer) => Step::Answer(answer),
        }
    }

    fn count(&self, outcome: PolicyOutcome) {
        self.counts[outcome as usize].fetch_add(1, Ordering::Relaxed);
    }

    /// The service that the policy needs and that does not answer.
    pub(crate) fn failing(&self) -> Option<FailingPolicy> {
        let detail = match &self.rule {
            Rule::Authorization(authorization) => authorization.failing(),
            Rule::RateLimiter(limiter) => limiter.failing(),
            Rule::Cors(_) => None,
        };
        Some(FailingPolicy {
            kind: self.kind,
            name: Arc::clone(&self.name),
            detail: detail?,
        })
    }

    /// The limit with what is known of it at present, in words.
    pub(crate) fn limit(&self) -> Option<String> {
        let Rule::RateLimiter(limiter) = &self.rule else {
            return None;
        };
        Some(limiter.describe_now())
    }

    /// The numbers of decisions, without those that were never made.
    pub(crate) fn counts(&self) -> impl Iterator<Item = PolicyCount> {
        let counts = self.counts.iter().zip(OUTCOMES);
        let counts = counts.map(|(count, (_, outcome))| (count.load(Ordering::Relaxed), outcome));
        let made = counts.chain(self.alone()).filter(|(count, _)| *count > 0);
        made.map(|(count, outcome)| PolicyCount {
            kind: self.kind,
            name: Arc::clone(&self.name),
            outcome,
            count,
        })
    }
}

impl Named {
    /// The number of requests that this gateway decided about alone, although the limit is shared.
    fn alone(&self) -> Option<(u64, &'static str)> {
        #[cfg(feature = "redis")]
        if let Rule::RateLimiter(limiter) = &self.rule {
            return Some((limiter.alone(), "alone"));
        }
        None
    }
}

/// Answers a preflight request.
fn preflight(cors: &Cors, head: &mut impl Head) -> Step {
    match cors.check(head) {
        None => Step::Pass(None),
        Some(answer) => Step::Answer(answer),
    }
}

impl Judged {
    fn outcome(&self) -> PolicyOutcome {
        match self {
            Self::Admitted(_) | Self::Told(..) => PolicyOutcome::Admitted,
            Self::Denied(_) => PolicyOutcome::Denied,
            Self::Unauthenticated(_) => PolicyOutcome::Unauthenticated,
            Self::Unavailable(_) => PolicyOutcome::Unavailable,
        }
    }
}

/// The answer where a policy cannot decide: closed.
pub(crate) fn closed() -> Answer {
    Answer::new(http::StatusCode::INTERNAL_SERVER_ERROR).because(Cause::ExtensionFailed)
}

/// The end of a [`Pending`] decision.
pub(crate) enum Ended {
    Permitted(Permitted),
    /// A newer request got the place.
    Displaced(Standing),
    #[cfg(feature = "redis")]
    Asked(limiter::SharedAsked),
    Judged(Judged),
}

impl Pending {
    /// Waits for the decision.
    ///
    /// Cancel safe.
    pub(crate) async fn wait(self) -> Ended {
        match self {
            Self::Queued(queued) => match queued.wait().await {
                Ok(permitted) => Ended::Permitted(permitted),
                Err(standing) => Ended::Displaced(standing),
            },
            #[cfg(feature = "redis")]
            Self::Asking(asking) => Ended::Asked(asking.wait().await),
            Self::Judging(judging) => Ended::Judged(judging.wait().await),
        }
    }
}

fn rule<C: serde::de::DeserializeOwned>(
    settings: &Value,
    compile: impl FnOnce(C) -> Result<Rule, String>,
) -> Result<Rule, String> {
    serde_json::from_value(settings.clone())
        .map_err(|error| error.to_string())
        .and_then(compile)
}

impl fmt::Debug for Named {
    /// Leaves out the settings, which may hold secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Named")
            .field("kind", &self.kind)
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}
