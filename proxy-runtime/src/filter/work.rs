//! Work of filters that takes time, and what they do with a response later.

use std::collections::VecDeque;
use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use http::HeaderMap;

use super::ResponseEdit;
use crate::BoxError;
use crate::contain::{Panicked, contained_call};

/// Work that ends with a change of a head.
pub(crate) type Work<C> = Pin<Box<dyn Future<Output = Result<C, BoxError>> + Send>>;

/// The change of a response after work.
pub(super) type ResponseChange = Box<dyn FnOnce(&mut ResponseEdit<'_>) + Send>;

/// The change of the trailers of a response.
type TrailerChange = Box<dyn FnOnce(&mut HeaderMap) + Send>;

/// The work of filters on a response that is not done yet.
#[derive(Default)]
pub(crate) struct ResponseWork {
    /// Work that the response waits for, in order.
    waits: VecDeque<Work<ResponseChange>>,
    trailers: Option<Box<TrailerChanges>>,
}

/// Changes of the trailers of a response by filters, in order.
#[derive(Default)]
pub(crate) struct TrailerChanges(Vec<TrailerChange>);

/// The failure of work: an error, or a panic.
#[derive(Debug)]
pub(super) enum WorkFailure {
    Failed(BoxError),
    Panicked(Panicked),
}

impl ResponseWork {
    pub(super) fn wait(&mut self, work: Work<ResponseChange>) {
        self.waits.push_back(work);
    }

    pub(super) fn change_trailers(&mut self, change: TrailerChange) {
        self.trailers.get_or_insert_default().0.push(change);
    }

    /// Returns true if the response has to wait.
    pub(crate) fn is_waiting(&self) -> bool {
        !self.waits.is_empty()
    }

    /// Takes the changes of trailers.
    pub(crate) fn take_trailers(&mut self) -> Option<Box<TrailerChanges>> {
        self.trailers.take()
    }

    /// Ready with the change of the work that comes first.
    pub(super) fn poll(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<ResponseChange, WorkFailure>> {
        let Some(work) = self.waits.front_mut() else {
            return Poll::Ready(Ok(Box::new(|_| ())));
        };
        let polled = match contained_call(|| work.as_mut().poll(cx)) {
            Ok(polled) => ready!(polled).map_err(WorkFailure::Failed),
            Err(panicked) => Err(WorkFailure::Panicked(panicked)),
        };
        self.waits.pop_front();
        Poll::Ready(polled)
    }
}

impl TrailerChanges {
    /// Changes the trailers.
    ///
    /// # Errors
    ///
    /// A change panicked.
    pub(crate) fn apply(self, trailers: &mut HeaderMap) -> Result<(), Panicked> {
        self.0
            .into_iter()
            .try_for_each(|change| contained_call(|| change(trailers)))
    }
}

impl fmt::Debug for ResponseWork {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResponseWork")
            .field("waits", &self.waits.len())
            .field("trailers", &self.trailers)
            .finish()
    }
}

impl fmt::Debug for TrailerChanges {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("TrailerChanges")
            .field(&self.0.len())
            .finish()
    }
}
