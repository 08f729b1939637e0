//! An exchange as its caller sees it: a future of the response, and then the response's body.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{Response, StatusCode};
use http_body::{Frame, SizeHint};
use tokio::runtime::Handle;

use super::slot::{ResponseSlot, Taken};
use crate::error::ForwardErrorKind;
use crate::pooled_future::PooledFuture;
use crate::response::ProxyBody;

/// An exchange that writes its response into a [`ResponseSlot`]. Dropping it cancels the request at the destination.
pub(crate) struct Exchange {
    future: PooledFuture<()>,
    /// `None` after the end.
    slot: Option<Arc<ResponseSlot>>,
}

/// The body of an exchange's response. Each poll continues the exchange in both directions.
///
/// Dropping it cancels the request at the destination, unless the response is complete: then a task sends the rest of
/// the request.
pub(crate) struct ExchangeBody {
    /// `None` after its end.
    future: Option<PooledFuture<()>>,
    slot: Option<Arc<ResponseSlot>>,
    /// The part that was polled last.
    part: Taken,
    /// Bytes that the length of the body promises.
    left: Option<u64>,
}

impl Exchange {
    /// The exchange that `make` makes. It must write its response into the slot.
    pub(crate) fn new<F>(make: impl FnOnce(Arc<ResponseSlot>) -> F) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let slot = ResponseSlot::acquire();
        Self {
            future: PooledFuture::new(|| make(Arc::clone(&slot))),
            slot: Some(slot),
        }
    }
}

impl Future for Exchange {
    type Output = Response<ProxyBody>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Response<ProxyBody>> {
        let this = &mut *self;
        let has_ended = Pin::new(&mut this.future).poll(cx).is_ready();
        let Some(slot) = &this.slot else {
            return Poll::Pending;
        };
        let Some((head, length, held)) = slot.take_head() else {
            return match has_ended {
                true => Poll::Ready(without_head()),
                false => Poll::Pending,
            };
        };
        let mut part = slot.take_rest();
        if part.is_tunnel {
            // A task of its own carries the tunnel when the client has got the response. What the policies hold for the
            // request is held until the tunnel has ended.
            let tunnel = this.future.take();
            tokio::spawn(async move {
                tunnel.await;
                drop(held);
            });
            this.slot = None;
            return Poll::Ready(head.map(|()| ProxyBody::empty()));
        }
        let is_whole = has_ended && part.end == Some(Ok(())) && part.trailers.is_none();
        let mut body = match part.data.take() {
            None if is_whole => ProxyBody::empty(),
            // A text has a length, which is for the destination to tell.
            Some(data) if is_whole && length.is_some() => ProxyBody::text(data),
            data => ProxyBody::exchange(ExchangeBody {
                future: (!has_ended).then(|| this.future.take()),
                slot: this.slot.take(),
                part: Taken { data, ..part },
                left: length,
            }),
        };
        if !held.is_empty() {
            body.on_end(move |_| drop(held));
        }
        Poll::Ready(head.map(|()| body))
    }
}

impl Drop for Exchange {
    fn drop(&mut self) {
        // The future first: it refers to the slot, which the pool takes only without other owners.
        drop(self.future.take());
        if let Some(slot) = self.slot.take() {
            ResponseSlot::release(slot);
        }
    }
}

/// The response of an exchange that ended without one, which none does.
#[cold]
fn without_head() -> Response<ProxyBody> {
    let mut response = Response::new(ProxyBody::empty());
    *response.status_mut() = StatusCode::BAD_GATEWAY;
    response
}

impl ExchangeBody {
    /// Ready with the next frame, or with the kind of the error that ends the response.
    pub(super) fn poll_frame(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, ForwardErrorKind>>> {
        let part = &mut self.part;
        if part.data.is_none()
            && part.trailers.is_none()
            && part.end.is_none()
            && let (Some(future), Some(slot)) = (&mut self.future, &self.slot)
        {
            let has_ended = Pin::new(future).poll(cx).is_ready();
            *part = slot.take_rest();
            if has_ended {
                self.future = None;
                // An exchange that recorded no end has not completed its response.
                part.end
                    .get_or_insert(Err(ForwardErrorKind::ResponseBodyCanceled));
            }
        }
        if let Some(data) = part.data.take() {
            let length = data.len() as u64;
            self.left = self.left.map(|left| left.saturating_sub(length));
            return Poll::Ready(Some(Ok(Frame::data(data))));
        }
        if let Some(trailers) = part.trailers.take() {
            return Poll::Ready(Some(Ok(Frame::trailers(*trailers))));
        }
        match part.end {
            Some(Ok(())) => Poll::Ready(None),
            Some(Err(kind)) => Poll::Ready(Some(Err(kind))),
            None => Poll::Pending,
        }
    }

    /// Returns true if all content was taken. Trailers may be left, since not every client can receive them.
    pub(super) fn is_whole(&self) -> bool {
        self.part.data.is_none() && self.part.end == Some(Ok(()))
    }

    /// Returns true if nothing is left, as far as is known without polling.
    pub(super) fn has_ended(&self) -> bool {
        self.is_whole() && self.part.trailers.is_none()
    }

    pub(super) fn size_hint(&self) -> SizeHint {
        match self.left {
            Some(left) => SizeHint::with_exact(left),
            None if self.has_ended() => SizeHint::with_exact(0),
            None => SizeHint::default(),
        }
    }
}

impl Drop for ExchangeBody {
    fn drop(&mut self) {
        // The response is complete, and the destination still takes the request.
        if self.part.end == Some(Ok(()))
            && let Some(future) = self.future.take()
            && let Ok(runtime) = Handle::try_current()
        {
            runtime.spawn(future);
        }
        // Ended, failed, or without a runtime to continue on.
        drop(self.future.take());
        if let Some(slot) = self.slot.take() {
            ResponseSlot::release(slot);
        }
    }
}
