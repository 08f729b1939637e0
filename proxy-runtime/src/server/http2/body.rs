//! Content of a stream for the typed lane: a [`RequestBody`](crate::server::RequestBody) polls it, and drops it.

use std::task::{Context, Poll, ready};

use bytes::Bytes;
use h2::RecvStream;
use http_body::Frame;

use crate::head::headers::strip_trailers;

/// The body of a request as it comes over a stream.
///
/// The client may send more when what it has sent was used: the window opens by what was handed out when the next part is
/// asked for.
#[derive(Debug)]
pub(crate) struct BodyReader {
    stream: RecvStream,
    /// What `Content-Length` still promises. `h2` sees to it that the promise is kept.
    left: Option<u64>,
    /// Bytes that were handed out last.
    held: usize,
    has_ended: bool,
}

impl BodyReader {
    /// `length`: of the body, if the head told.
    pub(super) fn new(stream: RecvStream, length: Option<u64>) -> Self {
        Self {
            stream,
            left: length,
            held: 0,
            has_ended: false,
        }
    }

    /// Whether nothing more comes.
    pub(crate) fn is_end(&self) -> bool {
        self.has_ended || self.stream.is_end_stream()
    }

    /// Bytes that are to come, if that is known.
    pub(crate) fn left(&self) -> Option<u64> {
        match self.is_end() {
            true => Some(0),
            false => self.left,
        }
    }

    /// The next part.
    pub(crate) fn poll_frame(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, h2::Error>>> {
        if self.has_ended {
            return Poll::Ready(None);
        }
        let held = std::mem::take(&mut self.held);
        if held > 0 {
            // It only fails for more than was received.
            let _ = self.stream.flow_control().release_capacity(held);
        }
        loop {
            match ready!(self.stream.poll_data(cx)) {
                Some(Ok(data)) if data.is_empty() => {}
                Some(Ok(data)) => {
                    self.held = data.len();
                    self.left = self.left.map(|left| left.saturating_sub(data.len() as u64));
                    return Poll::Ready(Some(Ok(Frame::data(data))));
                }
                Some(Err(error)) => {
                    self.has_ended = true;
                    return Poll::Ready(Some(Err(error)));
                }
                None => break,
            }
        }
        let trailers = ready!(self.stream.poll_trailers(cx));
        self.has_ended = true;
        Poll::Ready(match trailers {
            Ok(trailers) => trailers.map(|mut trailers| {
                strip_trailers(&mut trailers);
                Ok(Frame::trailers(trailers))
            }),
            Err(error) => Some(Err(error)),
        })
    }
}
