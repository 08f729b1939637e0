//! When to stop.

use std::future::Future;

/// Waits until somebody asks the program to stop: Ctrl-C, or SIGTERM where there is one.
pub(crate) async fn stop() -> std::io::Result<()> {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        let mut terminate = signal(SignalKind::terminate())?;
        let mut interrupt = signal(SignalKind::interrupt())?;
        let mut hang_up = signal(SignalKind::hangup())?;
        loop {
            tokio::select! {
                _ = terminate.recv() => return Ok(()),
                _ = interrupt.recv() => return Ok(()),
                // Elsewhere it means "read the configuration again", which happens here by itself.
                _ = hang_up.recv() => tracing::info!("SIGHUP: nothing to do, files are followed while they change"),
            }
        }
    }
    #[cfg(not(unix))]
    tokio::signal::ctrl_c().await
}

/// Waits for `work`, but ends the process at once when somebody asks a second time.
pub(crate) async fn unless_asked_again<T>(work: impl Future<Output = T>) -> T {
    tokio::select! {
        done = work => done,
        _ = stop() => {
            eprintln!("stopped at once; requests in flight were cut");
            #[expect(clippy::exit, reason = "to stop without waiting for anything is what was asked for")]
            std::process::exit(0)
        }
    }
}
