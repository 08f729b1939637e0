//! Buffers that nobody uses at the moment.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;

use bytes::{Bytes, BytesMut};

use crate::spare::{Lend, Spare};

/// Bytes of a buffer that a request's head is written into. Who waits for a response may hold one.
pub(crate) const HEAD: usize = 2 * 1024;

/// The same for a long head.
pub(crate) const LONG_HEAD: usize = 8 * 1024;

/// Bytes that a buffer for what is read begins with: a head, and most bodies.
pub(crate) const SMALL: usize = 32 * 1024;

/// Bytes of a buffer that a transfer fills again and again. More gains nothing (benches/COMPARISON.md).
pub(super) const LARGE: usize = 256 * 1024;

/// Small buffers that a thread keeps: 2 MiB.
const MOST_SMALL: usize = 64;

/// Buffers for heads that a thread keeps: 1 MiB, or up to four times as much if they had to grow.
const MOST_HEADS: usize = 512;

/// Buffers for long heads that a thread keeps: 1 MiB, or likewise.
const MOST_LONG_HEADS: usize = 128;

/// Large buffers that a thread keeps: 1 MiB.
const MOST_LARGE: usize = 4;

/// Bytes that a copy may have.
pub(super) const MOST_COPIED: usize = 1024;

/// Bytes of a block that copies share. As much memory as that is held by who keeps a part of a head.
const BLOCK: usize = 8 * 1024;

/// Blocks that a thread keeps: 256 KiB.
const MOST_BLOCKS: usize = 32;

thread_local! {
    static IS_TIGHT: Cell<bool> = const { Cell::new(false) };
    static COPIES: RefCell<Copies> = RefCell::new(Copies {
        current: BytesMut::with_capacity(BLOCK),
        full: VecDeque::new(),
    });
    static HEADS: Spare<Vec<u8>, MOST_HEADS> = const { Spare::new() };
    static LONG_HEADS: Spare<Vec<u8>, MOST_LONG_HEADS> = const { Spare::new() };
    static SMALL_BUFFERS: Spare<Vec<u8>, MOST_SMALL> = const { Spare::new() };
    static LARGE_BUFFERS: Spare<Vec<u8>, MOST_LARGE> = const { Spare::new() };
}

/// Sets whether reads of this thread are to take little memory, however much comes.
#[cfg(feature = "server")]
pub(crate) fn set_tight(is_tight: bool) {
    // A thread that ends reads no more.
    let _ = IS_TIGHT.try_with(|tight| tight.set(is_tight));
}

/// Returns whether they are.
pub(crate) fn is_tight() -> bool {
    IS_TIGHT.try_with(Cell::get).unwrap_or_default()
}

/// An empty buffer with room for `size` bytes, which is one of the four sizes.
#[inline]
pub(crate) fn take(size: usize) -> Vec<u8> {
    let spare = match size {
        HEAD => HEADS.lend(),
        LONG_HEAD => LONG_HEADS.lend(),
        SMALL => SMALL_BUFFERS.lend(),
        _ => LARGE_BUFFERS.lend(),
    };
    spare.unwrap_or_else(|| Vec::with_capacity(size))
}

/// Gives a buffer that has no memory as much as a [`SMALL`] one has.
#[cfg(feature = "server")]
#[inline]
pub(crate) fn lend(buffer: &mut Vec<u8>) {
    if buffer.capacity() == 0 {
        *buffer = take(SMALL);
    }
}

/// Keeps a buffer for the next one who needs it. Those for what is read are freed when they have grown.
#[inline]
pub(crate) fn give_back(mut buffer: Vec<u8>) {
    buffer.clear();
    match buffer.capacity() {
        HEAD..LONG_HEAD => HEADS.keep(buffer),
        LONG_HEAD..SMALL => LONG_HEADS.keep(buffer),
        SMALL => SMALL_BUFFERS.keep(buffer),
        LARGE => LARGE_BUFFERS.keep(buffer),
        _ => {}
    }
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
