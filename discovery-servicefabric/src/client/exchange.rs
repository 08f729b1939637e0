//! One request, with its attempts.

use std::time::Duration;

use serde::de::DeserializeOwned;
use tokio::time::{Instant, sleep, timeout};

use super::Shared;
use super::TransportErrorKind;
use super::answer::{GatewayResponse, check_response, decode};
use super::endpoint::GatewayEndpoint;
use super::hint;
use super::request::Call;
use super::retry::{Attempts, Failure, Step};
use super::token::BearerToken;
use super::transport::kind_of_call;
use crate::calls::{CallError, CallErrorKind};

/// The time limit of a gateway's first attempt, while no gateway is known to work and there are others to
/// try. A hanging gateway must not delay the start; a slow one gets its full time after all others were
/// tried.
const FIRST_TRY: Duration = Duration::from_secs(5);

impl Shared {
    /// Makes a call and reads the response.
    pub(super) async fn read<T: DeserializeOwned>(
        &self,
        call: &Call,
        deadline: Instant,
    ) -> Result<T, CallError> {
        let answer = self.exchange(call, deadline).await?;
        decode(call, &answer)
    }

    /// Makes a call with retries, until it succeeds or cannot succeed in time. Adds an explanation to an
    /// error where one is known.
    pub(super) async fn exchange(
        &self,
        call: &Call,
        deadline: Instant,
    ) -> Result<GatewayResponse, CallError> {
        match self.attempts(call, deadline).await {
            Ok(answer) => Ok(answer),
            // The call that explains is anonymous itself. Boxed, since the one calls the other.
            Err((error, token)) if !call.anonymous => {
                let explained = self.explained(error, token.as_ref(), deadline);
                Err(Box::pin(explained).await)
            }
            Err((error, _)) => Err(error),
        }
    }

    /// An error comes with the token that was sent last.
    async fn attempts(
        &self,
        call: &Call,
        deadline: Instant,
    ) -> Result<GatewayResponse, (CallError, Option<BearerToken>)> {
        let mut attempts = Attempts::new(&self.options, self.endpoints.len());
        let mut rejected = None;
        let first = self.token(call, None, deadline).await;
        let mut token = first.map_err(|error| (error, None))?;
        let start = self.endpoints.current();
        let mut place = start;
        let mut tried = 0;
        loop {
            let endpoint = self.endpoints.at(place);
            let is_first = self.endpoints.are_untried() && tried < self.endpoints.len();
            let limit = if is_first { FIRST_TRY } else { Duration::MAX };
            tried += 1;
            let asked = self.attempt(call, endpoint, token.as_ref(), deadline, limit);
            let failure = match asked.await {
                Ok(answer) => {
                    self.endpoints.have_answered();
                    if place != start {
                        self.endpoints.stay(place);
                    }
                    return Ok(answer);
                }
                Err(failure) => failure,
            };
            tracing::debug!(target: "discovery::servicefabric", endpoint = endpoint.base(), error = %failure.error, "a call failed");
            if failure.error.status() == Some(401) && rejected.is_none() && token.is_some() {
                rejected = token;
                let another = self.token(call, rejected.as_ref(), deadline).await;
                token = another.map_err(|error| (error, rejected.clone()))?;
                if token != rejected {
                    continue;
                }
            }
            let step = attempts.after(&failure, call.safety, fastrand::f64());
            let elsewhere = match step {
                Step::GiveUp => return Err((failure.error, token)),
                Step::Elsewhere => true,
                Step::Retry { elsewhere, .. } => elsewhere,
            };
            if elsewhere {
                // Other calls need not detect the failure themselves. A response tells nothing about
                // theirs.
                if failure.error.status().is_none()
                    || failure.error.kind() == CallErrorKind::Unreachable
                {
                    self.endpoints.leave(place);
                }
                place = self.endpoints.after(place);
            }
            if let Step::Retry { wait, .. } = step {
                if Instant::now() + wait >= deadline {
                    return Err((failure.error, token));
                }
                sleep(wait).await;
            }
        }
    }

    /// Makes one attempt at one gateway.
    async fn attempt(
        &self,
        call: &Call,
        endpoint: &GatewayEndpoint,
        token: Option<&BearerToken>,
        deadline: Instant,
        limit: Duration,
    ) -> Result<GatewayResponse, Failure> {
        let left = deadline.saturating_duration_since(Instant::now());
        let theirs = left
            .saturating_sub(self.options.grace)
            .clamp(Duration::from_secs(1), self.options.server_timeout);
        let ours = (theirs + self.options.grace).min(left).min(limit);
        let request = call
            .request(endpoint, theirs, token)
            .map_err(|error| Failure {
                error,
                transport: None,
            })?;
        let base = endpoint.base();
        let sent = self.transport.send(request, self.options.max_answer);
        let response = match timeout(ours, sent).await {
            Ok(Ok(response)) => response,
            Ok(Err(error)) => {
                let kind = error.kind();
                let mut wrong = call.error(kind_of_call(kind), format!("{base}: {error}"));
                if let Some(hint) = hint::of_transport(kind, endpoint.is_secure()) {
                    wrong = wrong.with_hint(hint);
                }
                // The text of the error itself is in the message already.
                if let Some(source) = error.into_source() {
                    wrong = wrong.with_source(source);
                }
                return Err(Failure {
                    error: wrong,
                    transport: Some(kind),
                });
            }
            Err(_) => {
                let message = format!("{base}: no answer within {ours:.1?}");
                return Err(Failure {
                    error: call.error(CallErrorKind::TimedOut, message),
                    transport: Some(TransportErrorKind::TimedOut),
                });
            }
        };
        if response.body().len() > self.options.max_answer {
            let message = format!(
                "{base}: the answer is larger than {} bytes",
                self.options.max_answer
            );
            return Err(Failure {
                error: call.error(CallErrorKind::Malformed, message),
                transport: Some(TransportErrorKind::TooLarge),
            });
        }
        check_response(call, endpoint.is_secure(), token, response).map_err(|error| Failure {
            error,
            transport: None,
        })
    }

    /// The token to send, if any is sent.
    async fn token(
        &self,
        call: &Call,
        rejected: Option<&BearerToken>,
        deadline: Instant,
    ) -> Result<Option<BearerToken>, CallError> {
        let Some(source) = self.tokens.as_ref().filter(|_| !call.anonymous) else {
            return Ok(None);
        };
        match tokio::time::timeout_at(deadline, source.token(rejected)).await {
            Ok(Ok(token)) => Ok(Some(token)),
            Ok(Err(error)) => Err(call
                .error(CallErrorKind::Denied, "there is no token to send")
                .with_source(error)),
            Err(_) => Err(call.error(CallErrorKind::Denied, "no token was received in time")),
        }
    }
}
