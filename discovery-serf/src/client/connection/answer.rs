//! The receivers of replies.

use tokio::sync::oneshot;

use super::super::ClientError;
use crate::wire::messages::DecodeError;

/// Passes the response to the caller of a request.
///
/// Bodies are decoded here, by the task of the connection: if one is malformed, the next message must not
/// be read.
pub(super) trait PendingReply: Send {
    /// Receives the body of a reply, which is empty where there is none.
    ///
    /// # Errors
    ///
    /// Returns an error if the body is malformed. The caller has no response yet.
    fn succeed(&mut self, body: &[u8]) -> Result<(), DecodeError>;

    fn fail(&mut self, error: ClientError);
}

/// The receiver for a waiting caller.
pub(super) struct Waiting<T> {
    /// The channel to the caller. `None` after the response was sent.
    pub(super) reply: Option<oneshot::Sender<Result<T, ClientError>>>,
    pub(super) decode: fn(&[u8]) -> Result<T, DecodeError>,
}

impl<T: Send> PendingReply for Waiting<T> {
    fn succeed(&mut self, body: &[u8]) -> Result<(), DecodeError> {
        // A long list is not decoded without a caller.
        if self.reply.as_ref().is_some_and(|reply| !reply.is_closed()) {
            let value = (self.decode)(body)?;
            self.give(Ok(value));
        }
        Ok(())
    }

    fn fail(&mut self, error: ClientError) {
        self.give(Err(error));
    }
}

impl<T> Waiting<T> {
    fn give(&mut self, answer: Result<T, ClientError>) {
        if let Some(reply) = self.reply.take() {
            // The caller may have been dropped meanwhile.
            let _ = reply.send(answer);
        }
    }
}

/// The receiver for a request without a caller.
pub(super) struct NoCaller;

impl PendingReply for NoCaller {
    fn succeed(&mut self, _: &[u8]) -> Result<(), DecodeError> {
        Ok(())
    }

    fn fail(&mut self, _: ClientError) {}
}
