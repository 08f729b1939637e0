//! The messages of a client: the body of a request.

use std::marker::PhantomData;

use axum::body::Body;
use bytes::{Buf, Bytes, BytesMut};
use http::HeaderMap;
use http_body_util::BodyExt;
use tonic::metadata::MetadataValue;
use tonic::{Code, Status};

use super::inbound::Inbound;
use super::names;

/// The limits of a request's size.
#[derive(Debug, Clone, Copy)]
pub(super) struct RequestLimits {
    pub(super) bytes: usize,
    /// Maximum number of names of each kind.
    pub(super) names: usize,
}

/// The requests of a client, one after the other.
///
/// They come as "Length-Prefixed-Message" of
/// <https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md>. Neither the bytes that were read nor
/// their buffer are kept: a client names thousands of resources once and then sends little.
#[derive(Debug)]
pub(super) struct Requests<R> {
    body: Body,
    limits: RequestLimits,
    /// The beginning of what comes next.
    unread: BytesMut,
    request: PhantomData<fn() -> R>,
}

/// "Compressed-Flag" and "Message-Length".
const PREFIX: usize = 5;

impl<R: Inbound> Requests<R> {
    /// Creates the requests of a body. `headers` are those of the request with that body.
    ///
    /// # Errors
    ///
    /// Returns an error if messages are compressed, which is unsupported.
    pub(super) fn new(
        headers: &HeaderMap,
        body: Body,
        limits: RequestLimits,
    ) -> Result<Self, Status> {
        const ENCODING: &str = "grpc-encoding";
        const ACCEPTED: &str = "grpc-accept-encoding";
        const NONE: &str = "identity";
        if headers
            .get(ENCODING)
            .is_some_and(|encoding| encoding != NONE)
        {
            // <https://github.com/grpc/grpc/blob/master/doc/compression.md>
            let mut status = Status::unimplemented("no compression of messages is supported");
            let accepted = MetadataValue::from_static(NONE);
            status.metadata_mut().insert(ACCEPTED, accepted);
            return Err(status);
        }
        Ok(Self {
            body,
            limits,
            unread: BytesMut::new(),
            request: PhantomData,
        })
    }

    /// Returns the next request, or `None` after the last. Nothing is lost if the future is dropped.
    pub(super) async fn next(&mut self) -> Result<Option<R>, Status> {
        loop {
            if let Some(message) = self.whole_message()? {
                return self.decode(message).map(Some);
            }
            match self.body.frame().await {
                Some(Ok(frame)) => {
                    if let Ok(data) = frame.into_data() {
                        self.unread.extend_from_slice(&data);
                    }
                }
                Some(Err(error)) => {
                    let status = Status::from_error(error.into());
                    return match status.code() {
                        // The client sends and receives nothing more.
                        Code::Cancelled => Ok(None),
                        _ => Err(status),
                    };
                }
                None if self.unread.is_empty() => return Ok(None),
                None => return Err(Status::internal("the last message is not whole")),
            }
        }
    }

    /// Returns the only request of a unary call.
    pub(super) async fn only(&mut self) -> Result<R, Status> {
        // <https://grpc.github.io/grpc/core/md_doc_statuscodes.html>: "Request cardinality violation".
        let wrong = || Status::unimplemented("this method takes exactly one request");
        let request = self.next().await?.ok_or_else(wrong)?;
        match self.next().await? {
            Some(_) => Err(wrong()),
            None => Ok(request),
        }
    }

    fn whole_message(&mut self) -> Result<Option<Bytes>, Status> {
        let Some(&[flag, a, b, c, d]) = self.unread.first_chunk::<PREFIX>() else {
            return Ok(None);
        };
        if flag != 0 {
            return Err(Status::internal(
                "a message is marked as compressed, but the call names no encoding",
            ));
        }
        let length = usize::try_from(u32::from_be_bytes([a, b, c, d])).unwrap_or(usize::MAX);
        let limit = self.limits.bytes;
        if length > limit {
            return Err(Status::out_of_range(format!(
                "a request may have {limit} bytes, and this one has {length}"
            )));
        }
        if self.unread.len() - PREFIX < length {
            return Ok(None);
        }
        self.unread.advance(PREFIX);
        let message = self.unread.split_to(length).freeze();
        // The beginning of the next one would hold the room of this one.
        if self.unread.len() <= length {
            self.unread = BytesMut::from(&self.unread[..]);
        }
        Ok(Some(message))
    }

    fn decode(&self, message: Bytes) -> Result<R, Status> {
        // An empty name is two bytes on the wire, and dozens when it is decoded.
        let names = names::most_of_a_kind(&message, R::NAMES);
        let limit = self.limits.names;
        if names > limit {
            return Err(Status::resource_exhausted(format!(
                "a request may have {limit} names, and this one has {names}"
            )));
        }
        R::decode(message).map_err(|error| {
            Status::invalid_argument(format!(
                "the request has the wrong form for the method: {error}"
            ))
        })
    }
}

#[cfg(test)]
mod tests {
    use futures_util::stream;
    use hyper::body::Frame;
    use prost::Message;
    use xds_types::pb::envoy::service::discovery::v3::DiscoveryRequest;

    use super::*;

    const LIMITS: RequestLimits = RequestLimits {
        bytes: 1_000,
        names: 3,
    };

    type Pieces = Vec<Result<Frame<Bytes>, Status>>;

    fn requests(pieces: Pieces) -> Requests<DiscoveryRequest> {
        let body = Body::new(http_body_util::StreamBody::new(stream::iter(pieces)));
        Requests::new(&HeaderMap::new(), body, LIMITS).unwrap()
    }

    fn framed(request: &DiscoveryRequest) -> Vec<u8> {
        let message = request.encode_to_vec();
        let length = u32::try_from(message.len()).unwrap();
        [&[0], &length.to_be_bytes()[..], &message].concat()
    }

    fn named(name: &str) -> DiscoveryRequest {
        DiscoveryRequest {
            resource_names: vec![name.to_owned()],
            ..DiscoveryRequest::default()
        }
    }

    fn pieces(bytes: &[u8], of: usize) -> Pieces {
        let pieces = bytes.chunks(of).map(Bytes::copy_from_slice);
        pieces.map(|piece| Ok(Frame::data(piece))).collect()
    }

    async fn all(mut requests: Requests<DiscoveryRequest>) -> Result<Vec<DiscoveryRequest>, Code> {
        let mut all = Vec::new();
        while let Some(request) = requests.next().await.map_err(|status| status.code())? {
            all.push(request);
        }
        Ok(all)
    }

    #[tokio::test]
    async fn messages_are_found_however_they_are_cut() {
        let said = [
            named("a"),
            DiscoveryRequest::default(),
            named(&"b".repeat(900)),
        ];
        let bytes = said.iter().flat_map(framed).collect::<Vec<_>>();
        for length in [1, 2, 4, 5, 6, 7, 100, bytes.len()] {
            let found = all(requests(pieces(&bytes, length))).await;
            assert_eq!(found.as_deref(), Ok(&said[..]), "{length}");
        }
        let mut with_trailers = pieces(&bytes, bytes.len());
        with_trailers.push(Ok(Frame::trailers(HeaderMap::new())));
        assert_eq!(all(requests(with_trailers)).await.as_deref(), Ok(&said[..]));
    }

    #[tokio::test]
    async fn nothing_is_kept_of_what_was_read() {
        let bytes = framed(&named(&"a".repeat(900)));
        let mut all = requests(pieces(&bytes, 10));
        assert!(all.next().await.unwrap().is_some());
        assert_eq!(all.unread.capacity(), 0);
        // The first byte of the next one came with it.
        let bytes = [bytes, vec![0]].concat();
        let mut all = requests(pieces(&bytes, bytes.len()));
        assert!(all.next().await.unwrap().is_some());
        assert_eq!(all.unread.len(), 1);
        assert!(all.unread.capacity() < 100);
    }

    #[tokio::test]
    async fn what_is_no_request_ends_the_stream_with_the_reason() {
        let whole = framed(&named("a"));
        let mut compressed = whole.clone();
        compressed[0] = 1;
        let many = DiscoveryRequest {
            resource_names: vec![String::new(); 4],
            ..DiscoveryRequest::default()
        };
        for (bytes, expected) in [
            (&whole[..3], Code::Internal),
            (&whole[..whole.len() - 1], Code::Internal),
            (&compressed, Code::Internal),
            // A message that is too long is rejected without waiting for its rest.
            (&[0, 0, 0, 3, 233], Code::OutOfRange),
            (&[0, 255, 255, 255, 255], Code::OutOfRange),
            (&[0, 0, 0, 0, 1, 255], Code::InvalidArgument),
            (&framed(&many), Code::ResourceExhausted),
        ] {
            let found = all(requests(pieces(bytes, 7))).await;
            assert_eq!(found, Err(expected), "{bytes:?}");
        }
    }

    #[tokio::test]
    async fn a_client_that_goes_away_has_no_more_to_say_and_other_failures_are_told() {
        let whole = framed(&named("a"));
        for (failure, expected) in [
            (Status::cancelled("gone"), Ok(vec![named("a")])),
            (Status::unavailable("broken"), Err(Code::Unavailable)),
        ] {
            let mut pieces = pieces(&whole, whole.len());
            pieces.push(Err(failure));
            assert_eq!(all(requests(pieces)).await, expected);
        }
    }

    #[tokio::test]
    async fn a_call_has_exactly_one_request() {
        for (count, expected) in [
            (0, Err(Code::Unimplemented)),
            (1, Ok(named("a"))),
            (2, Err(Code::Unimplemented)),
        ] {
            let bytes = framed(&named("a")).repeat(count);
            let only = requests(pieces(&bytes, 1_000)).only().await;
            assert_eq!(only.map_err(|status| status.code()), expected, "{count}");
        }
    }

    #[test]
    fn compression_is_not_offered() {
        let with = |encoding: &'static str| {
            let headers = [("grpc-encoding".parse().unwrap(), encoding.parse().unwrap())];
            let headers: HeaderMap = headers.into_iter().collect();
            Requests::<DiscoveryRequest>::new(&headers, Body::empty(), LIMITS)
        };
        assert!(with("identity").is_ok());
        let rejected = with("gzip").unwrap_err();
        assert_eq!(rejected.code(), Code::Unimplemented);
        let accepted = rejected.metadata().get("grpc-accept-encoding");
        assert_eq!(accepted.unwrap(), "identity");
    }
}
