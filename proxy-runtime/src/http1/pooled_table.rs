//! Head tables from a pool of the thread.

use std::ops::{Deref, DerefMut};
use std::sync::LazyLock;

use super::HeadTable;
use crate::local_pool::{LocalPool, Recycle};

/// Maximum of tables in a thread's pool: the number of concurrent requests on a busy one.
const MOST: usize = 1024;

thread_local! {
    static POOL: LocalPool<Box<HeadTable>, MOST> = const { LocalPool::new() };
}

/// The value before the first write.
static EMPTY: LazyLock<HeadTable> = LazyLock::new(HeadTable::default);

/// A table that is acquired from the thread's pool at the first write, so that connections waiting
/// for a head hold none.
#[derive(Debug, Default)]
pub(crate) struct PooledTable(Option<Box<HeadTable>>);

impl PooledTable {
    /// Releases the table to the pool.
    #[inline]
    pub(crate) fn release(&mut self) {
        if let Some(mut table) = self.0.take() {
            // The head may have been abandoned.
            table.clear();
            table.trim();
            POOL.keep(table);
        }
    }

    /// Returns true if a table was acquired.
    #[inline]
    #[cfg(test)]
    pub(crate) fn is_acquired(&self) -> bool {
        self.0.is_some()
    }
}

impl Deref for PooledTable {
    type Target = HeadTable;

    #[inline]
    fn deref(&self) -> &HeadTable {
        self.0.as_deref().unwrap_or_else(|| &EMPTY)
    }
}

impl DerefMut for PooledTable {
    #[inline]
    fn deref_mut(&mut self) -> &mut HeadTable {
        self.0.get_or_insert_with(|| {
            let spare = POOL.acquire();
            spare.unwrap_or_else(|| Box::new(HeadTable::new()))
        })
    }
}

impl Drop for PooledTable {
    #[inline]
    fn drop(&mut self) {
        self.release();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_is_acquired_when_it_is_written_to_and_used_again() {
        let mut table = PooledTable::default();
        assert!(table.fields().is_empty() && !table.is_acquired());
        table.clear();
        assert!(table.is_acquired());
        table.release();
        assert!(!table.is_acquired());
        assert_eq!(POOL.with(LocalPool::count), 1);
        table.clear();
        assert_eq!(POOL.with(LocalPool::count), 0);
        drop(table);
        assert_eq!(POOL.with(LocalPool::count), 1);
    }

    #[test]
    fn what_is_kept_is_not_large() {
        for (grown, kept) in [(100, 100), (1000, 32)] {
            drop(PooledTable(Some(Box::new(HeadTable::grown_to(grown)))));
            let table = POOL.acquire().expect("it was given back");
            assert_eq!(table.room(), kept);
        }
    }
}
