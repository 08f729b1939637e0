//! Responses that a route gives itself, without a cluster.

use std::fmt;

use http::{HeaderName, HeaderValue, StatusCode};

use super::Scheme;
use crate::head::RequestHead;
use crate::matching::{PathTemplate, RouteValues};

/// A redirect to another URL.
#[derive(Clone, Debug)]
pub struct Redirect {
    pub(crate) scheme: Option<Scheme>,
    pub(crate) authority: Option<Box<str>>,
    pub(crate) path: Option<PathTemplate>,
    pub(crate) status: StatusCode,
}

impl PartialEq for Redirect {
    fn eq(&self, other: &Self) -> bool {
        let path = |redirect: &Self| redirect.path.as_ref().map(|path| path.as_str().to_owned());
        self.scheme == other.scheme
            && self.authority == other.authority
            && path(self) == path(other)
            && self.status == other.status
    }
}

impl Eq for Redirect {}

/// The reason why a request is not redirected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RedirectError {
    /// The request names no host, and neither does the route.
    NoHost,
    /// The target is the requested URL, so the client would be redirected without end.
    ToItself,
    /// The request is for the server as a whole (`OPTIONS *`), which no URL can express.
    NoPath,
}

impl fmt::Display for RedirectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoHost => "the request names no host to redirect to",
            Self::ToItself => "the redirect leads to the same URL",
            Self::NoPath => "the request asks for no path to redirect to",
        })
    }
}

impl Redirect {
    /// The status.
    pub fn status(&self) -> StatusCode {
        self.status
    }

    /// The scheme, if it is another one than the client's.
    pub fn scheme(&self) -> Option<Scheme> {
        self.scheme
    }

    /// The host, with a port if one is written; `None` if it is the client's.
    pub fn authority(&self) -> Option<&str> {
        self.authority.as_deref()
    }

    /// The path, with parameters of the route's path; `None` if it is the client's.
    pub fn path(&self) -> Option<&PathTemplate> {
        self.path.as_ref()
    }

    /// Returns the URL for a request, with the query of that. `values` are those that the path of the route captured.
    ///
    /// # Errors
    ///
    /// Fails if there is no other URL.
    pub fn location<H: RequestHead + ?Sized>(
        &self,
        head: &H,
        values: &RouteValues,
    ) -> Result<String, RedirectError> {
        let own = match head.is_https() {
            true => Scheme::Https,
            false => Scheme::Http,
        };
        let scheme = self.scheme.unwrap_or(own);
        let asked = head.authority();
        let authority = match &self.authority {
            Some(authority) => authority,
            // The port of one scheme is not that of the other.
            None if scheme != own => without_port(asked),
            None => asked,
        };
        if authority.is_empty() {
            return Err(RedirectError::NoHost);
        }
        let is_of_server = head.path() == "*";
        let path = match &self.path {
            Some(template) if is_of_server => template.format(&RouteValues::default()),
            Some(template) => template.format(values),
            None if is_of_server => return Err(RedirectError::NoPath),
            None => Some(head.path().to_owned()),
        };
        let path = path.unwrap_or_default();
        let slash = if path.starts_with('/') { "" } else { "/" };
        let leads_back =
            scheme == own && authority.eq_ignore_ascii_case(asked) && path == head.path();
        if leads_back {
            return Err(RedirectError::ToItself);
        }
        let mut location = format!("{}://{authority}{slash}{path}", scheme.as_str());
        if let Some(query) = head.query() {
            location.push('?');
            location.push_str(query);
        }
        Ok(location)
    }
}

/// A host without its port.
fn without_port(authority: &str) -> &str {
    match authority.rsplit_once(':') {
        Some((host, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => host,
        _ => authority,
    }
}

/// A fixed response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FixedResponse {
    pub(crate) status: StatusCode,
    pub(crate) headers: Box<[(HeaderName, HeaderValue)]>,
    pub(crate) body: Box<str>,
}

impl FixedResponse {
    /// The status.
    pub fn status(&self) -> StatusCode {
        self.status
    }

    /// The headers. `Content-Type` is there if there is a body.
    pub fn headers(&self) -> &[(HeaderName, HeaderValue)] {
        &self.headers
    }

    /// The body.
    pub fn body(&self) -> &str {
        &self.body
    }
}
