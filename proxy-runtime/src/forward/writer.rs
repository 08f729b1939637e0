//! The heads of requests, as they are made for destinations.

use http::StatusCode;
use proxy_model::compiled::Destination;

use super::request::{BodyKind, OutgoingHead};
use super::send::Sending;
use super::typed::{self, TypedRequest};
use crate::cluster::ClusterState;
use crate::error::{ForwardError, ForwardErrorKind};
use crate::head::{AddressText, HttpHead};
use crate::http1::{FieldValue, Framing, Method as RawMethod, OutgoingTarget, RequestInfo};
use crate::transform::CompiledTransforms;
use crate::upstream::{Head, Output};

/// The way the head of a request is written.
#[derive(Clone, Copy)]
pub(super) enum Writer<'a> {
    /// Straight out of the client's fields into the buffer that is sent, in HTTP/1.1.
    Bytes(ByteWriter<'a>),
    /// Into a map of its own, for any version of HTTP.
    Fields,
}

/// The parts of a head that is written straight out of the client's fields.
#[derive(Clone, Copy)]
pub(super) struct ByteWriter<'a> {
    pub(super) plan: &'a CompiledTransforms,
    /// The target as it was received.
    target: OutgoingTarget<'a>,
    framing: Framing,
}

/// A head for one destination.
pub(super) enum MadeHead {
    Bytes(Output),
    /// Boxed, so that the others have no room for it.
    Fields(Box<OutgoingHead>),
}

impl<'a> Writer<'a> {
    /// Chooses the quickest way to these destinations by the route's `plan`, if it has one, for a request without
    /// changes of filters and without a switch of protocols.
    pub(super) fn of(
        head: &'a HttpHead<'_>,
        body_kind: BodyKind,
        destinations: &ClusterState,
        plan: Option<&'a CompiledTransforms>,
    ) -> Self {
        let bytes = || {
            let plan = plan.filter(|_| destinations.speaks_http1())?;
            Some(ByteWriter {
                plan,
                target: typed::written_target(head)?,
                framing: typed::framing(head, body_kind),
            })
        };
        bytes().map_or(Self::Fields, Self::Bytes)
    }
}

impl Sending<'_> {
    /// Makes the head for a destination.
    ///
    /// # Errors
    ///
    /// The route's changes make no valid request of it.
    pub(super) fn make(&self, destination: &Destination) -> Result<MadeHead, ForwardError> {
        match &self.writer {
            Writer::Bytes(writer) => self.write(writer, destination).map(MadeHead::Bytes),
            Writer::Fields => {
                let head = OutgoingHead::new(self.head, self.route, destination)?;
                let version = self.cluster.upstream().version();
                let head = head.guarded(self.loop_guard).in_version(version);
                Ok(MadeHead::Fields(Box::new(self.handshake.ask(head))))
            }
        }
    }

    fn write(
        &self,
        writer: &ByteWriter<'_>,
        destination: &Destination,
    ) -> Result<Output, ForwardError> {
        let remote = self.head.connection().remote;
        let remote = remote.map(|remote| AddressText::new(remote.ip()));
        let request = TypedRequest {
            head: self.head,
            route: self.route,
            plan: writer.plan,
            framing: writer.framing,
            remote: remote
                .as_ref()
                .and_then(|remote| FieldValue::new(remote.as_bytes())),
        };
        let mut out = Output::acquire();
        let written = request.write_with(writer.target, destination, &mut out);
        written.map_err(|_| {
            ForwardError::new(ForwardErrorKind::RequestCreation, StatusCode::BAD_GATEWAY)
        })?;
        Ok(out)
    }

    /// The head as a connection gets it.
    ///
    /// # Errors
    ///
    /// It cannot be said in that version of HTTP.
    pub(super) fn head_for(&self, made: MadeHead, is_http2: bool) -> Result<Head, ForwardError> {
        match (made, &self.writer) {
            (MadeHead::Bytes(bytes), Writer::Bytes(writer)) => Ok(Head::Bytes {
                bytes,
                framing: writer.framing,
                asked: RequestInfo {
                    method: RawMethod::of(self.head.method_value()),
                    upgrade: false,
                },
            }),
            (MadeHead::Fields(head), _) => {
                let request = head.into_request((), self.body_kind, is_http2)?;
                Ok(Head::Fields(Box::new(request.into_parts().0)))
            }
            (MadeHead::Bytes(_), Writer::Fields) => unreachable!("it was made by its writer"),
        }
    }
}
