use std::future::Future;
use std::panic::Location;
use std::time::Duration;

use super::{GUARD, within};

/// Pause of [`eventually`] between two checks, on tokio's clock.
const REST: Duration = Duration::from_millis(10);

/// Checks `condition` repeatedly until it is true; panics after [`GUARD`] of real time.
///
/// Only for events without a notification: another process, a file, the kernel's view of a socket.
/// Within a process, await a channel, a [`Notify`](tokio::sync::Notify) or the counts of
/// [`Traffic`](crate::Traffic) instead. With a paused clock the pauses take no time, so this is a
/// busy loop.
///
/// Cancel safety: dropping it loses nothing.
#[track_caller]
pub fn eventually<W, F, Fut>(what: W, mut condition: F) -> impl Future<Output = ()> + use<W, F, Fut>
where
    W: Into<String>,
    F: FnMut() -> Fut,
    Fut: Future<Output = bool>,
{
    let caller = Location::caller();
    let what = what.into();
    async move {
        let asked = within(GUARD, async {
            while !condition().await {
                tokio::time::sleep(REST).await;
            }
        });
        if asked.await.is_err() {
            panic!("did not become true within {GUARD:?} at {caller}: {what}");
        }
    }
}
