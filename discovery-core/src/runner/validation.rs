//! The validation of services, each on its own.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use proxy_model::config::ProxyConfig;
use proxy_model::{Problem, Problems};
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout_at};

use crate::contain::contained;
use crate::validator::{Candidate, ConfigValidator};

/// Services whose validators run at the same time.
const CONCURRENCY: usize = 16;
/// The time limit of all validators of a cycle, as a multiple of the limit of one service, so that a source
/// with many services whose validators hang is still polled.
const CYCLE_LIMITS: u32 = 4;

/// A service to validate.
pub(super) struct Question {
    pub(super) service: Arc<str>,
    pub(super) fragment: Arc<ProxyConfig>,
}

/// The result of the validators for a service.
#[derive(Debug, Default)]
pub(super) struct Verdict {
    pub(super) problems: Problems,
    /// True if the result is final: each validator has returned, or one has rejected the service.
    pub(super) answered: bool,
}

/// The cycle number of a service whose validators have not run yet. Services are validated in the order of the
/// cycle that last tried them.
const NEVER_REACHED: u64 = 0;
const NEW: u64 = 1;

/// Calls the validators.
pub(super) struct Validation {
    source: Arc<str>,
    validators: Arc<[Arc<dyn ConfigValidator>]>,
    limit: Duration,
    /// The order of validation for services as described.
    said: Turns,
    /// The order of validation for last known good rules with current destinations.
    fallen_back: Turns,
}

/// The order of validation.
struct Turns {
    /// Services that could not be validated: the cycle that tried last, or [`NEVER_REACHED`].
    tried: HashMap<Arc<str>, u64>,
    cycle: u64,
}

impl Turns {
    fn new() -> Self {
        Self {
            tried: HashMap::new(),
            cycle: NEW,
        }
    }

    /// Returns the positions of the services in the order of their validation.
    fn order(&self, questions: &[Question]) -> Vec<usize> {
        let mut order: Vec<usize> = (0..questions.len()).collect();
        order.sort_by_key(|&position| {
            let tried = self.tried.get(&questions[position].service);
            tried.copied().unwrap_or(NEW)
        });
        order
    }

    /// Records the services that were reached. A verdict is `None` if a service was not reached.
    fn settle(&mut self, questions: Vec<Question>, verdicts: Vec<Option<Verdict>>) -> Vec<Verdict> {
        let before = std::mem::take(&mut self.tried);
        self.cycle += 1;
        let answer = |(verdict, question): (Option<Verdict>, Question)| {
            let (tried, verdict) = match verdict {
                Some(verdict) if verdict.answered => return verdict,
                Some(verdict) => (self.cycle, verdict),
                None => {
                    let tried = before.get(&question.service).copied();
                    (tried.unwrap_or(NEVER_REACHED), Verdict::missing())
                }
            };
            self.tried.insert(question.service, tried);
            verdict
        };
        verdicts.into_iter().zip(questions).map(answer).collect()
    }
}

impl Validation {
    pub(super) fn new(
        source: Arc<str>,
        validators: Vec<Arc<dyn ConfigValidator>>,
        limit: Duration,
    ) -> Self {
        Self {
            source,
            validators: validators.into(),
            limit,
            said: Turns::new(),
            fallen_back: Turns::new(),
        }
    }

    /// Returns true if the turn of a service has never come, so that the next cycle should not wait for its
    /// interval.
    pub(super) fn is_behind(&self) -> bool {
        let turns = [&self.said, &self.fallen_back].into_iter();
        let mut tried = turns.flat_map(|turns| turns.tried.values());
        tried.any(|&tried| tried == NEVER_REACHED)
    }

    /// Returns the verdicts of a cycle, in the order of the questions. A service whose validators hang
    /// loses only its own verdict.
    pub(super) async fn cycle(&mut self, questions: Vec<Question>) -> Vec<Verdict> {
        let order = self.said.order(&questions);
        let limit = self.limit.saturating_mul(CYCLE_LIMITS);
        let verdicts = self.ask(&questions, order, limit).await;
        self.said.settle(questions, verdicts)
    }

    /// Validates last known good rules with current destinations. They have a separate order: services with
    /// invalid descriptions are not validated otherwise in a cycle, and each of these must get its
    /// destinations.
    pub(super) async fn fallbacks(&mut self, questions: Vec<Question>) -> Vec<Verdict> {
        let order = self.fallen_back.order(&questions);
        let verdicts = self.ask(&questions, order, self.limit).await;
        self.fallen_back.settle(questions, verdicts)
    }

    /// Returns the verdicts on the kept services, for which no other service should have to wait.
    pub(super) async fn kept(&mut self, questions: Vec<Question>) -> Vec<Verdict> {
        let order = (0..questions.len()).collect();
        let verdicts = self.ask(&questions, order, self.limit).await;
        Turns::new().settle(questions, verdicts)
    }

    /// Validates the services at these positions, one after the other. A verdict is `None` if the time was
    /// over before.
    async fn ask(
        &self,
        questions: &[Question],
        order: Vec<usize>,
        limit: Duration,
    ) -> Vec<Option<Verdict>> {
        if self.validators.is_empty() {
            let content = |_: &Question| Verdict {
                problems: Problems::new(),
                answered: true,
            };
            return questions.iter().map(content).map(Some).collect();
        }
        let mut verdicts: Vec<Option<Verdict>> = questions.iter().map(|_| None).collect();
        let deadline = Instant::now() + limit;
        let mut waiting = order.into_iter();
        // What is under way when this is dropped is dropped with it.
        let mut running = JoinSet::new();
        while Instant::now() < deadline {
            while running.len() < CONCURRENCY
                && let Some(position) = waiting.next()
            {
                running.spawn(self.verdict(position, &questions[position], deadline));
            }
            let Some(ended) = running.join_next().await else {
                break;
            };
            // Panics are contained inside, and the tasks are never aborted.
            if let Ok((position, verdict)) = ended {
                verdicts[position] = Some(verdict);
            }
        }
        // These end at the deadline as well.
        while let Some(ended) = running.join_next().await {
            if let Ok((position, verdict)) = ended {
                verdicts[position] = Some(verdict);
            }
        }
        verdicts
    }

    fn verdict(
        &self,
        position: usize,
        question: &Question,
        latest: Instant,
    ) -> impl Future<Output = (usize, Verdict)> + Send + use<> {
        let validators = Arc::clone(&self.validators);
        let (source, service) = (Arc::clone(&self.source), Arc::clone(&question.service));
        let fragment = Arc::clone(&question.fragment);
        let deadline = (Instant::now() + self.limit).min(latest);
        async move {
            let mut verdict = Verdict {
                problems: Problems::new(),
                answered: true,
            };
            for validator in &*validators {
                let candidate = Candidate::service(&source, &service, &fragment);
                let answer = contained(async { validator.validate(&candidate).await });
                match timeout_at(deadline, answer).await {
                    Ok(Ok(problems)) => verdict.problems.append(problems),
                    Ok(Err(broken)) => {
                        let message = format!("a validator {broken}");
                        let problem = Problem::error("", "validator_failed", message);
                        verdict.problems.push(problem);
                        verdict.answered = false;
                    }
                    Err(_) => {
                        let message = "the service could not be validated in time";
                        let problem = Problem::error("", "validator_timed_out", message);
                        verdict.problems.push(problem);
                        verdict.answered = false;
                    }
                }
                if verdict.problems.has_errors() {
                    break;
                }
            }
            (position, verdict)
        }
    }
}

impl Verdict {
    /// Creates the verdict on a service that validators did not reach before the cycle ended.
    fn missing() -> Self {
        let message =
            "there was no time to validate the service; the next cycle validates it earlier";
        Self {
            problems: Problem::error("", "validator_timed_out", message).into(),
            answered: false,
        }
    }
}
