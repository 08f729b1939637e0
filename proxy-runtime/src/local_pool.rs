//! Memory that a thread keeps from finished requests for new ones.

use std::cell::RefCell;
use std::thread::LocalKey;

/// A pool of up to `MOST` unused values.
///
/// As a `thread_local`, use it with [`acquire`](Recycle::acquire) and [`keep`](Recycle::keep) only.
pub(crate) struct LocalPool<T, const MOST: usize>(RefCell<Vec<T>>);

impl<T, const MOST: usize> LocalPool<T, MOST> {
    pub(crate) const fn new() -> Self {
        Self(RefCell::new(Vec::new()))
    }

    /// One of them.
    #[inline]
    pub(crate) fn take(&self) -> Option<T> {
        self.0.borrow_mut().pop()
    }

    /// Adds one, or returns it if there are enough.
    #[inline]
    pub(crate) fn add(&self, value: T) -> Option<T> {
        let mut spare = self.0.borrow_mut();
        if spare.len() < MOST {
            spare.push(value);
            None
        } else {
            Some(value)
        }
    }

    /// The number of kept values.
    #[cfg(test)]
    pub(crate) fn count(&self) -> usize {
        self.0.borrow().len()
    }
}

/// The pool of a thread.
pub(crate) trait Recycle<T> {
    /// Takes a value from the pool, if there is one.
    fn acquire(&'static self) -> Option<T>;

    /// Keeps a value for later use, unless there are enough, or the thread ends.
    fn keep(&'static self, value: T);
}

impl<T, const MOST: usize> Recycle<T> for LocalKey<LocalPool<T, MOST>> {
    #[inline]
    fn acquire(&'static self) -> Option<T> {
        // A thread that ends has no pool.
        self.try_with(LocalPool::take).ok().flatten()
    }

    #[inline]
    fn keep(&'static self, value: T) {
        // What is too much is dropped when nothing is borrowed any more: it may lend and keep such values itself.
        let _too_much = self.try_with(|spare| spare.add(value));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Keeps another one when it is dropped.
    struct Value(bool);

    impl Drop for Value {
        fn drop(&mut self) {
            if self.0 {
                POOL.keep(Self(false));
            }
        }
    }

    thread_local! {
        static POOL: LocalPool<Value, 2> = const { LocalPool::new() };
    }

    #[test]
    fn only_so_many_are_kept_and_the_others_are_dropped() {
        assert!(POOL.acquire().is_none());
        for _ in 0..4 {
            POOL.keep(Value(false));
        }
        POOL.keep(Value(true));
        assert_eq!(POOL.with(LocalPool::count), 2);
        assert!(POOL.acquire().is_some() && POOL.acquire().is_some());
        assert!(POOL.acquire().is_none());
    }
}
