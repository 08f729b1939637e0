use std::marker::PhantomData;

use bytes::Buf;
use tonic::Status;
use tonic::codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder};

use super::inbound::Inbound;
use super::names;
use crate::server::wire::Response;

/// Writes responses that are encoded already, and reads requests, of which each may have so many names of a kind.
#[derive(Debug)]
pub(super) struct XdsCodec<R> {
    names: usize,
    request: PhantomData<fn() -> R>,
}

impl<R> XdsCodec<R> {
    pub(super) fn new(names: usize) -> Self {
        Self {
            names,
            request: PhantomData,
        }
    }
}

impl<R: Inbound> Codec for XdsCodec<R> {
    type Encode = Response;
    type Decode = R;
    type Encoder = Self;
    type Decoder = Self;

    fn encoder(&mut self) -> Self {
        Self::new(self.names)
    }

    fn decoder(&mut self) -> Self {
        Self::new(self.names)
    }
}

impl<R> Encoder for XdsCodec<R> {
    type Item = Response;
    type Error = Status;

    fn encode(&mut self, response: Response, buffer: &mut EncodeBuf<'_>) -> Result<(), Status> {
        buffer.reserve(response.encoded_len());
        response.encode(buffer);
        Ok(())
    }
}

impl<R: Inbound> Decoder for XdsCodec<R> {
    type Item = R;
    type Error = Status;

    fn decode(&mut self, buffer: &mut DecodeBuf<'_>) -> Result<Option<R>, Status> {
        // An empty name is two bytes on the wire, and dozens when it is decoded.
        let names = names::most_of_a_kind(buffer.chunk(), R::NAMES);
        if names > self.names {
            return Err(Status::resource_exhausted(format!(
                "a request may have {} names, and this one has {names}",
                self.names
            )));
        }
        match R::decode(buffer) {
            Ok(request) => Ok(Some(request)),
            Err(error) => Err(Status::invalid_argument(format!(
                "the request is not what the method takes: {error}"
            ))),
        }
    }
}
