//! Responses on their way to a stream: their heads, and those of the proxy's own.

use bytes::Bytes;
use http::header::{CONTENT_LENGTH, CONTENT_TYPE, DATE};
use http::{HeaderMap, HeaderValue, Response, StatusCode};

use crate::exchange::grpc;
use crate::forward::typed::{kept, response_head};
use crate::head::headers::{MOST_SHARED, take_apart};
use crate::http1::{Field, FieldClass, HeadTable, RawResponse};
use crate::server::connection::{GRPC, is_grpc};
use crate::server::engine::resolved_route::ResolvedRoute;
use crate::server::http2::{Client, Room, Untaken, Waiting, date};
use crate::transform::HeadPlan;

/// The head that a client gets for a destination's final one, of which `head` is the text. `None` if it cannot be said.
pub(super) fn final_head(
    response: &RawResponse,
    head: &Bytes,
    table: &HeadTable,
    plan: &HeadPlan,
) -> Option<Response<()>> {
    let (status, mut fields) = response_head(response, head, table, plan, 1)?;
    // A route that changes nothing leaves the date where it is.
    let has_date = plan.keeps_responses() && table.first(FieldClass::Date).is_some();
    if !has_date && !fields.contains_key(DATE) {
        fields.insert(DATE, date());
    }
    if head.len() > MOST_SHARED {
        take_apart(&mut fields);
    }
    Some(with(status, fields))
}

/// Whether the response to which `head` belongs, and which came as `text`, is one of gRPC.
pub(super) fn is_grpc_response(
    head: &Response<()>,
    text: &Bytes,
    table: &HeadTable,
    plan: &HeadPlan,
) -> bool {
    if !plan.keeps_responses() {
        return is_grpc(head.headers());
    }
    // `Content-Encoding` and `Content-Range` have other lengths.
    let is_type = |field: &&Field| {
        field.class() == FieldClass::Content && field.name().len() as usize == "content-type".len()
    };
    let kind = table.fields().iter().find(is_type);
    kind.is_some_and(|kind| kind.value().get(text).starts_with(GRPC))
}

/// The head that a client gets for a destination's interim one.
pub(super) fn interim_head(
    response: &RawResponse,
    head: &Bytes,
    table: &HeadTable,
    plan: &HeadPlan,
) -> Option<Response<()>> {
    let (status, mut fields) = kept(response, head, table, plan, 1)?;
    // What the route takes away from responses is not for the client in these either.
    for operation in &plan.response {
        operation.apply_removal(status, &mut fields);
    }
    if head.len() > MOST_SHARED {
        take_apart(&mut fields);
    }
    Some(with(status, fields))
}

fn with(status: StatusCode, fields: HeaderMap) -> Response<()> {
    let mut response = Response::new(());
    *response.status_mut() = status;
    *response.headers_mut() = fields;
    response
}

/// Who a response is for, as far as it matters for one of the proxy's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Asker {
    /// HEAD, for which there is no body.
    Head,
    /// A call of gRPC.
    Grpc,
    Other,
}

/// Sends a response that the proxy makes itself: the status in words, and nothing about the inside. The route's changes of
/// responses are made to it as well. Returns how long its body is.
///
/// Cancel-safe: dropped, the stream is reset unless all of it was handed over.
pub(super) async fn send_own(
    client: &mut Client,
    status: StatusCode,
    asker: Asker,
    resolved: &ResolvedRoute<'_>,
) -> Result<u64, Untaken> {
    let reason = status.canonical_reason().unwrap_or_default();
    let text = format!("{} {reason}\n", status.as_u16());
    let mut fields = HeaderMap::new();
    let kind = HeaderValue::from_static("text/plain; charset=utf-8");
    fields.insert(CONTENT_TYPE, kind);
    fields.insert(CONTENT_LENGTH, text.len().into());
    for operation in &resolved.plan.response {
        operation.apply(status, &mut fields);
    }
    if !fields.contains_key(DATE) {
        fields.insert(DATE, date());
    }
    let (status, is_end) = match asker {
        Asker::Grpc => (grpc::for_call(status, &mut fields), true),
        Asker::Head => (status, true),
        Asker::Other => (status, false),
    };
    let sent = client.respond.send_response(with(status, fields), is_end);
    let mut stream = sent.map_err(|_| Untaken::Gone)?;
    if is_end {
        return Ok(0);
    }
    let length = text.len() as u64;
    let connection = &client.record.connection;
    let mut waiting = Waiting {
        connection,
        deadline: &client.deadline,
        room: Room::default(),
        is_exempt: false,
        uptake: resolved.uptake(connection.worker.limits.data_rate),
    };
    waiting
        .send(&mut stream, text.into(), true, |_| {})
        .await
        .map(|()| length)
}
