//! Responses of the proxy's own.

use http::StatusCode;

use super::client_head::{append_date, has_date};
use crate::http1::{
    Asked, HeadLimits, HeadTable, Method, OutgoingConnection, ResponseRewrite, Status,
    parse_response, write_response,
};
use crate::transform::HeadPlan;

/// Writes a response that the proxy makes itself to `output`: the status in words, and nothing about the inside. The route's
/// changes of responses are made to it as well. Returns how long its body is.
#[cold]
pub(super) fn write_own(
    status: StatusCode,
    is_head: bool,
    is_last: bool,
    plan: &HeadPlan,
    output: &mut Vec<u8>,
) -> u64 {
    let code = status.as_u16();
    let reason = status.canonical_reason().unwrap_or_default();
    let text = format!("{code} {reason}\n");
    let head = format!(
        "HTTP/1.1 {code} {reason}\r\ncontent-type: text/plain; charset=utf-8\r\ncontent-length: {}\r\n\r\n",
        text.len()
    );
    output.clear();
    let mut table = HeadTable::new();
    let asked = Asked {
        method: if is_head { Method::Head } else { Method::Get },
        upgrade: false,
    };
    let parsed = parse_response(head.as_bytes(), asked, &HeadLimits::default(), &mut table);
    if let Ok(Status::Complete(response)) = parsed {
        let operations = plan.response.iter();
        let operations: Vec<_> = operations.map(|one| one.for_status(status)).collect();
        let mut rewrite = ResponseRewrite::new(&response);
        rewrite.operations = &operations;
        if is_last {
            rewrite.connection = OutgoingConnection::Close;
        }
        write_response(head.as_bytes(), &response, &table, &rewrite, output);
        if !has_date(&table, &rewrite) {
            append_date(output);
        }
    }
    if is_head {
        return 0;
    }
    output.extend_from_slice(text.as_bytes());
    text.len() as u64
}
