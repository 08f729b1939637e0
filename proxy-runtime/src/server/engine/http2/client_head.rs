//! Response heads for streams.

use bytes::Bytes;
use http::header::DATE;
use http::{HeaderMap, Response, StatusCode};

use crate::forward::typed::{self, kept};
use crate::head::HeaderMutations;
use crate::head::headers::{MOST_SHARED, take_apart};
use crate::http1::{Field, FieldClass, HeadTable, RawResponse};
use crate::server::connection::{GRPC, is_grpc};
use crate::server::http2::date;
use crate::transform::CompiledTransforms;

/// Returns the client's head for a final response, whose serialised head is `head`, or `None` if
/// HTTP/2 cannot represent it. The changes of filters (`edits`) come before the route's transforms.
pub(super) fn final_head(
    response: &RawResponse,
    head: &Bytes,
    table: &HeadTable,
    plan: &CompiledTransforms,
    edits: Option<&HeaderMutations>,
) -> Option<Response<()>> {
    let (status, mut fields) = typed::final_head(response, head, table, plan, edits, 1)?;
    // Without changes the date is where it was.
    let is_kept = edits.is_none() && plan.keeps_responses();
    let has_date = is_kept && table.first(FieldClass::Date).is_some();
    // A recipient adds a missing date (RFC 9110 section 6.6.1).
    if !has_date && !fields.contains_key(DATE) {
        fields.insert(DATE, date());
    }
    // All values share the block of their head, which the table of HPACK would keep for long.
    if head.len() > MOST_SHARED {
        take_apart(&mut fields);
    }
    Some(with(status, fields))
}

/// Returns true for a response of gRPC, with this head and its serialised form `text`. `is_kept`:
/// the head is unchanged.
pub(super) fn is_grpc_response(
    head: &Response<()>,
    text: &Bytes,
    table: &HeadTable,
    is_kept: bool,
) -> bool {
    if !is_kept {
        return is_grpc(head.headers());
    }
    // `Content-Encoding` and `Content-Range` have other lengths.
    let is_type = |field: &&Field| {
        field.class() == FieldClass::Content && field.name().len() as usize == "content-type".len()
    };
    let kind = table.fields().iter().find(is_type);
    kind.is_some_and(|kind| kind.value().get(text).starts_with(GRPC))
}

/// Returns the client's head for an interim response, or `None` if HTTP/2 cannot represent it.
pub(super) fn interim_head(
    response: &RawResponse,
    head: &Bytes,
    table: &HeadTable,
    plan: &CompiledTransforms,
) -> Option<Response<()>> {
    let (status, mut fields) = kept(response, head, table, plan, 1)?;
    // The route's removals apply to interim responses, too.
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
