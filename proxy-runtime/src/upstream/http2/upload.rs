//! The body of a request on a stream of HTTP/2.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use h2::{Reason, SendStream};
use http_body::Body;
use tokio::task::JoinHandle;

use crate::progress::OutgoingBody;

/// The body of a request on its way. It asks the client for more when the destination's windows and the send buffer
/// have room, and ends when all of it was sent or the destination wants no more. A body that breaks off resets the
/// stream.
pub(super) struct Http2Upload {
    stream: SendStream<Bytes>,
    body: OutgoingBody,
    /// Data that was taken and not sent yet.
    data: Bytes,
}

/// The task that goes on with an upload. Dropped, it ends it.
#[derive(Debug)]
pub(super) struct UploadTask(JoinHandle<()>);

impl Http2Upload {
    pub(super) fn new(stream: SendStream<Bytes>, body: OutgoingBody) -> Self {
        Self {
            stream,
            body,
            data: Bytes::new(),
        }
    }

    /// Sends what can be sent at once, and has a task send the rest.
    pub(super) fn begin(mut self, cx: &mut Context<'_>) -> Option<UploadTask> {
        if Pin::new(&mut self).poll(cx).is_ready() {
            return None;
        }
        Some(UploadTask(tokio::spawn(self)))
    }

    /// Waits until something can be sent. Ready with how much; `None` if the destination wants no more.
    fn poll_room(&mut self, cx: &mut Context<'_>) -> Poll<Option<usize>> {
        self.stream.reserve_capacity(self.data.len().max(1));
        loop {
            let room = self.stream.capacity();
            if room > 0 {
                // A destination that wants no more is heard while the client says nothing.
                return match self.stream.poll_reset(cx) {
                    Poll::Ready(_) => Poll::Ready(None),
                    Poll::Pending => Poll::Ready(Some(room)),
                };
            }
            match self.stream.poll_capacity(cx) {
                Poll::Ready(Some(Ok(_))) => {}
                Poll::Ready(Some(Err(_)) | None) => return Poll::Ready(None),
                Poll::Pending => {
                    self.body.wait_for_destination();
                    return Poll::Pending;
                }
            }
        }
    }

    fn send(&mut self, data: Bytes, is_last: bool) -> Result<(), h2::Error> {
        let length = data.len() as u64;
        self.stream.send_data(data, is_last)?;
        self.body.sent(length);
        self.body.has_moved();
        Ok(())
    }

    fn poll_all(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), h2::Error>> {
        loop {
            let Some(room) = ready!(self.poll_room(cx)) else {
                self.body.broke_at_destination();
                return Poll::Ready(Ok(()));
            };
            if self.data.is_empty() {
                let frame = match ready!(self.body.poll_part(cx)) {
                    Some(Ok(frame)) => frame,
                    Some(Err(_)) => {
                        // RFC 9113 section 7: the stream is not needed any more.
                        self.stream.send_reset(Reason::CANCEL);
                        return Poll::Ready(Ok(()));
                    }
                    None => {
                        let ended = self.stream.send_data(Bytes::new(), true);
                        self.body.end();
                        return Poll::Ready(ended);
                    }
                };
                match frame.into_data() {
                    Ok(data) => {
                        let is_last = data.is_empty() && self.body.is_end_stream();
                        self.data = data;
                        if !is_last {
                            // There may be room for more of it than was asked for.
                            continue;
                        }
                    }
                    Err(frame) => {
                        let trailers = frame.into_trailers().unwrap_or_default();
                        self.stream.reserve_capacity(0);
                        let ended = self.stream.send_trailers(trailers);
                        self.body.end();
                        return Poll::Ready(ended);
                    }
                }
            }
            let part = self.data.split_to(room.min(self.data.len()));
            let is_last = self.data.is_empty() && self.body.is_end_stream();
            self.send(part, is_last)?;
            if is_last {
                self.body.end();
                return Poll::Ready(Ok(()));
            }
        }
    }
}

impl Future for Http2Upload {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        // Whatever breaks the stream is known to who waits for the response.
        self.get_mut().poll_all(cx).map(drop)
    }
}

impl fmt::Debug for Http2Upload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Http2Upload")
            .field("body", &self.body)
            .finish_non_exhaustive()
    }
}

impl UploadTask {
    /// Waits until it has ended.
    pub(super) async fn ended(&mut self) {
        // It cannot have been cancelled, and a panic was reported.
        let _ = (&mut self.0).await;
    }
}

impl Drop for UploadTask {
    fn drop(&mut self) {
        self.0.abort();
    }
}
