//! The table of a connection's head, which idle connections do not have.

use std::cell::RefCell;
use std::ops::{Deref, DerefMut};
use std::sync::LazyLock;

use crate::http1::HeadTable;

/// Tables that a thread keeps; as many as requests are under way at a time on a busy one.
const MOST: usize = 1024;

/// Boxed, since what is lent is the place.
type Places = Vec<Box<HeadTable>>;

thread_local! {
    static SPARE: RefCell<Places> = const { RefCell::new(Vec::new()) };
}

/// What a connection sees that has none.
static EMPTY: LazyLock<HeadTable> = LazyLock::new(HeadTable::default);

/// A table that the thread lends to a connection when that first writes to it.
#[derive(Debug, Default)]
pub(crate) struct LentTable(Option<Box<HeadTable>>);

impl LentTable {
    /// Gives it back to the thread.
    #[inline]
    pub(super) fn give_back(&mut self) {
        let Some(mut table) = self.0.take() else {
            return;
        };
        table.clear();
        table.trim();
        // A thread that ends has no use for it.
        let _ = SPARE.try_with(|spare| {
            let mut spare = spare.borrow_mut();
            if spare.len() < MOST {
                spare.push(table);
            }
        });
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
            let spare = SPARE.try_with(|spare| spare.borrow_mut().pop());
            match spare {
                Ok(Some(table)) => table,
                _ => Box::new(HeadTable::new()),
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_is_lent_when_it_is_written_to_and_used_again() {
        let mut table = LentTable::default();
        assert!(table.fields().is_empty() && table.0.is_none());
        table.clear();
        assert!(table.0.is_some());
        table.give_back();
        assert!(table.0.is_none());
        SPARE.with_borrow(|spare| assert_eq!(spare.len(), 1));
        table.clear();
        SPARE.with_borrow(|spare| assert!(spare.is_empty()));
    }

    #[test]
    fn what_is_kept_is_not_large() {
        for (grown, kept) in [(100, 100), (1000, 32)] {
            let mut table = LentTable(Some(Box::new(HeadTable::grown_to(grown))));
            table.give_back();
            SPARE.with_borrow_mut(|spare| assert_eq!(spare.pop().unwrap().room(), kept));
        }
    }
}
