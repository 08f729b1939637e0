//! Tables that no connection uses at the moment: idle ones have none.

use std::cell::RefCell;

use crate::http1::HeadTable;

/// Tables that a thread keeps; as many as requests are under way at a time on a busy one.
const MOST: usize = 1024;

thread_local! {
    static SPARE: RefCell<Vec<HeadTable>> = const { RefCell::new(Vec::new()) };
}

/// A table with room for fields.
#[inline]
pub(crate) fn take() -> HeadTable {
    let spare = SPARE.try_with(|spare| spare.borrow_mut().pop());
    match spare {
        Ok(Some(table)) => table,
        _ => HeadTable::new(),
    }
}

/// Gives `table` room for fields.
#[inline]
pub(super) fn equip(table: &mut HeadTable) {
    if !table.has_room() {
        *table = take();
    }
}

/// Takes the room back.
#[inline]
pub(super) fn strip(table: &mut HeadTable) {
    if table.has_room() {
        give_back(std::mem::take(table));
    }
}

/// Keeps a table for the next one who needs it.
#[inline]
pub(crate) fn give_back(mut table: HeadTable) {
    table.clear();
    // A thread that ends has no use for it.
    let _ = SPARE.try_with(|spare| {
        let mut spare = spare.borrow_mut();
        if spare.len() < MOST {
            spare.push(table);
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn room_is_given_and_taken_back() {
        let mut table = HeadTable::default();
        equip(&mut table);
        assert!(table.has_room());
        strip(&mut table);
        assert!(!table.has_room());
        SPARE.with_borrow(|spare| assert_eq!(spare.len(), 1));
        equip(&mut table);
        SPARE.with_borrow(|spare| assert!(spare.is_empty(), "it is used again"));
    }
}
