use std::future::Future;
use std::panic::Location;
use std::time::Duration;

use super::{GUARD, within};

/// How long [`eventually`] rests between two questions, on tokio's clock.
const REST: Duration = Duration::from_millis(10);

/// Asks `condition` again and again until it is true; panics after [`GUARD`] of real time.
///
/// Only for what cannot announce itself: another process, a file, the kernel's view of a socket. Inside one process a
/// channel, a [`Notify`](tokio::sync::Notify) or the counts of [`Traffic`](crate::Traffic) say when, and should be
/// awaited instead. With a paused clock the rests take no time, so the condition is then asked in a busy loop.
///
/// Cancel safety: nothing is lost when dropped.
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
