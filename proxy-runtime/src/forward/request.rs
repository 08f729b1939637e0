//! The request to a destination.

use http::header::{AUTHORIZATION, CONNECTION, CONTENT_LENGTH, COOKIE, HOST, HeaderValue, TE};
use http::uri::{Authority, PathAndQuery, Scheme as UriScheme};
use http::{HeaderMap, Method, Request, StatusCode, Uri, Version};
use proxy_model::RequestHead;
use proxy_model::compiled::{Destination, DestinationAddress, Route, Scheme};
use proxy_model::matching::RouteValues;
use proxy_model::transform::{HeaderCopy, RequestTarget, Transforms, path_and_query};

use crate::error::{ForwardError, ForwardErrorKind};
use crate::head::HeaderMutations;
use crate::head::HttpHead;
use crate::head::headers;
use crate::head::headers::CDN_LOOP;
use crate::head::headers::parse_length;
#[cfg(feature = "http2")]
use crate::head::headers::{strip_for_http2, take_apart_if_long};
use crate::http1::{ClassSet, FieldClass};
use crate::transform::LoopGuard;
use crate::transform::{Outgoing, append, apply_to_request, retain};

/// The head of a request to a destination, whatever version of HTTP it will be sent in.
#[derive(Clone, Debug)]
pub(crate) struct OutgoingHead {
    method: Method,
    path_and_query: PathAndQuery,
    scheme: Scheme,
    authority: HeaderValue,
    headers: HeaderMap,
}

/// What the body of a request is said to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BodyKind {
    /// There is none.
    Empty,
    /// So many bytes.
    Length(u64),
    /// It ends when it ends.
    Stream,
}

impl OutgoingHead {
    /// The head that `route` makes of a client's for `destination`.
    ///
    /// Headers are filtered (RFC 9110 section 7.6.1), then what filters of the program changed is, and then the route's
    /// changes are made in order. What is not changed stays byte for byte as it came.
    ///
    /// # Errors
    ///
    /// The changes make no valid request.
    pub(crate) fn new(
        head: &HttpHead<'_>,
        route: &Route,
        destination: &Destination,
    ) -> Result<Self, ForwardError> {
        let transforms = route.transforms();
        let values = route_values(head, route);
        let (method, path_and_query) = target(head, transforms, &values, destination.address())?;
        let mut outgoing = Outgoing {
            headers: copied(head, transforms.request_copy()),
            host: original_host(head, transforms),
        };
        if let Some(edits) = head.edits() {
            edits.apply_to(&mut outgoing.headers);
            if let Some(host) = edits.host() {
                outgoing.host = Some(host.clone());
            }
        }
        apply_to_request(transforms.request(), head, &values, &mut outgoing);
        let Outgoing { mut headers, host } = outgoing;
        if method == Method::TRACE {
            // The answer repeats the request, and scripts may read it (RFC 9110 section 9.3.8).
            headers.remove(AUTHORIZATION);
            headers.remove(COOKIE);
        }
        let authority = host
            .or_else(|| destination.host().cloned())
            .unwrap_or_else(|| destination.address().authority().clone());
        Ok(Self {
            method,
            path_and_query,
            scheme: destination.address().scheme(),
            authority,
            headers,
        })
    }

    /// Adds the member of the guard against loops, if there is one, after everything that routes say.
    #[must_use]
    pub(crate) fn guarded(mut self, guard: Option<&LoopGuard>) -> Self {
        if let Some(guard) = guard {
            append(&mut self.headers, &CDN_LOOP, guard.member().clone());
        }
        self
    }

    /// The request as it is sent over a connection.
    ///
    /// # Errors
    ///
    /// It cannot be said in that version of HTTP.
    pub(crate) fn into_request<B>(
        mut self,
        body: B,
        body_kind: BodyKind,
        http2: bool,
    ) -> Result<Request<B>, ForwardError> {
        let mut request = Request::new(body);
        match body_kind {
            BodyKind::Empty => {}
            BodyKind::Length(length) => {
                self.headers.insert(CONTENT_LENGTH, length.into());
            }
            BodyKind::Stream => {
                self.headers.remove(CONTENT_LENGTH);
                if !http2 {
                    // By this the connection knows that there is a body.
                    self.headers.insert(
                        http::header::TRANSFER_ENCODING,
                        HeaderValue::from_static("chunked"),
                    );
                }
            }
        }
        if http2 {
            #[cfg(feature = "http2")]
            {
                strip_for_http2(&mut self.headers);
                take_apart_if_long(&mut self.headers);
            }
            *request.uri_mut() = self.absolute_uri()?;
            *request.version_mut() = Version::HTTP_2;
        } else {
            self.headers.insert(HOST, self.authority);
            *request.uri_mut() = Uri::from(self.path_and_query);
            if self.headers.contains_key(TE) && !self.headers.contains_key(CONNECTION) {
                // RFC 9110 section 10.1.4: it is for this connection only, which has to be said.
                self.headers
                    .insert(CONNECTION, HeaderValue::from_static("TE"));
            }
        }
        *request.method_mut() = self.method;
        *request.headers_mut() = self.headers;
        Ok(request)
    }

    fn absolute_uri(&self) -> Result<Uri, ForwardError> {
        let mut parts = http::uri::Parts::default();
        parts.scheme = Some(match self.scheme {
            Scheme::Http => UriScheme::HTTP,
            Scheme::Https => UriScheme::HTTPS,
        });
        let authority = Authority::try_from(self.authority.as_bytes()).map_err(creation)?;
        parts.authority = Some(authority);
        parts.path_and_query = Some(self.path_and_query.clone());
        Uri::from_parts(parts).map_err(creation)
    }
}

/// What the body of a request is said to be. `is_empty` is what the body itself knows.
///
/// # Errors
///
/// `Content-Length` is not a number, or there are several that differ (RFC 9112 section 6.3). Servers reject such
/// requests; this is for those that do not.
pub(crate) fn body_kind(headers: &HeaderMap, is_empty: bool) -> Result<BodyKind, ForwardError> {
    if headers.contains_key(http::header::TRANSFER_ENCODING) {
        return Ok(if is_empty {
            BodyKind::Empty
        } else {
            BodyKind::Stream
        });
    }
    let mut length = None;
    for value in headers.get_all(CONTENT_LENGTH) {
        let parsed = parse_length(value);
        if parsed.is_none() || length.is_some_and(|length| Some(length) != parsed) {
            return Err(ForwardError::new(
                ForwardErrorKind::RequestBodyClient,
                StatusCode::BAD_REQUEST,
            ));
        }
        length = parsed;
    }
    Ok(match length {
        Some(0) => BodyKind::Empty,
        Some(length) => BodyKind::Length(length),
        None if is_empty => BodyKind::Empty,
        None => BodyKind::Stream,
    })
}

/// The same of a head, of most of which a look at its classes is enough.
pub(crate) fn body_kind_of(head: &HttpHead<'_>, is_empty: bool) -> Result<BodyKind, ForwardError> {
    const SAID: ClassSet = ClassSet::EMPTY
        .with(FieldClass::ContentLength)
        .with(FieldClass::TransferEncoding);
    match head.classes().intersection(SAID).is_empty() {
        true if is_empty => Ok(BodyKind::Empty),
        true => Ok(BodyKind::Stream),
        false => body_kind(head.headers(), is_empty),
    }
}

/// What the route's template took from the path, if any change asks for it.
fn route_values(head: &HttpHead<'_>, route: &Route) -> RouteValues {
    if !route.transforms().uses_route_values() {
        return RouteValues::new();
    }
    route
        .matcher()
        .path()
        .capture(head.path())
        .unwrap_or_default()
}

fn target(
    head: &HttpHead<'_>,
    transforms: &Transforms,
    values: &RouteValues,
    address: &DestinationAddress,
) -> Result<(Method, PathAndQuery), ForwardError> {
    let edits = head.edits();
    let path = edits
        .and_then(HeaderMutations::path)
        .unwrap_or_else(|| head.path());
    let query = match edits.and_then(HeaderMutations::query) {
        Some(changed) => changed,
        None => head.query(),
    };
    // Only OPTIONS may ask for no resource in particular (RFC 9112 section 3.2.4).
    if path == "*" && *head.method_value() != Method::OPTIONS {
        return Err(ForwardError::new(
            ForwardErrorKind::RequestRejected,
            StatusCode::BAD_REQUEST,
        ));
    }
    if transforms.target().is_empty() && address.path() == "/" {
        let path_and_query = match (edits, head.uri().path_and_query(), query) {
            (None, Some(same), _) => same.clone(),
            (None, None, _) => PathAndQuery::from_static("/"),
            (Some(_), _, None) => PathAndQuery::try_from(path).map_err(creation)?,
            (Some(_), _, Some(query)) => {
                PathAndQuery::try_from(format!("{path}?{query}")).map_err(creation)?
            }
        };
        return Ok((head.method_value().clone(), path_and_query));
    }
    let mut target = RequestTarget {
        method: head.method().into(),
        path: path.into(),
        query: query.map(Into::into),
    };
    transforms.rewrite(&mut target, values);
    let text = path_and_query(address, &target.path, target.query.as_deref());
    Ok((
        Method::from_bytes(target.method.as_bytes()).map_err(creation)?,
        PathAndQuery::try_from(text).map_err(creation)?,
    ))
}

/// The client's headers that may be sent on. `Host` is not among them: it is decided for itself.
fn copied(head: &HttpHead<'_>, copy: &HeaderCopy) -> HeaderMap {
    let mut copied = match copy {
        HeaderCopy::None => HeaderMap::new(),
        HeaderCopy::All => {
            let mut all = head.headers().clone();
            headers::strip_hop_by_hop(&mut all);
            if head.is_http2() && headers::accepts_trailers(head.headers()) {
                all.insert(TE, HeaderValue::from_static("trailers"));
            }
            all
        }
        HeaderCopy::Only(names) => {
            let mut some = head.headers().clone();
            headers::strip_named(&mut some);
            retain(&mut some, names);
            headers::strip_framing(&mut some);
            if some.remove(TE).is_some() && headers::accepts_trailers(head.headers()) {
                some.insert(TE, HeaderValue::from_static("trailers"));
            }
            some
        }
    };
    copied.remove(HOST);
    headers::join_cookies(&mut copied);
    copied
}

/// The client's `Host`, if the route sends it on.
fn original_host(head: &HttpHead<'_>, transforms: &Transforms) -> Option<HeaderValue> {
    transforms
        .original_host()
        .then(|| head.authority_value())
        .flatten()
}

fn creation(error: impl Into<crate::BoxError>) -> ForwardError {
    ForwardError::new(ForwardErrorKind::RequestCreation, StatusCode::BAD_GATEWAY).with_source(error)
}
