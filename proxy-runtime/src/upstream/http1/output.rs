//! Recycled write buffers.

use std::ops::{Deref, DerefMut};

use crate::stream::recycled;

/// A write buffer of the thread's pool, used for one request.
#[derive(Debug)]
pub(crate) struct Output(Vec<u8>);

impl Output {
    pub(crate) fn acquire() -> Self {
        Self(recycled::take(recycled::HEAD))
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
        recycled::release(std::mem::take(&mut self.0));
    }
}
