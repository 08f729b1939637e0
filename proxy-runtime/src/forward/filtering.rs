//! The filters of a route around one request.

use http::{Response, StatusCode, response};
use proxy_model::transform::Transforms;

use super::response as answer;
use crate::error::ForwardError;
use crate::filter::{FilterContext, Filters, ResponseEdit};
use crate::head::{ErrorForm, HeaderMutations, ResponseNotes};
use crate::response::ProxyBody;
use crate::transform::apply_to_own_response;

/// The filters that have let a request pass, and so see its response, and what was decided of the response with the
/// request. None for most requests.
#[derive(Debug, Default)]
pub(super) struct AppliedFilters<'a> {
    passed: Option<Passed<'a>>,
    notes: ResponseNotes,
}

#[derive(Debug)]
struct Passed<'a> {
    filters: &'a Filters,
    context: FilterContext<'a>,
    /// The first so many.
    count: usize,
}

impl<'a> AppliedFilters<'a> {
    /// Keeps changes of the response.
    pub(super) fn note(&mut self, notes: ResponseNotes) {
        self.notes.extend(notes);
    }

    /// Shows them the response of a destination. Tells what they change.
    ///
    /// # Errors
    ///
    /// One of them panicked; the others see no response to this request any more.
    pub(super) fn show(&mut self, head: &response::Parts) -> Result<HeaderMutations, ForwardError> {
        let mut edits = HeaderMutations::default();
        let notes = std::mem::take(&mut self.notes);
        if let Some(passed) = self.passed.take() {
            let mut edit = ResponseEdit::of_http(head.status, &head.headers, &mut edits);
            let Passed {
                filters,
                context,
                count,
            } = passed;
            filters.on_response(count, &mut edit, &context)?;
        }
        edits.make_noted(notes);
        Ok(edits)
    }

    /// A response that no destination made, after the filters and the route's changes.
    pub(super) fn shown(
        &mut self,
        response: Response<ProxyBody>,
        transforms: &Transforms,
    ) -> Response<ProxyBody> {
        let (mut head, mut body) = response.into_parts();
        match self.show(&head) {
            Ok(edits) => edits.apply_to(&mut head.headers),
            Err(_) => {
                (head, body) = answer::own(
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
}

/// A response that no destination made, after the first so many of the filters and the route's changes.
pub(crate) fn shown_response<'a>(
    response: Response<ProxyBody>,
    (filters, notes): (Option<(&'a Filters, usize)>, ResponseNotes),
    context: FilterContext<'a>,
    transforms: &Transforms,
) -> Response<ProxyBody> {
    let passed = filters.map(|(filters, count)| Passed {
        filters,
        context,
        count,
    });
    AppliedFilters { passed, notes }.shown(response, transforms)
}
