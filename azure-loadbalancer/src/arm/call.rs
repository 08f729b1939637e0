//! Calls and their retries.

use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, IF_MATCH, IF_NONE_MATCH};
use http::{HeaderName, HeaderValue, Method, Request};
use tokio::time::{Instant, sleep, timeout};
use url::Url;

use super::answer::Answer;
use super::call_log::{CallClass, CallRecord};
use super::client::{ArmClient, Inner};
use super::error::{ArmError, ArmErrorKind};
use crate::progress::{SILENCE, logged_while_silent};
use crate::text::with_causes;

/// The precondition of a write.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Precondition<'a> {
    /// No precondition.
    #[default]
    None,
    /// The resource has this etag (`If-Match`).
    Matches(&'a str),
    /// The resource does not exist yet (`If-None-Match: *`).
    IsNew,
}

#[derive(Clone, Debug)]
pub(super) struct ArmCall<'a> {
    pub(super) method: Method,
    pub(super) class: CallClass,
    pub(super) url: Url,
    /// The name of the call in errors.
    pub(super) name: String,
    pub(super) body: Bytes,
    pub(super) precondition: Precondition<'a>,
}

const CLIENT_REQUEST_ID: HeaderName = HeaderName::from_static("x-ms-client-request-id");

impl ArmClient {
    /// Sends a call until it succeeds, or further retries are pointless.
    pub(super) async fn send(&self, call: &ArmCall<'_>) -> Result<Answer, ArmError> {
        let inner = &*self.inner;
        let policy = &inner.options.retry;
        let mut tries = 0;
        let mut has_new_token = false;
        loop {
            let closed = inner.gates.wait(call.class);
            if closed > policy.longest {
                let message = "the resource manager throttles calls";
                return Err(ArmError::new(ArmErrorKind::Throttled, &call.name, message)
                    .with_retry_after(Some(closed)));
            }
            inner.gates.pass(call.class).await;
            tries += 1;
            let token = match inner.token(call).await {
                Ok(token) => token,
                // The metadata service of a machine that has just started has no token yet, for example.
                Err(error) if error.is_retriable() && tries < policy.tries => {
                    let (of, wait) = (policy.tries, policy.wait(tries));
                    tracing::warn!(%error, tries, of, ?wait, "requesting a new token");
                    sleep(wait).await;
                    continue;
                }
                Err(error) => return Err(error),
            };
            let error = match inner.once(call, token.as_ref(), tries > 1).await {
                Ok(answer) if answer.status.is_success() => return Ok(answer),
                Ok(answer) => answer.error(&call.name),
                Err(error) => error,
            };
            let wait = match error.kind() {
                // The token may have been revoked early.
                ArmErrorKind::Unauthenticated if !has_new_token && token.is_some() => {
                    has_new_token = true;
                    if let (Some(tokens), Some(token)) = (&inner.tokens, &token) {
                        tokens.forget(token).await;
                    }
                    continue;
                }
                ArmErrorKind::Throttled => {
                    let wait = error.retry_after().unwrap_or_else(|| policy.wait(tries));
                    inner.gates.close(call.class, wait);
                    if wait >= SILENCE && tries < policy.tries {
                        tracing::warn!(%error, ?wait, "too many calls: there is none of this kind for a while");
                    }
                    // The gate imposes the wait.
                    Duration::ZERO
                }
                ArmErrorKind::Unreachable | ArmErrorKind::TimedOut | ArmErrorKind::Server => error
                    .retry_after()
                    .map_or_else(|| policy.wait(tries), |asked| asked.min(policy.longest)),
                ArmErrorKind::Token
                | ArmErrorKind::Unauthenticated
                | ArmErrorKind::Forbidden
                | ArmErrorKind::NotFound
                | ArmErrorKind::Conflict
                | ArmErrorKind::PreconditionFailed
                | ArmErrorKind::Rejected
                | ArmErrorKind::Operation
                | ArmErrorKind::Malformed => return Err(error),
            };
            if tries >= policy.tries {
                return Err(error);
            }
            let of = policy.tries;
            tracing::warn!(%error, tries, of, ?wait, "a call is retried");
            sleep(wait).await;
        }
    }
}

impl Inner {
    /// Returns the `Authorization` of a call, if there is a source of tokens.
    async fn token(&self, call: &ArmCall<'_>) -> Result<Option<HeaderValue>, ArmError> {
        let Some(tokens) = &self.tokens else {
            return Ok(None);
        };
        let failed = |error| {
            ArmError::new(ArmErrorKind::Token, &call.name, "there is no token").with_source(error)
        };
        tokens.header().await.map(Some).map_err(failed)
    }

    async fn once(
        &self,
        call: &ArmCall<'_>,
        token: Option<&HeaderValue>,
        is_retry: bool,
    ) -> Result<Answer, ArmError> {
        let request = request(call, token)?;
        let started = Instant::now();
        let limit = self.options.call_timeout;
        let sent = timeout(limit, self.transport.send(request, self.options.max_body));
        let sent = logged_while_silent(&call.name, sent).await;
        let result = match sent {
            Ok(Ok(response)) => Ok(Answer::new(response)),
            Ok(Err(error)) => {
                let origin = call.url.origin().ascii_serialization();
                // Programs print this text alone, and the reason is what an operator needs first.
                let message = format!("no answer from {origin}: {}", with_causes(&error));
                Err(ArmError::new(
                    ArmErrorKind::Unreachable,
                    &call.name,
                    message,
                ))
            }
            Err(_) => {
                let origin = call.url.origin().ascii_serialization();
                let message = format!("no answer from {origin} within {limit:?}");
                Err(ArmError::new(ArmErrorKind::TimedOut, &call.name, message))
            }
        };
        let record = CallRecord {
            method: call.method.as_str().to_owned(),
            path: call.url.path().to_owned(),
            class: call.class,
            status: result.as_ref().ok().map(|answer| answer.status.as_u16()),
            took: started.elapsed(),
            request_id: result.as_ref().ok().and_then(Answer::request_id),
        };
        self.log.add(record, is_retry);
        result
    }

    /// Checks that a URL from the resource manager is its own: a token must not go elsewhere.
    pub(super) fn same_origin(&self, call: &str, address: &str) -> Result<Url, ArmError> {
        let malformed = |message: String| ArmError::new(ArmErrorKind::Malformed, call, message);
        let url = self.endpoint.join(address).map_err(|error| {
            malformed("the response refers to an invalid address".to_owned()).with_source(error)
        })?;
        if url.origin() == self.endpoint.origin() {
            return Ok(url);
        }
        let host = url.host_str().unwrap_or_default();
        Err(malformed(format!(
            "the answer leads to another host, {host:?}, which gets no token"
        )))
    }
}

fn request(call: &ArmCall<'_>, token: Option<&HeaderValue>) -> Result<Request<Bytes>, ArmError> {
    let wrong = |error: http::Error| {
        ArmError::new(
            ArmErrorKind::Rejected,
            &call.name,
            "the request cannot be written",
        )
        .with_source(error)
    };
    let mut builder = Request::builder()
        .method(call.method.clone())
        .uri(call.url.as_str())
        .header(ACCEPT, "application/json")
        .header(CLIENT_REQUEST_ID, request_id());
    if let Some(token) = token {
        builder = builder.header(AUTHORIZATION, token);
    }
    if !call.body.is_empty() {
        builder = builder.header(CONTENT_TYPE, "application/json");
    }
    builder = match call.precondition {
        Precondition::None => builder,
        Precondition::Matches(etag) => builder.header(IF_MATCH, etag),
        Precondition::IsNew => builder.header(IF_NONE_MATCH, "*"),
    };
    builder.body(call.body.clone()).map_err(wrong)
}

/// Returns an id that identifies a request in Azure's logs: a UUID of version 4 (RFC 9562).
fn request_id() -> String {
    let bits = fastrand::u128(..);
    let versioned = bits & !(0xf << 76) & !(0x3 << 62) | (0x4 << 76) | (0x2 << 62);
    let hex = format!("{versioned:032x}");
    let part = |range| hex.get(range).unwrap_or_default();
    format!(
        "{}-{}-{}-{}-{}",
        part(0..8),
        part(8..12),
        part(12..16),
        part(16..20),
        part(20..32)
    )
}
