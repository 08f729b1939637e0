//! What one exchange needs and the next one can use again.

use std::cell::RefCell;
use std::ops::{Deref, DerefMut};

use crate::http1::HeadTable;

/// How many of each a thread keeps.
const MOST: usize = 64;

/// Bytes of a buffer that is worth keeping.
const LARGEST: usize = 16 * 1024;

/// Bytes that most heads of requests have room in.
const USUAL: usize = 2 * 1024;

thread_local! {
    static TABLES: RefCell<Vec<HeadTable>> = const { RefCell::new(Vec::new()) };
    static OUTPUTS: RefCell<Vec<Vec<u8>>> = const { RefCell::new(Vec::new()) };
}

/// A table that is lent for one message.
#[derive(Debug)]
pub(crate) struct Table(HeadTable);

impl Table {
    pub(crate) fn lend() -> Self {
        let spare = TABLES.try_with(|tables| tables.borrow_mut().pop());
        Self(spare.ok().flatten().unwrap_or_default())
    }
}

impl Deref for Table {
    type Target = HeadTable;

    fn deref(&self) -> &HeadTable {
        &self.0
    }
}

impl DerefMut for Table {
    fn deref_mut(&mut self) -> &mut HeadTable {
        &mut self.0
    }
}

impl Drop for Table {
    fn drop(&mut self) {
        let mut table = std::mem::take(&mut self.0);
        // It may have been given up within a head.
        table.clear();
        table.trim();
        keep(&TABLES, table);
    }
}

/// A buffer for what is written, lent for one request.
#[derive(Debug)]
pub(crate) struct Output(Vec<u8>);

impl Output {
    pub(crate) fn lend() -> Self {
        let spare = OUTPUTS.try_with(|outputs| outputs.borrow_mut().pop());
        let spare = spare.ok().flatten();
        Self(spare.unwrap_or_else(|| Vec::with_capacity(USUAL)))
    }
}

impl Deref for Output {
    type Target = Vec<u8>;

    fn deref(&self) -> &Vec<u8> {
        &self.0
    }
}

impl DerefMut for Output {
    fn deref_mut(&mut self) -> &mut Vec<u8> {
        &mut self.0
    }
}

impl Drop for Output {
    fn drop(&mut self) {
        let mut output = std::mem::take(&mut self.0);
        output.clear();
        if output.capacity() <= LARGEST {
            keep(&OUTPUTS, output);
        }
    }
}

fn keep<T>(spare: &'static std::thread::LocalKey<RefCell<Vec<T>>>, value: T) {
    // A thread that ends has no use for it.
    let _ = spare.try_with(|spare| {
        let mut spare = spare.borrow_mut();
        if spare.len() < MOST {
            spare.push(value);
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_is_not_large() {
        for (grown, kept) in [(100, 100), (1000, 32)] {
            drop(Table(HeadTable::grown_to(grown)));
            assert_eq!(Table::lend().room(), kept);
        }
        for (grown, is_kept) in [(LARGEST + 1, false), (LARGEST, true)] {
            drop(Output(Vec::with_capacity(grown)));
            assert_eq!(Output::lend().capacity() >= LARGEST, is_kept);
        }
    }
}
