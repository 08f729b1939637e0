//! Accounts in places that are lent.

use std::ops::{Deref, DerefMut};

use crate::error::ForwardErrorKind;
use crate::local_pool::{LocalPool, Recycle};
use crate::response::ExchangeRecorder;

/// Places that a thread keeps; as many as requests are under way at a time on a busy one.
const MOST: usize = 256;

/// The recorder of an open request. It is boxed, since it moves from the request to its response.
type RecorderBox = Box<Option<ExchangeRecorder>>;

thread_local! {
    static SPARE: LocalPool<RecorderBox, MOST> = const { LocalPool::new() };
}

/// A recorder that is open. Its place is lent by the thread that opens it, and kept by the one that it ends on.
pub(crate) struct OpenRecorder(Option<RecorderBox>);

const OPEN: &str = "a recorder is there until it is dropped";

impl OpenRecorder {
    pub(crate) fn new(recorder: ExchangeRecorder) -> Self {
        let mut place = SPARE.acquire().unwrap_or_default();
        *place = Some(recorder);
        Self(Some(place))
    }

    /// The response, or the tunnel, has ended.
    pub(crate) fn end(mut self, error: Option<ForwardErrorKind>) {
        self.settle(error);
    }
}

impl Deref for OpenRecorder {
    type Target = ExchangeRecorder;

    fn deref(&self) -> &ExchangeRecorder {
        self.0.as_deref().and_then(Option::as_ref).expect(OPEN)
    }
}

impl DerefMut for OpenRecorder {
    fn deref_mut(&mut self) -> &mut ExchangeRecorder {
        self.0.as_deref_mut().and_then(Option::as_mut).expect(OPEN)
    }
}

impl Drop for OpenRecorder {
    fn drop(&mut self) {
        let Some(mut place) = self.0.take() else {
            return;
        };
        // It may end together with another one, which comes by here itself.
        *place = None;
        SPARE.keep(place);
    }
}
