//! Recorders of open requests, in pooled memory.

use std::ops::{Deref, DerefMut};

use crate::error::ForwardErrorKind;
use crate::local_pool::{LocalPool, Recycle};
use crate::response::ExchangeRecorder;

/// Maximum number of unused blocks per thread: the number of concurrent requests on a busy thread.
const MOST: usize = 256;

/// The recorder of an open request. It is boxed, since it moves from the request to its response.
type RecorderBox = Box<Option<ExchangeRecorder>>;

thread_local! {
    static POOL: LocalPool<RecorderBox, MOST> = const { LocalPool::new() };
}

/// The recorder of an open request. Its block comes from the pool of the thread that opens it, and goes to the pool
/// of the thread on which it ends.
pub(crate) struct OpenRecorder(Option<RecorderBox>);

const OPEN: &str = "a recorder is there until it is dropped";

impl OpenRecorder {
    pub(crate) fn new(recorder: ExchangeRecorder) -> Self {
        let mut place = POOL.acquire().unwrap_or_default();
        *place = Some(recorder);
        Self(Some(place))
    }

    /// The response, or the tunnel, has ended.
    pub(crate) fn end(mut self, error: Option<ForwardErrorKind>) {
        self.finish(error);
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
        POOL.keep(place);
    }
}
