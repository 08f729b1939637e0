//! Containment of foreign code: panics become values, and calls end in time.

use std::any::Any;
use std::future::{Future, poll_fn};
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::pin::pin;
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::task::JoinHandle;

/// The reason why foreign code gave no result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Broken {
    /// A panic with this message.
    Panicked(String),
    /// A time-out: the call did not end within this time and was dropped.
    TimedOut(Duration),
    /// An earlier call, which cannot be dropped, has still not ended, so this one was not made.
    Stuck,
}

/// Work of one kind that blocks its thread and may hang: foreign code, unavailable disks.
///
/// A call that does not end in time is abandoned with its thread. There is at most one: while it runs, no
/// other is made.
#[derive(Debug, Default)]
pub(crate) struct Blocking {
    stuck: Option<JoinHandle<()>>,
}

impl Blocking {
    /// Runs `work` on a thread that may block, for at most `limit`. Returns `None` if the runtime is
    /// shutting down.
    pub(crate) async fn run<T: Send + 'static>(
        &mut self,
        limit: Duration,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Option<Result<T, Broken>> {
        if self
            .stuck
            .as_ref()
            .is_some_and(|stuck| !stuck.is_finished())
        {
            return Some(Err(Broken::Stuck));
        }
        self.stuck = None;
        let (sender, receiver) = oneshot::channel();
        let task = tokio::task::spawn_blocking(move || {
            // The receiver may be gone.
            let _ = sender.send(contained_call(work));
        });
        match tokio::time::timeout(limit, receiver).await {
            Ok(result) => result.ok(),
            Err(_) => {
                self.stuck = Some(task);
                Some(Err(Broken::TimedOut(limit)))
            }
        }
    }
}

/// Runs a future to its end, or to its panic.
pub(crate) async fn contained<F: Future>(future: F) -> Result<F::Output, Broken> {
    let mut future = pin!(future);
    poll_fn(|context| {
        // State that the future left half-done is dropped with it, and never seen again.
        match catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(context))) {
            Ok(poll) => poll.map(Ok),
            Err(panic) => std::task::Poll::Ready(Err(Broken::Panicked(message_of(&*panic)))),
        }
    })
    .await
}

/// Runs a future to its end or its panic, for at most `limit`.
pub(crate) async fn contained_for<F: Future>(
    limit: Duration,
    future: F,
) -> Result<F::Output, Broken> {
    match tokio::time::timeout(limit, contained(future)).await {
        Ok(result) => result,
        Err(_) => Err(Broken::TimedOut(limit)),
    }
}

/// Rejects `path` if it is not a regular file: opening or reading a pipe or a device may never end.
///
/// # Errors
///
/// Returns an error if nothing exists at `path`, if it is something else, or if its kind cannot be
/// determined. Blocks.
pub(crate) fn require_regular(path: &Path) -> io::Result<()> {
    if std::fs::metadata(path)?.is_file() {
        return Ok(());
    }
    let message = "it is not a regular file, but a directory, a pipe or a device";
    Err(io::Error::new(io::ErrorKind::InvalidInput, message))
}

/// Calls a function, or contains its panic.
pub(crate) fn contained_call<T>(call: impl FnOnce() -> T) -> Result<T, Broken> {
    catch_unwind(AssertUnwindSafe(call)).map_err(|panic| Broken::Panicked(message_of(&*panic)))
}

/// Runs a computation on a thread where it does not block the runtime. Returns `None` if the runtime is
/// shutting down.
pub(crate) async fn off_the_runtime<T: Send + 'static>(
    compute: impl FnOnce() -> T + Send + 'static,
) -> Option<T> {
    match tokio::task::spawn_blocking(compute).await {
        Ok(value) => Some(value),
        Err(error) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            Err(_) => None,
        },
    }
}

impl std::fmt::Display for Broken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Panicked(message) => write!(f, "panicked: {message}"),
            Self::TimedOut(limit) => write!(f, "did not end within {limit:?}"),
            Self::Stuck => f.write_str("has not ended since it was done before"),
        }
    }
}

fn message_of(panic: &(dyn Any + Send)) -> String {
    let text = panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("a value that is no text");
    text.chars().take(500).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn one_call_that_hangs_is_left_behind() {
        let guard = Duration::from_secs(60);
        let mut blocking = Blocking::default();
        assert_eq!(blocking.run(guard, || 1).await, Some(Ok(1)));
        let panicked = blocking.run(guard, || -> u8 { panic!("no") }).await;
        assert_eq!(panicked, Some(Err(Broken::Panicked("no".to_owned()))));

        let (release, held) = std::sync::mpsc::channel::<()>();
        let (ended, wait) = oneshot::channel();
        let hang = move || {
            let _ = held.recv();
            let _ = ended.send(());
        };
        let limit = Duration::from_millis(1);
        let hung = blocking.run(limit, hang).await;
        assert_eq!(hung, Some(Err(Broken::TimedOut(limit))));
        assert_eq!(blocking.run(guard, || 2).await, Some(Err(Broken::Stuck)));
        drop(release);
        wait.await.unwrap();
        // The thread is about to end.
        let after = async {
            loop {
                match blocking.run(guard, || 3).await {
                    Some(Err(Broken::Stuck)) => tokio::task::yield_now().await,
                    other => return other,
                }
            }
        };
        let after = tokio::time::timeout(guard, after).await;
        assert_eq!(after, Ok(Some(Ok(3))));
    }

    #[tokio::test(start_paused = true)]
    async fn panics_and_hangs_become_values() {
        let panicked = contained(async { panic!("boom {}", 1) }).await;
        assert_eq!(
            panicked,
            Err::<(), _>(Broken::Panicked("boom 1".to_owned()))
        );
        let limit = Duration::from_secs(1);
        let hung = contained_for(limit, std::future::pending::<()>()).await;
        assert_eq!(hung, Err(Broken::TimedOut(limit)));
        assert_eq!(contained_for(limit, async { 7 }).await, Ok(7));
        assert_eq!(
            contained_call(|| -> u8 { panic!("no") }),
            Err(Broken::Panicked("no".to_owned()))
        );
    }
}
