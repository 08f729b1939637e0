//! Conversion between heads in `http` types and HTTP/1.1 heads of destinations.
//!
//! A request's head is written out of its map in one pass, by the operations that the route was compiled to; no
//! other map is made of it on the way. A response's head becomes one map, with nothing in it that would have to be
//! taken out again.

use bytes::Bytes;
use http::header::{CONNECTION, CONTENT_LENGTH};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use proxy_model::RequestHead;
use proxy_model::compiled::{Destination, Route};

use crate::forward::BodyKind;
use crate::forward::head_lines::remove_lines;
use crate::forward::recycled::{self, Kind};
use crate::head::{HeaderMutations, HttpHead, headers};
use crate::http1::{
    ClassSet, FieldClass, FieldValue, Framing, HeadTable, OutgoingTarget, RawResponse,
    StreamRequest, classify, kept_fields, write_stream_request,
};
use crate::stream::recycled as buffers;
use crate::transform::{
    Changed, CompiledTransforms, Host, HostHeaderRule, Invalid, OriginParts, elsewhere, known,
    mark_host, to_ascii,
};

/// A request's head in `http` types, for destinations of HTTP/1.1.
#[derive(Clone, Copy)]
pub(crate) struct TypedRequest<'a> {
    pub(crate) head: &'a HttpHead<'a>,
    pub(crate) route: &'a Route,
    pub(crate) plan: &'a CompiledTransforms,
    pub(crate) framing: Framing,
    /// The client's address, without port.
    pub(crate) remote: Option<FieldValue<'a>>,
}

/// Returns true if `Connection` names a field that is present and would otherwise be forwarded (RFC 9110 section
/// 7.6.1).
fn takes_along(fields: &HeaderMap) -> bool {
    let mut lines = fields.get_all(CONNECTION).iter();
    lines.any(|line| {
        let options = line.as_bytes().split(|byte| *byte == b',');
        options.map(<[u8]>::trim_ascii).any(|option| {
            !ClassSet::CONNECTION.contains(classify(option))
                && HeaderName::from_bytes(option).is_ok_and(|name| fields.contains_key(name))
        })
    })
}

/// Returns the fields without those that `Connection` names.
#[cold]
fn without_named(fields: &HeaderMap) -> HeaderMap {
    let mut fields = fields.clone();
    headers::strip_named(&mut fields);
    fields
}

/// Returns the framing of a body in HTTP/1.1.
pub(crate) fn framing(head: &HttpHead<'_>, kind: BodyKind) -> Framing {
    let classes = head.classes();
    match kind {
        // A length of 0 that the client sent stays: some servers demand a length of each POST.
        BodyKind::Empty
            if classes.contains(FieldClass::ContentLength)
                && !classes.contains(FieldClass::TransferEncoding) =>
        {
            Framing::Length(0)
        }
        BodyKind::Empty => Framing::None,
        BodyKind::Length(length) => Framing::Length(length),
        BodyKind::Stream => Framing::Chunked,
    }
}

/// Returns the target as received. `None` if it has no form of HTTP/1.1.
pub(crate) fn target<'a>(head: &'a HttpHead<'_>) -> Option<OutgoingTarget<'a>> {
    OutgoingTarget::new(head.path().as_bytes(), head.query().map(str::as_bytes))
}

impl TypedRequest<'_> {
    /// Returns the head for a destination, with the changes of filters.
    ///
    /// # Errors
    ///
    /// As [`write`](Self::write).
    #[inline]
    pub(crate) fn written(
        &self,
        edits: Option<&HeaderMutations>,
        destination: &Destination,
    ) -> Result<Vec<u8>, Invalid> {
        let mut out = buffers::take(buffers::HEAD);
        match edits {
            None => self.write(destination, &mut out)?,
            Some(edits) => {
                let head = &self.head.with_edits(edits);
                TypedRequest { head, ..*self }.write(destination, &mut out)?;
            }
        }
        Ok(out)
    }

    /// Appends the head for a destination.
    ///
    /// # Errors
    ///
    /// The route's changes make no valid request of it.
    pub(crate) fn write(
        &self,
        destination: &Destination,
        out: &mut Vec<u8>,
    ) -> Result<(), Invalid> {
        let target = target(self.head).ok_or(Invalid)?;
        let is_elsewhere = self.plan.rewrites_target || destination.address().path() != "/";
        let method = self.head.method();
        let (path, query) = match self.head.edits() {
            None if is_elsewhere => (self.head.path(), self.head.query()),
            // Nothing about the target changes.
            None => return self.write_to(method, target, destination, out),
            Some(edits) => (
                edits.path().unwrap_or_else(|| self.head.path()),
                edits.query().unwrap_or_else(|| self.head.query()),
            ),
        };
        if !is_elsewhere {
            let target = OutgoingTarget::new(path.as_bytes(), query.map(str::as_bytes));
            return self.write_to(method, target.ok_or(Invalid)?, destination, out);
        }
        let received = (path, query);
        let elsewhere = elsewhere(self.plan, self.route, destination, self.head, received);
        let method = elsewhere.method().unwrap_or(method);
        self.write_to(method, elsewhere.target()?, destination, out)
    }

    fn write_to(
        &self,
        method: &str,
        target: OutgoingTarget<'_>,
        destination: &Destination,
        out: &mut Vec<u8>,
    ) -> Result<(), Invalid> {
        let Self {
            head, plan, remote, ..
        } = *self;
        let authority = match head.authority_str() {
            "" => None,
            authority => Some(FieldValue::new(authority.as_bytes()).ok_or(Invalid)?),
        };
        let ascii;
        let host_of_client = match head.authority_str() {
            text if text.is_ascii() => authority,
            text => {
                ascii = to_ascii(text);
                FieldValue::new(ascii.as_bytes())
            }
        };
        let own = || {
            let own = destination.host();
            known(own.unwrap_or_else(|| destination.address().authority()))
        };
        let parts = OriginParts {
            remote,
            authority: host_of_client,
            is_https: head.is_https(),
        };
        let copied = plan.request_copy.copied();
        let stripped;
        let mut fields = head.headers();
        // The copy of the map is rare: `Connection` hardly ever names another field.
        if head.classes().contains(FieldClass::Connection) && takes_along(fields) {
            stripped = without_named(fields);
            fields = &stripped;
        }
        let changed = Changed {
            route: self.route,
            head,
            classes: head.classes(),
            connection: head.connection(),
            // They are joined while they are written.
            cookie: None,
            edits: head.edits(),
        };
        let edited = head.edits().and_then(HeaderMutations::host).map(known);
        let names = fields.keys().map(|name| name.as_str().as_bytes());
        plan.for_request(
            &changed,
            names,
            |part| parts.get(part),
            |host, operations| {
                let named = match host {
                    Host::Original => edited.or(authority),
                    Host::Named(value) => Some(known(value)),
                    Host::Destination => edited,
                    Host::Restored => None,
                };
                let begin = out.len();
                let request = StreamRequest {
                    method,
                    target,
                    host: match named {
                        Some(named) => named,
                        None => own(),
                    },
                    fields,
                    framing: self.framing,
                    copied,
                    operations,
                    accepts_trailers: head.classes().contains(FieldClass::Te)
                        && plan.tells_of_trailers(head.is_http2())
                        && headers::accepts_trailers(fields),
                    last: plan.loop_line(),
                };
                write_stream_request(&request, out);
                if method == "TRACE" {
                    // The response repeats the request, and scripts may read it (RFC 9110 section 9.3.8).
                    remove_lines(out, &["authorization", "cookie"]);
                }
                if matches!(plan.host, HostHeaderRule::Computed(_)) && named.is_some() {
                    mark_host(&mut out[begin..]);
                }
            },
        );
        Ok(())
    }
}

/// Returns the status and fields that a client gets for the final head of a destination's response. `text` begins
/// with the head, and `table` has its fields; values share its memory. The changes of filters (`edits`) come before
/// the route's. There is room for `more` fields. `None` if it cannot be represented in `http` types.
pub(crate) fn final_head(
    response: &RawResponse,
    text: &Bytes,
    table: &HeadTable,
    plan: &CompiledTransforms,
    edits: Option<&HeaderMutations>,
    more: usize,
) -> Option<(StatusCode, HeaderMap)> {
    let (status, mut fields) = received_head(response, text, table, plan, more)?;
    // Changes of filters first, so that the route has the last word.
    if let Some(edits) = edits {
        edits.apply_to(&mut fields);
    }
    plan.change_response(status, &mut fields);
    Some((status, fields))
}

/// Returns the status and fields of the head as received, without the route's changes.
fn received_head(
    response: &RawResponse,
    text: &Bytes,
    table: &HeadTable,
    plan: &CompiledTransforms,
    more: usize,
) -> Option<(StatusCode, HeaderMap)> {
    let (status, mut fields) = kept(response, text, table, plan, more)?;
    if let Framing::Length(length) = response.framing()
        && let Some(said) = table.first(FieldClass::ContentLength)
        && said.value().get(text).starts_with(b"0")
        && fields.contains_key(CONTENT_LENGTH)
    {
        // Zeros in front are read as octal by some.
        fields.insert(CONTENT_LENGTH, HeaderValue::from(length));
    }
    headers::drop_pointless_length(status, &mut fields);
    Some((status, fields))
}

/// Returns the status and fields that are forwarded, before the route's changes.
pub(crate) fn kept(
    response: &RawResponse,
    text: &Bytes,
    table: &HeadTable,
    plan: &CompiledTransforms,
    more: usize,
) -> Option<(StatusCode, HeaderMap)> {
    let status = StatusCode::from_u16(response.status()).ok()?;
    let kept = kept_fields(text, response, table, plan.response_copy.copied());
    let room = (table.fields().len(), more);
    let fields = recycled::fields(Kind::Response, text, kept, room)?;
    Some((status, fields))
}
