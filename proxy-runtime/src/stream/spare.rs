//! Buffers that nobody uses at the moment.

#[cfg(feature = "server")]
use std::cell::Cell;
use std::cell::RefCell;
use std::collections::VecDeque;
#[cfg(feature = "server")]
use std::marker::PhantomData;
#[cfg(feature = "server")]
use std::rc::Rc;

use bytes::{Bytes, BytesMut};

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

/// Bytes of a block that copies share. As much memory as that is held by who keeps a part of a head.
const BLOCK: usize = 8 * 1024;

/// Blocks that a thread keeps: 256 KiB.
const MOST_BLOCKS: usize = 32;

type Buffers = RefCell<Vec<Vec<u8>>>;

thread_local! {
    static COPIES: RefCell<Copies> = RefCell::new(Copies {
        current: BytesMut::with_capacity(BLOCK),
        full: VecDeque::new(),
    });
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

/// Blocks that copies are put into, one behind the other.
struct Copies {
    current: BytesMut,
    /// Those that are full, the oldest first: parts of them may still be in use.
    full: VecDeque<BytesMut>,
}

impl Copies {
    /// A block with room for so many bytes in place of the current one: the oldest, if nobody has a part of it any more. One
    /// of which somebody keeps a part for long is freed with that part.
    #[cold]
    fn turn(&mut self, room: usize) {
        let mut oldest = self.full.pop_front();
        let is_free = oldest
            .as_mut()
            .is_some_and(|oldest| oldest.try_reclaim(room));
        let block = match oldest {
            Some(oldest) if is_free => oldest,
            held => {
                if self.full.len() + 1 < MOST_BLOCKS {
                    self.full.extend(held);
                }
                BytesMut::with_capacity(BLOCK)
            }
        };
        self.full
            .push_back(std::mem::replace(&mut self.current, block));
    }
}

/// A copy of up to [`MOST_COPIED`] bytes: of a head, of which parts are kept for as long as something is done with it.
///
/// Heads share blocks, so that most of them take none of their own, however often they are shared.
pub(super) fn copy(bytes: &[u8]) -> Bytes {
    let copied = COPIES.try_with(|copies| {
        let copies = &mut *copies.borrow_mut();
        if copies.current.capacity() < bytes.len() {
            copies.turn(bytes.len());
        }
        copies.current.extend_from_slice(bytes);
        copies.current.split().freeze()
    });
    copied.unwrap_or_else(|_| Bytes::copy_from_slice(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How many blocks there are, and where a copy begins.
    fn place_of(copy: &Bytes) -> (usize, *const u8) {
        let blocks = COPIES.with(|copies| copies.borrow().full.len() + 1);
        (blocks, copy.as_ptr())
    }

    #[test]
    fn copies_are_apart_and_live_as_long_as_their_parts() {
        let first = copy(b"secret and more");
        let part = first.slice(7..);
        let second = copy(b"other");
        drop(first);
        assert_eq!((&part[..], &second[..]), (&b"and more"[..], &b"other"[..]));
        assert!(copy(b"").is_empty());
        // As many as fill all blocks several times do not touch it.
        for _ in 0..4 * MOST_BLOCKS * BLOCK / MOST_COPIED {
            assert_eq!(copy(&[7; MOST_COPIED]), [7; MOST_COPIED].as_slice());
        }
        assert_eq!((&part[..], &second[..]), (&b"and more"[..], &b"other"[..]));
    }

    #[test]
    fn blocks_of_which_nobody_has_a_part_are_used_again() {
        let mut seen = std::collections::BTreeSet::new();
        for _ in 0..4 * MOST_BLOCKS * BLOCK / MOST_COPIED {
            seen.insert(place_of(&copy(&[7; MOST_COPIED])).1);
        }
        assert!(seen.len() <= 2 * BLOCK / MOST_COPIED, "{}", seen.len());
    }

    #[test]
    fn only_so_many_blocks_are_kept() {
        let mut kept = Vec::new();
        for _ in 0..4 * MOST_BLOCKS * BLOCK / MOST_COPIED {
            kept.push(copy(&[7; MOST_COPIED]));
            assert!(place_of(kept.last().unwrap()).0 <= MOST_BLOCKS + 1);
        }
        assert!(kept.iter().all(|kept| **kept == [7; MOST_COPIED]));
    }
}
