//! What one exchange needs and the next one can use again.

use std::cell::RefCell;
use std::ops::{Deref, DerefMut};

use crate::http1::HeadTable;
use crate::stream::spare;

/// How many tables a thread keeps.
const MOST: usize = 64;

thread_local! {
    static TABLES: RefCell<Vec<HeadTable>> = const { RefCell::new(Vec::new()) };
}

/// A table that is lent for one message.
#[derive(Debug)]
pub(crate) struct Table(HeadTable);

impl Table {
    pub(crate) fn lend() -> Self {
        let table = TABLES.try_with(|tables| tables.borrow_mut().pop());
        Self(table.ok().flatten().unwrap_or_default())
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
        // A thread that ends has no use for it.
        let _ = TABLES.try_with(|tables| {
            let mut tables = tables.borrow_mut();
            if tables.len() < MOST {
                tables.push(table);
            }
        });
    }
}

/// A buffer for what is written, lent for one request.
#[derive(Debug)]
pub(crate) struct Output(Vec<u8>);

impl Output {
    pub(crate) fn lend() -> Self {
        Self(spare::take(spare::HEAD))
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
        spare::give_back(std::mem::take(&mut self.0));
    }
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
    }
}
