//! The state of exchanges that are over, for those that begin.

use std::cell::RefCell;

use super::exchange::Flow;

/// As many as requests are under way at a time on a busy thread: a third of a MiB, and at most 2 MiB for their tables.
const MOST: usize = 1024;

/// Boxed, since what is lent is the place.
type Places = Vec<Box<Flow>>;

thread_local! {
    static SPARE: RefCell<Places> = const { RefCell::new(Vec::new()) };
}

/// State that an exchange can begin with.
#[inline]
pub(super) fn take() -> Box<Flow> {
    let spare = SPARE.try_with(|spare| spare.borrow_mut().pop());
    match spare {
        Ok(Some(flow)) => flow,
        _ => Box::default(),
    }
}

/// Keeps the state of an exchange that is over.
#[inline]
pub(super) fn give_back(mut flow: Box<Flow>) {
    flow.upload.outbound.rest();
    flow.table.trim();
    // A thread that ends has no use for it.
    let _ = SPARE.try_with(|spare| {
        let mut spare = spare.borrow_mut();
        if spare.len() < MOST {
            spare.push(flow);
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http1::HeadTable;

    #[test]
    fn what_is_kept_is_not_large() {
        for (grown, kept) in [(100, 100), (1000, 32)] {
            let mut flow = take();
            flow.table = HeadTable::grown_to(grown);
            give_back(flow);
            assert_eq!(take().table.room(), kept);
        }
    }
}
