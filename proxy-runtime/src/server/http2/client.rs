//! What a stream is served with: made for each, lent to the raw lane, and taken apart by the typed one.

use bytes::Bytes;
use h2::RecvStream;
use h2::server::SendResponse;

use super::deadlines::Deadline;
use crate::server::connection::RequestRecord;

/// The client's side of one stream. Dropped, the stream is reset unless its response is complete.
pub(crate) struct Client {
    pub(crate) respond: SendResponse<Bytes>,
    /// The request's body, if there is one.
    pub(crate) body: Option<RecvStream>,
    /// For the counters and the access log, which are told when it is dropped.
    pub(crate) record: RequestRecord,
    pub(crate) deadline: Deadline,
    /// The client has reset the stream, or gone, before it had the whole response.
    pub(crate) has_reset: bool,
}
