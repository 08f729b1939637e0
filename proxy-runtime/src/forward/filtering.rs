//! The filters of a route around a response that no destination made.

use http::{Response, StatusCode};
use proxy_model::transform::Transforms;

use super::response::own;
use crate::filter::{FilterContext, Filters, ResponseEdit};
use crate::head::{ErrorForm, HeaderMutations, ResponseNotes};
use crate::response::ProxyBody;
use crate::transform::apply_to_own_response;

/// Returns a response that no destination made after the first so many of the filters, `notes`, which were decided with
/// the request, and the route's changes. A filter that panics makes another response of it.
pub(crate) fn shown_response(
    response: Response<ProxyBody>,
    filters: Option<(&Filters, usize, &FilterContext<'_>)>,
    notes: ResponseNotes,
    transforms: &Transforms,
) -> Response<ProxyBody> {
    let (mut head, mut body) = response.into_parts();
    let mut edits = HeaderMutations::default();
    let shown = filters.map_or(Ok(()), |(filters, count, context)| {
        let mut edit = ResponseEdit::of_http(head.status, &head.headers, &mut edits);
        filters.on_response(count, &mut edit, context)
    });
    match shown {
        Ok(()) => {
            edits.make_noted(notes);
            edits.apply_to(&mut head.headers);
        }
        // A filter may have panicked halfway through its changes, so none of them is sent.
        Err(_) => {
            (head, body) = own(
                StatusCode::INTERNAL_SERVER_ERROR,
                None,
                ErrorForm::default(),
            )
            .into_parts()
        }
    }
    apply_to_own_response(transforms, head.status, &mut head.headers);
    Response::from_parts(head, body)
}
