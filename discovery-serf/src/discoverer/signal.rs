//! The triggers that start a cycle early.

use std::future::pending;

use tokio::sync::{Notify, watch};
use tokio::time::{Instant, sleep_until};

/// The trigger that starts a cycle early: an event, or a time that a cycle has set.
///
/// Only one trigger is remembered, independent of the number of events.
#[derive(Debug)]
pub(super) struct Signal {
    happened: Notify,
    wake: watch::Sender<Option<Instant>>,
}

impl Signal {
    pub(super) fn new() -> Self {
        Self {
            happened: Notify::new(),
            wake: watch::Sender::new(None),
        }
    }

    /// Starts the next cycle early, because of an event.
    pub(super) fn happened(&self) {
        self.happened.notify_one();
    }

    /// Sets the latest start of the next cycle. `None` if it need not start early.
    pub(super) fn wake_at(&self, at: Option<Instant>) {
        self.wake.send_replace(at);
    }

    /// Returns when something has happened since it last did, or the time has come. The time counts once.
    ///
    /// # Cancel safety
    ///
    /// May be dropped at any time without losing anything.
    pub(super) async fn wait(&self) {
        tokio::select! {
            biased;
            () = self.happened.notified() => {}
            () = self.due() => {}
        }
    }

    async fn due(&self) {
        let mut wake = self.wake.subscribe();
        loop {
            let at = *wake.borrow_and_update();
            let time = async {
                match at {
                    Some(at) => sleep_until(at).await,
                    None => pending().await,
                }
            };
            tokio::select! {
                biased;
                () = time => {
                    // A cycle may have set another time meanwhile.
                    let mine = self.wake.send_if_modified(|current| {
                        let mine = *current == at;
                        if mine {
                            *current = None;
                        }
                        mine
                    });
                    if mine {
                        return;
                    }
                }
                // The sender is in `self`, so the channel is open.
                _ = wake.changed() => {}
            }
        }
    }
}
