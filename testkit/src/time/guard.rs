use std::future::Future;
use std::panic::Location;
use std::time::Duration;

use super::within;

/// The real time after which a guard considers a test hung: 60 s.
///
/// Far more than any normal wait on loopback takes, even on a busy machine. Programs that detect failures by themselves
/// need half of it there.
pub const GUARD: Duration = Duration::from_secs(60);

/// Awaits `future`, and panics if it is still pending after [`GUARD`] of real time.
///
/// `what` completes the sentence "gave up waiting for …". The panic names the caller's line.
///
/// Cancel safety: dropping the returned future drops `future`.
#[track_caller]
pub fn guarded<W, F>(what: W, future: F) -> impl Future<Output = F::Output> + use<W, F>
where
    W: Into<String>,
    F: Future,
{
    let caller = Location::caller();
    let what = what.into();
    async move {
        match within(GUARD, future).await {
            Ok(output) => output,
            Err(elapsed) => panic!("gave up waiting for {what} at {caller}: {elapsed}"),
        }
    }
}
