//! Asking the validators about services, each on its own.

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
/// The validators of a round stop after so many times the limit of one service, so that a source with many services
/// whose validators hang is still asked.
const ROUND_LIMITS: u32 = 4;

/// A service that the validators are asked about.
pub(super) struct Question {
    pub(super) service: Arc<str>,
    pub(super) fragment: Arc<ProxyConfig>,
}

/// What the validators say about a service.
#[derive(Debug, Default)]
pub(super) struct Verdict {
    pub(super) problems: Problems,
    /// Whether all of them answered, or one answered that it objects.
    pub(super) answered: bool,
}

/// A service that could not be validated comes the earlier the longer its validators have not been tried.
const NEVER_REACHED: u64 = 0;
const NEW: u64 = 1;

/// Asks validators.
pub(super) struct Validation {
    source: Arc<str>,
    validators: Arc<[Arc<dyn ConfigValidator>]>,
    limit: Duration,
    /// Services that could not be validated: the round that tried last, or [`NEVER_REACHED`].
    tried: HashMap<Arc<str>, u64>,
    round: u64,
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
            tried: HashMap::new(),
            round: NEW,
        }
    }

    /// The verdicts of a round, in the order of the questions. A service whose validators hang costs itself its
    /// verdict, and no other service.
    pub(super) async fn round(&mut self, questions: Vec<Question>) -> Vec<Verdict> {
        self.ask(questions, self.limit.saturating_mul(ROUND_LIMITS))
            .await
    }

    /// The verdicts on last good rules with current destinations. Whose turn it is in the next round stays as it was.
    pub(super) async fn fallbacks(&mut self, questions: Vec<Question>) -> Vec<Verdict> {
        let tried = self.tried.clone();
        let verdicts = self.ask(questions, self.limit).await;
        self.tried = tried;
        verdicts
    }

    /// The verdicts on what was kept, which nothing should have to wait for.
    pub(super) async fn kept(&mut self, questions: Vec<Question>) -> Vec<Verdict> {
        let verdicts = self.ask(questions, self.limit).await;
        self.tried.clear();
        verdicts
    }

    async fn ask(&mut self, questions: Vec<Question>, limit: Duration) -> Vec<Verdict> {
        if self.validators.is_empty() {
            let content = || Verdict {
                problems: Problems::new(),
                answered: true,
            };
            return questions.iter().map(|_| content()).collect();
        }
        let mut order: Vec<usize> = (0..questions.len()).collect();
        order.sort_by_key(|&position| {
            let tried = self.tried.get(&questions[position].service);
            tried.copied().unwrap_or(NEW)
        });
        let before = std::mem::take(&mut self.tried);
        self.round += 1;

        let deadline = Instant::now() + limit;
        let mut verdicts: Vec<Option<Verdict>> = questions.iter().map(|_| None).collect();
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
            // Panics are contained inside, and nobody aborts the tasks.
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
        let answer = |(verdict, question): (Option<Verdict>, Question)| {
            let (tried, verdict) = match verdict {
                Some(verdict) if verdict.answered => return verdict,
                Some(verdict) => (self.round, verdict),
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
    /// The round ended before the service's turn came.
    fn missing() -> Self {
        let message =
            "there was no time to validate the service; it comes earlier in the next round";
        Self {
            problems: Problem::error("", "validator_timed_out", message).into(),
            answered: false,
        }
    }
}
