//! How an exchange with a client ended.

/// How an exchange ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Outcome {
    /// The whole response was written to the socket; on HTTP/2, handed to the connection.
    Complete,
    /// The client went away, or was cut, before it had the whole response.
    Aborted,
    /// The response's body could not be read to its end; the client sees that it is truncated.
    Failed,
}

impl Outcome {
    /// For logs.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Complete => "complete",
            Self::Aborted => "aborted",
            Self::Failed => "failed",
        }
    }
}
