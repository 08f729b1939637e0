mod chain;
mod edit;
mod same_head;

use http::Request;
use http::request::Parts;

use super::*;
use crate::head::HeaderMutations;
use crate::head::HttpHead;
use crate::http1::{HeadLimits, HeadTable, RawRequest, RequestView, Status, parse_request};

/// A head in its read buffer.
struct Received {
    buffer: Vec<u8>,
    table: HeadTable,
    request: RawRequest,
}

impl Received {
    fn new(head: impl Into<Vec<u8>>) -> Self {
        let buffer = head.into();
        let mut table = HeadTable::new();
        let parsed = parse_request(&buffer, &HeadLimits::default(), &mut table);
        let Ok(Status::Complete(request)) = parsed else {
            panic!("{parsed:?}: {}", String::from_utf8_lossy(&buffer));
        };
        Self {
            buffer,
            table,
            request,
        }
    }

    fn edit<'a>(&'a self, edits: &'a mut HeaderMutations) -> RequestEdit<'a> {
        let view = RequestView::new(&self.buffer, &self.request, &self.table, false);
        RequestEdit::of_raw(&self.buffer, &self.request, &self.table, view, edits)
    }

    /// The same head in `http` types.
    fn parts(&self) -> Parts {
        let text = |span: crate::http1::Span| str::from_utf8(span.get(&self.buffer)).unwrap();
        let mut request = Request::builder()
            .method(text(self.request.method_span()))
            .uri(text(self.request.target()));
        for field in self.table.fields() {
            request = request.header(text(field.name()), field.value().get(&self.buffer));
        }
        request.body(()).unwrap().into_parts().0
    }
}

/// Runs a test with both forms of a head: filters must not see a difference.
fn with_both(head: &str, test: impl Fn(&mut RequestEdit<'_>)) {
    let received = Received::new(head);
    test(&mut received.edit(&mut HeaderMutations::default()));
    let parts = received.parts();
    test(&mut RequestEdit::of_http(
        HttpHead::new(&parts),
        &mut HeaderMutations::default(),
    ));
}
