use std::marker::PhantomData;

use prost::Message;
use tonic::Status;
use tonic::codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder};

use crate::server::wire::Response;

/// Writes responses that are encoded already, and reads requests.
#[derive(Debug)]
pub(super) struct XdsCodec<R>(PhantomData<fn() -> R>);

impl<R> Default for XdsCodec<R> {
    fn default() -> Self {
        Self(PhantomData)
    }
}

impl<R: Message + Default + 'static> Codec for XdsCodec<R> {
    type Encode = Response;
    type Decode = R;
    type Encoder = Self;
    type Decoder = Self;

    fn encoder(&mut self) -> Self {
        Self::default()
    }

    fn decoder(&mut self) -> Self {
        Self::default()
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

impl<R: Message + Default> Decoder for XdsCodec<R> {
    type Item = R;
    type Error = Status;

    fn decode(&mut self, buffer: &mut DecodeBuf<'_>) -> Result<Option<R>, Status> {
        match R::decode(buffer) {
            Ok(request) => Ok(Some(request)),
            Err(error) => Err(Status::invalid_argument(format!(
                "the request is not what the method takes: {error}"
            ))),
        }
    }
}
