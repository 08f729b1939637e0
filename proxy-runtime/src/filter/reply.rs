//! The result of a filter for a request.

use std::fmt;

use bytes::Bytes;
use http::header::CONTENT_LENGTH;
use http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode};

use super::RequestEdit;
use super::work::Work;
use crate::BoxError;
use crate::error::Cause;
use crate::head::{ErrorBodies, ErrorPage, headers};

/// The decision of a filter about a request.
#[derive(Debug)]
#[must_use]
pub enum Flow {
    /// Continues with the next filter.
    Continue,
    /// Ends the request with this response.
    Respond(Reply),
    /// Continues when work has ended that takes time: [`Flow::wait`].
    Wait(RequestWork),
}

/// Work that a request waits for.
pub struct RequestWork(pub(crate) Work<RequestChange>);

/// The decision of a filter after its work.
pub(crate) type RequestChange = Box<dyn FnOnce(&mut RequestEdit<'_>) -> Flow + Send>;

impl Flow {
    /// Lets the request wait for `work`, such as a look-up of a token, and then for the decision of the function that
    /// it returns. Later filters are called after that.
    ///
    /// The route's `Timeout` includes the wait. After it the client gets 504, and 500 if `work` fails or panics, both
    /// with the error `Extension`. `work` is dropped if the client leaves. Another attempt to reach a destination does
    /// not repeat it.
    ///
    /// # Examples
    ///
    /// ```
    /// use proxy_runtime::filter::{Filter, FilterContext, Flow, RequestEdit};
    ///
    /// # async fn token_of(_: String) -> Result<String, std::io::Error> { Ok(String::new()) }
    /// /// Gives the destination a token in place of the client's key.
    /// struct Token;
    ///
    /// impl Filter for Token {
    ///     fn on_request(&self, head: &mut RequestEdit<'_>, _: &FilterContext<'_>) -> Flow {
    ///         let key = head.header("x-api-key").unwrap_or_default();
    ///         let key = String::from_utf8_lossy(key).into_owned();
    ///         Flow::wait(async move {
    ///             let token = token_of(key).await?;
    ///             Ok(move |head: &mut RequestEdit<'_>| {
    ///                 let _ = head.set("authorization", format!("Bearer {token}"));
    ///                 Flow::Continue
    ///             })
    ///         })
    ///     }
    /// }
    /// ```
    pub fn wait<C>(work: impl Future<Output = Result<C, BoxError>> + Send + 'static) -> Self
    where
        C: FnOnce(&mut RequestEdit<'_>) -> Self + Send + 'static,
    {
        let work = async move { work.await.map(|change| Box::new(change) as RequestChange) };
        Self::Wait(RequestWork(Box::pin(work)))
    }
}

impl fmt::Debug for RequestWork {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RequestWork").finish_non_exhaustive()
    }
}

impl From<Reply> for Flow {
    fn from(reply: Reply) -> Self {
        Self::Respond(reply)
    }
}

/// A response of a filter: a status, headers, and a short body.
#[derive(Clone, Debug)]
#[must_use]
pub struct Reply {
    status: StatusCode,
    headers: HeaderMap,
    body: Bytes,
    /// A sentence for people, in place of a body.
    detail: Option<&'static str>,
    /// The cause of an error, if it is another one than follows from the status.
    cause: Option<Cause>,
    /// True for the reply of a policy, which clients of gRPC get in their own words.
    is_of_policy: bool,
}

/// The [cause](Reply::because) of a reply, among the extensions of its response: layers have only that.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReplyCause(pub(crate) Cause);

impl Reply {
    /// A response without headers and body. A 1xx status, which is not final, is replaced by 500.
    pub fn new(status: StatusCode) -> Self {
        let status = if status.is_informational() {
            StatusCode::INTERNAL_SERVER_ERROR
        } else {
            status
        };
        Self {
            status,
            headers: HeaderMap::new(),
            body: Bytes::new(),
            detail: None,
            cause: None,
            is_of_policy: false,
        }
    }

    /// Marks the reply as one of a policy.
    pub(crate) fn of_policy(mut self) -> Self {
        self.is_of_policy = true;
        self
    }

    /// Appends a header. Hop-by-hop headers and `Content-Length` are dropped when the response is
    /// sent.
    pub fn with_header(mut self, name: HeaderName, value: HeaderValue) -> Self {
        // The map holds 32,768 fields, more than any client accepts.
        let _ = self.headers.try_append(name, value);
        self
    }

    /// Sets the body. It is dropped with a status that has no content: 204 or 304.
    pub fn with_body(mut self, body: impl Into<Bytes>) -> Self {
        self.body = body.into();
        self
    }

    /// Sets a sentence for people, in place of a body and its `Content-Type`. Its form is that of the proxy's own
    /// errors: plain text, or the client's preference if
    /// [errors are negotiated](crate::ProxyBuilder::negotiate_errors). An [error page](crate::ErrorPages) takes the
    /// place of the sentence.
    pub fn with_detail(mut self, detail: &'static str) -> Self {
        self.detail = Some(detail);
        self
    }

    /// Sets the cause that logs, metrics and the admin API name for a status of 400 and above. Default:
    /// [`OverLimit`](Cause::OverLimit) for 429, else [`RejectedByPolicy`](Cause::RejectedByPolicy), for which the
    /// client is responsible.
    pub fn because(mut self, cause: Cause) -> Self {
        self.cause = Some(cause);
        self
    }

    pub(crate) fn status(&self) -> StatusCode {
        self.status
    }

    /// The cause; `None` if it is no error.
    pub(crate) fn cause(&self) -> Option<Cause> {
        Cause::of_reply(self.status, self.cause)
    }

    /// The page that takes the place of the sentence, if there is one.
    pub(crate) fn page<'e>(&self, errors: &'e ErrorBodies) -> Option<&'e ErrorPage> {
        errors.page(self.status).filter(|_| self.detail.is_some())
    }

    pub(crate) fn into_response(self, errors: &ErrorBodies) -> Response<Bytes> {
        let Self {
            status,
            mut headers,
            mut body,
            detail,
            cause,
            is_of_policy,
        } = self;
        if let Some(detail) = detail {
            body = errors.write(status, Some(detail), &mut headers);
        }
        headers::strip_hop_by_hop(&mut headers);
        // The length is written from the body that is sent.
        headers.remove(CONTENT_LENGTH);
        let is_bodiless = matches!(status, StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED);
        let body = if is_bodiless { Bytes::new() } else { body };
        let mut response = Response::new(body);
        *response.status_mut() = status;
        *response.headers_mut() = headers;
        if let Some(cause) = cause {
            response.extensions_mut().insert(ReplyCause(cause));
        }
        #[cfg(all(feature = "server", feature = "http2"))]
        if is_of_policy {
            crate::head::LocalReplyMark::mark(&mut response);
        }
        #[cfg(not(all(feature = "server", feature = "http2")))]
        let _ = is_of_policy;
        response
    }
}
