//! A source whose states a program sets.

use async_trait::async_trait;
use tokio::sync::watch;

use super::{Source, SourceError};

/// The setter of a [`MemorySource`]'s states.
#[derive(Clone, Debug)]
pub struct Publisher<T> {
    states: watch::Sender<Vec<T>>,
}

/// A source whose states a program sets itself. After its [`Publisher`] was dropped it never changes.
#[derive(Debug)]
pub struct MemorySource<T> {
    states: watch::Receiver<Vec<T>>,
    is_first: bool,
}

/// Creates a source with a first state, and the publisher of later ones.
pub fn memory<T>(first: Vec<T>) -> (Publisher<T>, MemorySource<T>) {
    let (sender, states) = watch::channel(first);
    (
        Publisher { states: sender },
        MemorySource {
            states,
            is_first: true,
        },
    )
}

impl<T> Publisher<T> {
    /// Sets the state.
    pub fn publish(&self, state: Vec<T>) {
        self.states.send_replace(state);
    }
}

#[async_trait]
impl<T: Clone + Send + Sync> Source<T> for MemorySource<T> {
    async fn next(&mut self) -> Result<Vec<T>, SourceError> {
        if !self.is_first && self.states.changed().await.is_err() {
            // The publisher was dropped, so the state never changes again.
            return std::future::pending().await;
        }
        self.is_first = false;
        Ok(self.states.borrow_and_update().clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_latest_state_is_returned_once() {
        let (publisher, mut source) = memory(vec![1]);
        assert_eq!(source.next().await.unwrap(), [1]);
        publisher.publish(vec![2]);
        publisher.publish(vec![3]);
        assert_eq!(source.next().await.unwrap(), [3]);
        drop(publisher);
        let waits = tokio::time::timeout(std::time::Duration::from_millis(10), source.next());
        assert!(waits.await.is_err());
    }
}
