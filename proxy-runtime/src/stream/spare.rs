//! Buffers that nobody uses at the moment.

#[cfg(feature = "server")]
use std::cell::Cell;
use std::cell::RefCell;
#[cfg(feature = "server")]
use std::marker::PhantomData;
#[cfg(feature = "server")]
use std::rc::Rc;

use bytes::Bytes;

/// Bytes that a buffer begins with: a head, and most bodies.
pub(crate) const SMALL: usize = 32 * 1024;

/// Bytes of a buffer that a transfer fills again and again. More gains nothing (docs/performance.md).
pub(super) const LARGE: usize = 256 * 1024;

/// Small buffers that a thread keeps: 2 MiB.
const MOST_SMALL: usize = 64;

/// Small buffers of a thread that may be held while nothing is done with them: fewer, so that returning them does not free others.
#[cfg(feature = "server")]
const MOST_HELD: usize = MOST_SMALL / 2;

/// Large buffers that a thread keeps: 1 MiB.
const MOST_LARGE: usize = 4;

/// Bytes that a copy may have.
pub(super) const MOST_COPIED: usize = 1024;

/// Buffers for copies that a thread keeps: 256 KiB.
const MOST_COPIES: usize = 256;

type Buffers = RefCell<Vec<Vec<u8>>>;

thread_local! {
    static COPIES: Buffers = const { RefCell::new(Vec::new()) };
    static SPARE_SMALL: Buffers = const { RefCell::new(Vec::new()) };
    #[cfg(feature = "server")]
    static HELD: Cell<usize> = const { Cell::new(0) };
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

/// The right to hold a small buffer while nothing is done with it. It stays with its thread.
#[cfg(feature = "server")]
#[derive(Debug)]
pub(crate) struct Held(PhantomData<Rc<()>>);

#[cfg(feature = "server")]
impl Held {
    /// That right, unless the thread has granted it too often.
    #[inline]
    pub(crate) fn grant() -> Option<Self> {
        let is_granted = HELD.try_with(|held| {
            let is_granted = held.get() < MOST_HELD;
            held.set(held.get() + usize::from(is_granted));
            is_granted
        });
        is_granted
            .is_ok_and(|is_granted| is_granted)
            .then(|| Self(PhantomData))
    }
}

#[cfg(feature = "server")]
impl Drop for Held {
    #[inline]
    fn drop(&mut self) {
        let _ = HELD.try_with(|held| held.set(held.get() - 1));
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

/// A buffer for a copy, on loan.
struct Copied(Vec<u8>);

/// A copy of up to [`MOST_COPIED`] bytes: of a head, of which parts are kept for as long as something is done with it.
///
/// It takes one block that is small, however often it is shared, where `Bytes` would take one for the bytes and another one
/// as soon as they are shared.
pub(super) fn copy(bytes: &[u8]) -> Bytes {
    let spare = COPIES.try_with(|copies| copies.borrow_mut().pop());
    let mut buffer = match spare {
        Ok(Some(buffer)) => buffer,
        _ => Vec::with_capacity(MOST_COPIED),
    };
    buffer.extend_from_slice(bytes);
    Bytes::from_owner(Copied(buffer))
}

impl AsRef<[u8]> for Copied {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl Drop for Copied {
    fn drop(&mut self) {
        let mut buffer = std::mem::take(&mut self.0);
        buffer.clear();
        // A thread that ends has no use for it.
        let _ = COPIES.try_with(|copies| {
            let mut copies = copies.borrow_mut();
            if copies.len() < MOST_COPIES && buffer.capacity() == MOST_COPIED {
                copies.push(buffer);
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_live_as_long_as_their_parts_and_leave_nothing_behind() {
        let first = copy(b"secret and more");
        let part = first.slice(7..);
        drop(first);
        let second = copy(b"other");
        assert_eq!((&part[..], &second[..]), (&b"and more"[..], &b"other"[..]));
        drop(part);
        let third = copy(b"");
        assert!(third.is_empty());
        drop((second, third));
        COPIES.with(|copies| {
            let copies = copies.borrow();
            assert_eq!(copies.len(), 2);
            assert!(copies.iter().all(Vec::is_empty));
        });
    }
}
