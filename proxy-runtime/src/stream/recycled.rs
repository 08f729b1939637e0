//! Pools of unused buffers, one set per thread.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;

use bytes::{Bytes, BytesMut};

use crate::local_pool::{LocalPool, Recycle};

/// Bytes of a buffer for the head of a request. A request that waits for its response may hold one.
pub(crate) const HEAD: usize = 2 * 1024;

/// Bytes of a buffer for the head of a response whose client takes nothing. Allocated for it, and freed with it.
pub(super) const LITTLE: usize = 512;

/// Bytes of a buffer for a long head.
pub(crate) const LONG_HEAD: usize = 8 * 1024;

/// Initial bytes of a read buffer: enough for a head, and for most bodies.
pub(crate) const SMALL: usize = 32 * 1024;

/// Bytes of a buffer for a continuous transfer to a client that has others: as much as a stream of HTTP/2 passes on at
/// once.
pub(super) const MEDIUM: usize = 64 * 1024;

/// Bytes of a buffer for a continuous transfer. More gains nothing (benches/COMPARISON.md).
pub(super) const LARGE: usize = 256 * 1024;

/// Maximum of small buffers in a thread's pool: 2 MiB.
const MOST_SMALL: usize = 64;

/// Maximum of buffers for heads in a thread's pool: 1 MiB, or up to four times as much if they had
/// to grow.
const MOST_HEADS: usize = 512;

/// Maximum of buffers for long heads in a thread's pool: 1 MiB, or up to four times as much.
const MOST_LONG_HEADS: usize = 128;

/// Maximum of buffers of medium size in a thread's pool: 256 KiB.
const MOST_MEDIUM: usize = 4;

/// Maximum of large buffers in a thread's pool: 1 MiB.
const MOST_LARGE: usize = 4;

/// Maximum bytes of a copy.
pub(super) const MOST_COPIED: usize = 1024;

/// Bytes of a block that copies share. A single part of a head can keep this much memory alive.
const BLOCK: usize = 8 * 1024;

/// Maximum of blocks in a thread's pool: 256 KiB.
const MOST_BLOCKS: usize = 32;

thread_local! {
    static IS_TIGHT: Cell<bool> = const { Cell::new(false) };
    static TAKING: Cell<Taking> = const { Cell::new(Taking::All) };
    static COPIES: RefCell<Copies> = RefCell::new(Copies {
        current: BytesMut::with_capacity(BLOCK),
        full: VecDeque::new(),
    });
    static HEADS: LocalPool<Vec<u8>, MOST_HEADS> = const { LocalPool::new() };
    static LONG_HEADS: LocalPool<Vec<u8>, MOST_LONG_HEADS> = const { LocalPool::new() };
    static SMALL_BUFFERS: LocalPool<Vec<u8>, MOST_SMALL> = const { LocalPool::new() };
    static MEDIUM_BUFFERS: LocalPool<Vec<u8>, MOST_MEDIUM> = const { LocalPool::new() };
    static LARGE_BUFFERS: LocalPool<Vec<u8>, MOST_LARGE> = const { LocalPool::new() };
}

/// Sets whether reads of this thread should use little memory.
#[cfg(feature = "server")]
pub(crate) fn set_tight(is_tight: bool) {
    // A thread at its end makes no more reads.
    let _ = IS_TIGHT.try_with(|tight| tight.set(is_tight));
}

/// Returns true if reads of this thread should use little memory.
pub(crate) fn is_tight() -> bool {
    IS_TIGHT.try_with(Cell::get).unwrap_or_default()
}

/// The amount that the client takes for which this thread works at present, as far as it is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Taking {
    /// All that comes. Also the amount of a client of which nothing is known.
    All,
    /// An amount below the largest size of a read, since the client has other responses in progress.
    #[cfg_attr(
        not(all(feature = "http2", feature = "server")),
        expect(dead_code, reason = "for connections that several responses share")
    )]
    Much,
    /// A small amount, since the socket of the client is full: part of a large buffer would hold all of it until the
    /// socket has accepted that part.
    #[cfg_attr(
        not(all(feature = "http2", feature = "server")),
        expect(dead_code, reason = "for connections that several responses share")
    )]
    Little,
    /// Little more than heads, since the connection of the client holds enough for a full socket.
    Nothing,
}

/// Calls `poll`, which works for a client that takes so much.
#[cfg(all(feature = "http2", feature = "server"))]
#[inline]
pub(crate) fn while_taking<R>(taking: Taking, poll: impl FnOnce() -> R) -> R {
    struct Restore(Taking);
    impl Drop for Restore {
        fn drop(&mut self) {
            let _ = TAKING.try_with(|now| now.set(self.0));
        }
    }
    if taking == Taking::All {
        return poll();
    }
    let before = TAKING.try_with(|now| now.replace(taking));
    let _restore = Restore(before.unwrap_or(Taking::All));
    poll()
}

/// Returns the amount that the client takes for which this thread works at present.
#[inline]
pub(crate) fn taking() -> Taking {
    TAKING.try_with(Cell::get).unwrap_or(Taking::All)
}

/// Acquires an empty buffer of `size` bytes, which must be one of the five sizes.
#[inline]
pub(crate) fn take(size: usize) -> Vec<u8> {
    let spare = match size {
        HEAD => HEADS.acquire(),
        LONG_HEAD => LONG_HEADS.acquire(),
        SMALL => SMALL_BUFFERS.acquire(),
        MEDIUM => MEDIUM_BUFFERS.acquire(),
        _ => LARGE_BUFFERS.acquire(),
    };
    spare.unwrap_or_else(|| Vec::with_capacity(size))
}

/// Gives a buffer without memory the size of [`SMALL`].
#[cfg(feature = "server")]
#[inline]
pub(crate) fn acquire(buffer: &mut Vec<u8>) {
    if buffer.capacity() == 0 {
        *buffer = take(SMALL);
    }
}

/// Releases a buffer to the pool. Read buffers that have grown are freed.
#[inline]
pub(crate) fn release(mut buffer: Vec<u8>) {
    buffer.clear();
    match buffer.capacity() {
        // Buffers for heads may have grown, and are kept nevertheless.
        HEAD..LONG_HEAD => HEADS.keep(buffer),
        LONG_HEAD..SMALL => LONG_HEADS.keep(buffer),
        SMALL => SMALL_BUFFERS.keep(buffer),
        MEDIUM => MEDIUM_BUFFERS.keep(buffer),
        LARGE => LARGE_BUFFERS.keep(buffer),
        _ => {}
    }
}

/// Blocks that hold copies, one behind the other.
struct Copies {
    current: BytesMut,
    /// Full blocks, the oldest first. Parts of them may still be in use.
    full: VecDeque<BytesMut>,
}

impl Copies {
    /// Replaces the current block by one with `room` bytes: the oldest block if no part of it is in
    /// use. A block with a long-lived part is freed with that part.
    #[cold]
    fn turn(&mut self, room: usize) {
        let mut oldest = self.full.pop_front();
        let is_free = oldest
            .as_mut()
            .is_some_and(|oldest| oldest.try_reclaim(room));
        let block = match oldest {
            Some(oldest) if is_free => oldest,
            held => {
                // Further blocks leave the pool: they are freed with their last part.
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

/// Copies up to [`MOST_COPIED`] bytes, such as a head whose parts live as long as the request.
///
/// Heads share blocks, so most copies need no allocation.
pub(super) fn copy(bytes: &[u8]) -> Bytes {
    let copied = COPIES.try_with(|copies| {
        let copies = &mut *copies.borrow_mut();
        if copies.current.capacity() < bytes.len() {
            copies.turn(bytes.len());
        }
        copies.current.extend_from_slice(bytes);
        copies.current.split().freeze()
    });
    // At the end of a thread its blocks are gone.
    copied.unwrap_or_else(|_| Bytes::copy_from_slice(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Number of blocks, and the address of a copy.
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
        // Filling all blocks several times must not overwrite it.
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
