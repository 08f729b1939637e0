use std::future::Future;
use std::io;

#[cfg(unix)]
use tokio::signal::unix::{Signal, SignalKind, signal};
#[cfg(windows)]
use tokio::signal::windows::{CtrlC, ctrl_c};

/// The signals that ask a program to stop: Ctrl-C, and SIGTERM where there is one.
///
/// One value lives as long as the program, since a signal that arrives while nobody listens is lost.
#[derive(Debug)]
pub struct Signals {
    #[cfg(unix)]
    terminate: Signal,
    #[cfg(unix)]
    interrupt: Signal,
    /// Listened to only if it must not end the process.
    #[cfg(unix)]
    hang_up: Option<Signal>,
    #[cfg(windows)]
    interrupt: CtrlC,
}

impl Signals {
    /// Begins to listen, within a tokio runtime. From here on these signals do not end the process by themselves.
    ///
    /// # Errors
    ///
    /// The system's error if signals cannot be received.
    pub fn listen() -> io::Result<Self> {
        Ok(Self {
            #[cfg(unix)]
            terminate: signal(SignalKind::terminate())?,
            #[cfg(unix)]
            interrupt: signal(SignalKind::interrupt())?,
            #[cfg(unix)]
            hang_up: None,
            #[cfg(windows)]
            interrupt: ctrl_c()?,
        })
    }

    /// Listens to SIGHUP as well, where there is one: it is logged instead of ending the process.
    ///
    /// # Errors
    ///
    /// The system's error if signals cannot be received.
    pub fn with_hang_up_ignored(self) -> io::Result<Self> {
        #[cfg(unix)]
        {
            Ok(Self {
                hang_up: Some(signal(SignalKind::hangup())?),
                ..self
            })
        }
        #[cfg(not(unix))]
        Ok(self)
    }

    /// Waits until somebody asks the program to stop.
    ///
    /// Cancel-safe: a signal between two calls ends the second.
    pub async fn stop(&mut self) {
        #[cfg(unix)]
        loop {
            let hang_up = async {
                match &mut self.hang_up {
                    Some(hang_up) => hang_up.recv().await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                _ = self.terminate.recv() => return,
                _ = self.interrupt.recv() => return,
                // Elsewhere it means "read the configuration again", which programs here do by themselves.
                _ = hang_up => {
                    tracing::info!("SIGHUP: nothing to do, files are followed while they change");
                }
            }
        }
        #[cfg(windows)]
        self.interrupt.recv().await;
    }

    /// Waits for `work`; ends the process with success and `message` on standard error if somebody asks it to stop meanwhile.
    ///
    /// Cancel-safe if `work` is.
    pub async fn stopping_at_once<T>(&mut self, message: &str, work: impl Future<Output = T>) -> T {
        tokio::select! {
            done = work => done,
            () = self.stop() => {
                eprintln!("{message}");
                end(0)
            }
        }
    }
}

#[expect(
    clippy::exit,
    reason = "somebody asked to stop without waiting for anything"
)]
pub(crate) fn end(code: i32) -> ! {
    std::process::exit(code)
}
