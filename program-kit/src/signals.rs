use std::future::Future;
use std::io;
use std::sync::Arc;

#[cfg(unix)]
use tokio::signal::unix::{Signal, SignalKind, signal};
#[cfg(windows)]
use tokio::signal::windows::{CtrlC, ctrl_c};
use tokio::sync::Notify;

use crate::sink;

/// The signals whose default action would end the process silently.
#[cfg(unix)]
#[derive(Debug)]
struct Others {
    hang_up: Signal,
    user_1: Signal,
    user_2: Signal,
    alarm: Signal,
}

#[cfg(unix)]
impl Others {
    fn listen() -> io::Result<Self> {
        Ok(Self {
            hang_up: signal(SignalKind::hangup())?,
            user_1: signal(SignalKind::user_defined1())?,
            user_2: signal(SignalKind::user_defined2())?,
            alarm: signal(SignalKind::alarm())?,
        })
    }

    /// Logs these signals. Never returns. Cancel safe.
    async fn hear(&mut self, reopen: &Notify, reloads: &[Arc<Notify>]) {
        loop {
            tokio::select! {
                _ = self.hang_up.recv() => {
                    let told = match reloads {
                        [] => "SIGHUP: nothing to do, files are followed while they change",
                        _ => "SIGHUP: the configuration is read again",
                    };
                    tracing::info!(target: "program", "{told}");
                    reloads.iter().for_each(|reload| reload.notify_one());
                }
                _ = self.user_1.recv() => {
                    tracing::info!(target: "program", "SIGUSR1: log files are opened again");
                    reopen.notify_one();
                }
                _ = self.user_2.recv() => tracing::info!(target: "program", "SIGUSR2: nothing to do"),
                _ = self.alarm.recv() => tracing::info!(target: "program", "SIGALRM: nothing to do"),
            }
        }
    }
}

/// The signals that ask a program to stop: Ctrl-C, and SIGTERM where there is one.
///
/// The value lives as long as the program, since a signal that arrives without a listener is lost.
#[derive(Debug)]
pub struct Signals {
    #[cfg(unix)]
    terminate: Signal,
    #[cfg(unix)]
    interrupt: Signal,
    /// The other signals, received only if they must not end the process.
    #[cfg(unix)]
    others: Option<Others>,
    reopen: Arc<Notify>,
    reloads: Vec<Arc<Notify>>,
    #[cfg(windows)]
    interrupt: CtrlC,
}

impl Signals {
    /// Begins to receive signals, within a tokio runtime. From here on they do not end the process by
    /// themselves.
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
            others: None,
            #[cfg(windows)]
            interrupt: ctrl_c()?,
            reopen: Arc::default(),
            reloads: Vec::new(),
        })
    }

    /// Receives SIGHUP, SIGUSR1, SIGUSR2 and SIGALRM as well, where they exist: they are logged instead of
    /// ending the process. SIGUSR1 notifies [`reopen`](Self::reopen).
    ///
    /// # Errors
    ///
    /// The system's error if signals cannot be received.
    pub fn with_others_handled(self) -> io::Result<Self> {
        #[cfg(unix)]
        {
            Ok(Self {
                others: Some(Others::listen()?),
                ..self
            })
        }
        #[cfg(not(unix))]
        Ok(self)
    }

    /// Returns the notification for reopening log files. It fires while [`stop`](Self::stop) is awaited.
    pub fn reopen(&self) -> Arc<Notify> {
        Arc::clone(&self.reopen)
    }

    /// Returns a notification for reading the configuration again, of its own at each call. SIGHUP notifies all of
    /// them while [`stop`](Self::stop) is awaited.
    pub fn reload(&mut self) -> Arc<Notify> {
        let reload = Arc::default();
        self.reloads.push(Arc::clone(&reload));
        reload
    }

    /// Waits for a request to stop the program.
    ///
    /// Cancel safe: a signal between two calls ends the second.
    pub async fn stop(&mut self) {
        #[cfg(unix)]
        {
            let others = async {
                match &mut self.others {
                    Some(others) => others.hear(&self.reopen, &self.reloads).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                _ = self.terminate.recv() => {}
                _ = self.interrupt.recv() => {}
                () = others => {}
            }
        }
        #[cfg(windows)]
        self.interrupt.recv().await;
    }

    /// Waits for `work`. If a request to stop arrives meanwhile, ends the process with success and `message`
    /// on standard error.
    ///
    /// Cancel safe if `work` is.
    pub async fn stopping_at_once<T>(&mut self, message: &str, work: impl Future<Output = T>) -> T {
        tokio::select! {
            done = work => done,
            () = self.stop() => {
                sink::say(message);
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
    sink::flush(sink::SHORT_FLUSH);
    std::process::exit(code)
}
