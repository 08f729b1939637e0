//! Buffers that nobody uses at the moment.

use std::cell::RefCell;

/// Bytes that a buffer begins with: a head, and most bodies.
pub(crate) const SMALL: usize = 32 * 1024;

/// Bytes of a buffer that a transfer fills again and again. More gains nothing (docs/performance.md).
pub(super) const LARGE: usize = 256 * 1024;

/// Small buffers that a thread keeps: 2 MiB.
const MOST_SMALL: usize = 64;

/// Large buffers that a thread keeps: 1 MiB.
const MOST_LARGE: usize = 4;

type Buffers = RefCell<Vec<Vec<u8>>>;

thread_local! {
    static SPARE_SMALL: Buffers = const { RefCell::new(Vec::new()) };
    static SPARE_LARGE: Buffers = const { RefCell::new(Vec::new()) };
}

/// An empty buffer with room for `size` bytes, which is one of the two sizes.
#[inline]
pub(crate) fn take(size: usize) -> Vec<u8> {
    let spare = match size {
        SMALL => SPARE_SMALL.try_with(|spare| spare.borrow_mut().pop()),
        _ => SPARE_LARGE.try_with(|spare| spare.borrow_mut().pop()),
    };
    match spare {
        Ok(Some(buffer)) => buffer,
        _ => Vec::with_capacity(size),
    }
}

/// Keeps a buffer for the next one who needs it. Those of other sizes are freed.
#[inline]
pub(crate) fn give_back(mut buffer: Vec<u8>) {
    if buffer.capacity() != SMALL {
        return give_back_large(buffer);
    }
    buffer.clear();
    // A thread that ends has no use for it.
    let _ = SPARE_SMALL.try_with(|spare| {
        let mut spare = spare.borrow_mut();
        if spare.len() < MOST_SMALL {
            spare.push(buffer);
        }
    });
}

#[cold]
fn give_back_large(mut buffer: Vec<u8>) {
    if buffer.capacity() != LARGE {
        return;
    }
    buffer.clear();
    let _ = SPARE_LARGE.try_with(|spare| {
        let mut spare = spare.borrow_mut();
        if spare.len() < MOST_LARGE {
            spare.push(buffer);
        }
    });
}
