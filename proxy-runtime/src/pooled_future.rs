//! Futures in pooled memory blocks.
//!
//! The future in which a request waits is its largest allocation. A thread needs only as many blocks as it has
//! concurrent requests.

use std::any::{Any, TypeId};
use std::cell::RefCell;
use std::pin::Pin;
use std::task::{Context, Poll};

use pin_project_lite::pin_project;

use crate::local_pool::LocalPool;

/// Maximum number of unused blocks of each kind per thread: the number of concurrent requests on a busy thread.
const MOST: usize = 128;

/// The largest block that is kept, in bytes: a thread keeps at most half a MiB of each kind.
const LARGEST: usize = 4 * 1024;

/// A future in a pooled block. The block comes from the pool of the thread that creates it, and goes to the pool of
/// the thread on which it ends.
pub(crate) struct PooledFuture<T>(Option<Pin<Box<dyn PooledSlot<T>>>>);

/// The place of a future of one kind.
trait PooledSlot<T>: Send {
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<T>;

    /// Drops the future, and keeps the block.
    fn release(self: Pin<Box<Self>>);
}

pin_project! {
    struct BlockSlot<F> {
        #[pin]
        future: Option<F>,
    }
}

/// The unused blocks of one kind.
type FreeBlocks<F> = LocalPool<Pin<Box<BlockSlot<F>>>, MOST>;

thread_local! {
    /// The unused blocks by the type of their future. A program has few such types.
    static POOL: RefCell<Vec<(TypeId, Box<dyn Any>)>> = const { RefCell::new(Vec::new()) };
}

impl<T> PooledFuture<T> {
    /// The future that `make` makes.
    pub(crate) fn new<F>(make: impl FnOnce() -> F) -> Self
    where
        F: Future<Output = T> + Send + 'static,
    {
        let spare = POOL.try_with(|spare| pool_of::<F>(&spare.borrow())?.take());
        // `make` is called after the borrow, since it may need a block itself.
        let place = match spare.ok().flatten() {
            Some(mut place) => {
                place.as_mut().project().future.set(Some(make()));
                place
            }
            None => Box::pin(BlockSlot {
                future: Some(make()),
            }),
        };
        Self(Some(place))
    }
}

/// Returns the unused blocks for futures of a type, if there are any.
fn pool_of<F: 'static>(spare: &[(TypeId, Box<dyn Any>)]) -> Option<&FreeBlocks<F>> {
    let kind = TypeId::of::<F>();
    let (_, of_kind) = spare.iter().find(|(of, _)| *of == kind)?;
    of_kind.downcast_ref()
}

impl<F> PooledSlot<F::Output> for BlockSlot<F>
where
    F: Future + Send + 'static,
{
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        match self.project().future.as_pin_mut() {
            Some(future) => future.poll(cx),
            None => Poll::Pending,
        }
    }

    fn release(mut self: Pin<Box<Self>>) {
        // What it holds may make or drop such a future itself.
        self.as_mut().project().future.set(None);
        if size_of::<Self>() > LARGEST {
            return;
        }
        // A thread that ends has no use for it.
        let _ = POOL.try_with(|spare| {
            let mut spare = spare.borrow_mut();
            if let Some(of_kind) = pool_of::<F>(&spare) {
                of_kind.add(self);
            } else {
                let of_kind = FreeBlocks::<F>::new();
                of_kind.add(self);
                spare.push((TypeId::of::<F>(), Box::new(of_kind)));
            }
        });
    }
}

impl<T> PooledFuture<T> {
    /// Moves the future out of its place, and leaves one that never completes.
    pub(crate) fn take(&mut self) -> Self {
        Self(self.0.take())
    }
}

impl<T> Future for PooledFuture<T> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<T> {
        match &mut self.0 {
            Some(place) => place.as_mut().poll(cx),
            None => Poll::Pending,
        }
    }
}

impl<T> Drop for PooledFuture<T> {
    fn drop(&mut self) {
        if let Some(place) = self.0.take() {
            place.release();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::sync::Arc;

    use super::*;

    /// A kind of its own for each size.
    async fn ready<const SIZE: usize>(held: Arc<()>, bytes: [u8; SIZE]) -> usize {
        tokio::task::yield_now().await;
        drop(held);
        bytes.len()
    }

    fn kept() -> Vec<usize> {
        let count = |of_kind: &Box<dyn Any>| {
            fn count_of<F: 'static>(_: impl Fn() -> F, of_kind: &dyn Any) -> Option<usize> {
                of_kind
                    .downcast_ref::<FreeBlocks<F>>()
                    .map(LocalPool::count)
            }
            let small = count_of(|| ready::<1>(Arc::default(), [0; 1]), &**of_kind);
            small.or_else(|| count_of(|| ready::<2>(Arc::default(), [0; 2]), &**of_kind))
        };
        POOL.with(|spare| {
            let spare = spare.borrow();
            spare.iter().filter_map(|(_, kind)| count(kind)).collect()
        })
    }

    #[tokio::test]
    async fn blocks_are_lent_again_to_futures_of_their_kind() {
        let held = Arc::new(());
        for _ in 0..2 {
            let one = PooledFuture::new(|| ready(held.clone(), [0; 1]));
            let two = PooledFuture::new(|| ready(held.clone(), [0; 2]));
            let again = PooledFuture::new(|| ready(held.clone(), [0; 1]));
            assert_eq!((one.await, two.await, again.await), (1, 2, 1));
            assert_eq!(kept(), [2, 1]);
        }
        assert_eq!(Arc::strong_count(&held), 1);
    }

    #[tokio::test]
    async fn a_future_that_is_given_up_is_dropped_at_once() {
        let held = Arc::new(());
        let mut given_up = PooledFuture::new(|| ready(held.clone(), [0; 1]));
        let is_pending = poll_fn(|cx| Poll::Ready(Pin::new(&mut given_up).poll(cx).is_pending()));
        assert!(is_pending.await);
        drop(given_up);
        assert_eq!(Arc::strong_count(&held), 1);
        assert_eq!(kept(), [1]);
    }

    #[tokio::test]
    async fn neither_many_nor_large_ones_are_kept() {
        let many: Vec<_> = (0..2 * MOST)
            .map(|_| PooledFuture::new(|| ready(Arc::default(), [0; 1])))
            .collect();
        drop(many);
        drop(PooledFuture::new(|| ready(Arc::default(), [0; LARGEST])));
        assert_eq!(kept(), [MOST]);
        assert_eq!(POOL.with(|spare| spare.borrow().len()), 1);
    }
}
