//! The end of an exchange with a client.

/// The end of an exchange with a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Outcome {
    /// The whole response was written to the socket; on HTTP/2, passed to the connection.
    Complete,
    /// The client disconnected, or was disconnected, before it had the whole response.
    Aborted,
    /// The response body could not be read to its end; the client sees that it is truncated.
    Failed,
}

impl Outcome {
    /// The name for logs.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Complete => "complete",
            Self::Aborted => "aborted",
            Self::Failed => "failed",
        }
    }
}
