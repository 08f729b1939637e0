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

thread_local! {
    static SPARE: RefCell<Spare> = const {
        RefCell::new(Spare {
            small: Vec::new(),
            large: Vec::new(),
        })
    };
}

struct Spare {
    small: Vec<Vec<u8>>,
    large: Vec<Vec<u8>>,
}

/// An empty buffer with room for `size` bytes, which is one of the two sizes.
#[inline]
pub(crate) fn take(size: usize) -> Vec<u8> {
    let spare = SPARE.try_with(|spare| {
        let mut spare = spare.borrow_mut();
        match size {
            SMALL => spare.small.pop(),
            _ => spare.large.pop(),
        }
    });
    match spare {
        Ok(Some(buffer)) => buffer,
        _ => Vec::with_capacity(size),
    }
}

/// Keeps a buffer for the next one who needs it. Those of other sizes are freed.
#[inline]
pub(crate) fn give_back(mut buffer: Vec<u8>) {
    buffer.clear();
    // A thread that ends has no use for it.
    let _ = SPARE.try_with(|spare| {
        let mut spare = spare.borrow_mut();
        let (kept, most) = match buffer.capacity() {
            SMALL => (&mut spare.small, MOST_SMALL),
            LARGE => (&mut spare.large, MOST_LARGE),
            _ => return,
        };
        if kept.len() < most {
            kept.push(buffer);
        }
    });
}
