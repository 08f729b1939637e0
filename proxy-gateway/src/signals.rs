//! When to stop.

use std::future::Future;
use std::io;

#[cfg(unix)]
use tokio::signal::unix::{Signal, SignalKind, signal};
#[cfg(windows)]
use tokio::signal::windows::{CtrlC, ctrl_c};

/// Hears what the process is told. One value lives as long as the program, since what comes while nobody listens is lost.
pub(crate) struct Signals {
    #[cfg(unix)]
    terminate: Signal,
    #[cfg(unix)]
    interrupt: Signal,
    #[cfg(unix)]
    hang_up: Signal,
    #[cfg(windows)]
    interrupt: CtrlC,
}

impl Signals {
    /// Begins to listen. From here on the process does not end by itself when it is told to.
    pub(crate) fn listen() -> io::Result<Self> {
        Ok(Self {
            #[cfg(unix)]
            terminate: signal(SignalKind::terminate())?,
            #[cfg(unix)]
            interrupt: signal(SignalKind::interrupt())?,
            #[cfg(unix)]
            hang_up: signal(SignalKind::hangup())?,
            #[cfg(windows)]
            interrupt: ctrl_c()?,
        })
    }

    /// Waits until somebody asks the program to stop: Ctrl-C, or SIGTERM where there is one.
    ///
    /// Cancel-safe: what comes between two calls is heard by the second.
    pub(crate) async fn stop(&mut self) {
        #[cfg(unix)]
        loop {
            tokio::select! {
                _ = self.terminate.recv() => return,
                _ = self.interrupt.recv() => return,
                // Elsewhere it means "read the configuration again", which happens here by itself.
                _ = self.hang_up.recv() => {
                    tracing::info!("SIGHUP: nothing to do, files are followed while they change");
                }
            }
        }
        #[cfg(windows)]
        self.interrupt.recv().await;
    }

    /// Waits for `work`, but ends the process at once when somebody asks a second time.
    pub(crate) async fn unless_asked_again<T>(&mut self, work: impl Future<Output = T>) -> T {
        tokio::select! {
            done = work => done,
            () = self.stop() => stop_at_once(),
        }
    }
}

#[expect(
    clippy::exit,
    reason = "to stop without waiting for anything is what was asked for"
)]
fn stop_at_once() -> ! {
    eprintln!("stopped at once; requests in flight were cut");
    std::process::exit(0)
}
