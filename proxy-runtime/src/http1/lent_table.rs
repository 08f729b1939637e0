//! Head tables from a pool of the thread.

use std::ops::{Deref, DerefMut};
use std::sync::LazyLock;

use super::HeadTable;
use crate::spare::{Lend, Spare};

/// Maximum of tables in a thread's pool: the number of concurrent requests on a busy one.
const MOST: usize = 1024;

thread_local! {
    static SPARE: Spare<Box<HeadTable>, MOST> = const { Spare::new() };
}

/// The value before the first write.
static EMPTY: LazyLock<HeadTable> = LazyLock::new(HeadTable::default);

/// A table that is acquired from the thread's pool at the first write, so that connections waiting
/// for a head hold none.
#[derive(Debug, Default)]
pub(crate) struct LentTable(Option<Box<HeadTable>>);

impl LentTable {
    /// Releases the table to the pool.
    #[inline]
    pub(crate) fn give_back(&mut self) {
        if let Some(mut table) = self.0.take() {
            // The head may have been abandoned.
            table.clear();
            table.trim();
            SPARE.keep(table);
        }
    }

    /// Returns true if a table was acquired.
    #[inline]
    pub(crate) fn is_lent(&self) -> bool {
        self.0.is_some()
    }
}

impl Deref for LentTable {
    type Target = HeadTable;

    #[inline]
    fn deref(&self) -> &HeadTable {
        self.0.as_deref().unwrap_or_else(|| &EMPTY)
    }
}

impl DerefMut for LentTable {
    #[inline]
    fn deref_mut(&mut self) -> &mut HeadTable {
        self.0.get_or_insert_with(|| {
            let spare = SPARE.lend();
            spare.unwrap_or_else(|| Box::new(HeadTable::new()))
        })
    }
}

impl Drop for LentTable {
    #[inline]
    fn drop(&mut self) {
        self.give_back();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_is_lent_when_it_is_written_to_and_used_again() {
        let mut table = LentTable::default();
        assert!(table.fields().is_empty() && !table.is_lent());
        table.clear();
        assert!(table.is_lent());
        table.give_back();
        assert!(!table.is_lent());
        assert_eq!(SPARE.with(Spare::count), 1);
        table.clear();
        assert_eq!(SPARE.with(Spare::count), 0);
        drop(table);
        assert_eq!(SPARE.with(Spare::count), 1);
    }

    #[test]
    fn what_is_kept_is_not_large() {
        for (grown, kept) in [(100, 100), (1000, 32)] {
            drop(LentTable(Some(Box::new(HeadTable::grown_to(grown)))));
            let table = SPARE.lend().expect("it was given back");
            assert_eq!(table.room(), kept);
        }
    }
}
