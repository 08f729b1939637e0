//! A pool of memory for stream futures.

use std::any::Any;
use std::cell::OnceCell;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use crate::local_pool::LocalPool;

/// Maximum of blocks that a worker keeps: the number of open streams on a busy one.
const MOST: usize = 128;

/// A pool of memory blocks for the futures that serve streams, over all connections of a worker.
///
/// Such a future is larger than the sizes that allocators keep at hand.
pub(super) struct Blocks<F>(LocalPool<StreamBlock<F>, MOST>);

type StreamBlock<F> = Pin<Box<Option<F>>>;

impl<F> Default for Blocks<F> {
    fn default() -> Self {
        Self(LocalPool::new())
    }
}

impl<F: 'static> Blocks<F> {
    /// Returns the pool of a worker whose streams are served by `serve`; it is stored in `kept`.
    pub(super) fn of<A>(kept: &OnceCell<Rc<dyn Any>>, _serve: &impl Fn(A) -> F) -> Rc<Self> {
        let kept = kept.get_or_init(|| Rc::new(Self::default()));
        // A worker serves all its streams by one function, so the type is always the same.
        Rc::clone(kept).downcast().unwrap_or_default()
    }
}

/// A future that serves a stream, in a block of the pool.
pub(super) struct PooledTask<F> {
    block: Option<StreamBlock<F>>,
    blocks: Rc<Blocks<F>>,
}

impl<F: Future> PooledTask<F> {
    #[inline]
    pub(super) fn new(blocks: &Rc<Blocks<F>>, serving: F) -> Self {
        let block = match blocks.0.take() {
            Some(mut block) => {
                block.set(Some(serving));
                block
            }
            None => Box::pin(Some(serving)),
        };
        Self {
            block: Some(block),
            blocks: Rc::clone(blocks),
        }
    }

    /// Polls the future. After its end it stays pending.
    #[inline]
    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<F::Output> {
        let block = self.block.as_mut().map(Pin::as_mut);
        match block.and_then(Option::as_pin_mut) {
            Some(serving) => serving.poll(cx),
            None => Poll::Pending,
        }
    }
}

impl<F> Drop for PooledTask<F> {
    fn drop(&mut self) {
        let Some(mut block) = self.block.take() else {
            return;
        };
        // Dropping the future may end other streams.
        block.set(None);
        self.blocks.0.add(block);
    }
}

#[cfg(test)]
mod tests {
    use std::future::{Ready, ready};
    use std::task::Waker;

    use super::*;

    #[test]
    fn a_block_serves_one_stream_after_the_other() {
        let kept = OnceCell::new();
        let blocks = Blocks::of(&kept, &ready::<Rc<u8>>);
        let held = Rc::new(7);
        let at =
            |lent: &PooledTask<Ready<Rc<u8>>>| lent.block.as_ref().map(|block| &raw const **block);
        let first = PooledTask::new(&blocks, ready(Rc::clone(&held)));
        let place = at(&first);
        drop(first);
        assert_eq!(Rc::strong_count(&held), 1, "what was in it is gone");
        let mut second = PooledTask::new(&Blocks::of(&kept, &ready::<Rc<u8>>), ready(Rc::new(8)));
        assert_eq!(at(&second), place);
        let mut cx = Context::from_waker(Waker::noop());
        assert_eq!(second.poll(&mut cx), Poll::Ready(Rc::new(8)));
    }

    #[test]
    fn not_many_are_kept() {
        let blocks = Rc::new(Blocks::default());
        let lent: Vec<_> = (0..2 * MOST)
            .map(|number| PooledTask::new(&blocks, ready(number)))
            .collect();
        drop(lent);
        assert_eq!(blocks.0.count(), MOST);
    }
}
