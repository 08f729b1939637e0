//! A switch of protocols that a request of a tower service wishes for.

use bytes::Bytes;
use http::Response;

use super::downstream::{ServiceRecord, UNSAYABLE};
use super::exchange::failure::ResponseFailure;
use super::handshake::Handshake;
use super::upgrade::UpgradedClient;
use crate::http1::{Framing, HeadTable, RawResponse};
use crate::upstream::to_map;

/// A switch of protocols that a request wishes for.
pub(crate) struct SwitchRequest {
    pub(crate) handshake: Handshake,
    /// Taken when the destination has agreed.
    pub(crate) client: Option<UpgradedClient>,
    /// True once the response begins a tunnel.
    pub(crate) is_agreed: bool,
}

impl SwitchRequest {
    /// Checks the response to a request for a switch, and converts its head to that for the client.
    #[cold]
    pub(super) fn answered(
        &mut self,
        (response, table, text): (&RawResponse, &HeadTable, &Bytes),
        is_stream: bool,
        head: &mut Response<()>,
        record: &ServiceRecord,
    ) -> Result<(), ResponseFailure> {
        let status = head.status();
        if response.framing() != Framing::Tunnel {
            return match self.handshake.is_mistakable(status) {
                true => Err(ResponseFailure::Disagreed(status)),
                false => Ok(()),
            };
        }
        let mut received = to_map(table.fields(), text).map_err(|_| UNSAYABLE)?;
        if let Err(error) = self.handshake.check(&mut received, is_stream) {
            tracing::debug!(
                target: crate::observe::targets::REQUEST,
                error = &error as &dyn std::error::Error,
                "the destination agrees to something else"
            );
            return Err(ResponseFailure::Disagreed(status));
        }
        self.handshake.announce(head);
        self.is_agreed = true;
        record.slot.begin_tunnel();
        if let Some(attempts) = &record.attempts {
            attempts.begin_tunnel();
        }
        Ok(())
    }
}
