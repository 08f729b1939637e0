//! The client's side of a stream, passed to the byte path or to the `http` path.

use bytes::Bytes;
use h2::RecvStream;
use h2::server::SendResponse;

use super::deadlines::Deadline;
use crate::server::connection::RequestRecord;

/// The client's side of a stream. Dropping it resets the stream unless its response is complete.
pub(crate) struct StreamClient {
    pub(crate) respond: SendResponse<Bytes>,
    /// The request body, if there is one.
    pub(crate) body: Option<RecvStream>,
    /// The record for counters and access log, which is finished when dropped.
    pub(crate) record: RequestRecord,
    pub(crate) deadline: Deadline,
    /// True if the client has reset the stream or disconnected before the end of the response.
    pub(crate) has_reset: bool,
}
