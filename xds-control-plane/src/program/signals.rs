use std::io;
use std::process;
use std::thread;

use tokio::sync::watch;

/// How the process ends that is told twice to: as shells tell the end by Ctrl-C.
const AT_ONCE: i32 = 130;

/// Somebody asks the program to stop: Ctrl-C, or SIGTERM where there is one.
///
/// Signals are heard on a thread of their own, so that they are heard while all others compute. The second ends the process
/// there and then.
pub(super) struct Stop(watch::Receiver<bool>);

impl Stop {
    /// Begins to listen. From here on the process does not end by itself when it is told to for the first time.
    pub(super) fn listen() -> io::Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let mut signals = {
            let _inside = runtime.enter();
            Signals::listen()?
        };
        let (tell, asked) = watch::channel(false);
        thread::Builder::new()
            .name("signals".to_owned())
            .spawn(move || {
                runtime.block_on(async {
                    signals.next().await;
                    tell.send_replace(true);
                    signals.next().await;
                    process::exit(AT_ONCE);
                });
            })?;
        Ok(Self(asked))
    }

    /// Waits until somebody has asked. Cancel-safe.
    pub(super) async fn asked(&mut self) {
        // It cannot fail: the other end is there until the process ends.
        let _ = self.0.wait_for(|asked| *asked).await;
    }
}

struct Signals {
    #[cfg(unix)]
    terminate: tokio::signal::unix::Signal,
    #[cfg(unix)]
    interrupt: tokio::signal::unix::Signal,
    #[cfg(windows)]
    interrupt: tokio::signal::windows::CtrlC,
}

impl Signals {
    fn listen() -> io::Result<Self> {
        #[cfg(unix)]
        {
            use tokio::signal::unix::{SignalKind, signal};
            Ok(Self {
                terminate: signal(SignalKind::terminate())?,
                interrupt: signal(SignalKind::interrupt())?,
            })
        }
        #[cfg(windows)]
        Ok(Self {
            interrupt: tokio::signal::windows::ctrl_c()?,
        })
    }

    async fn next(&mut self) {
        #[cfg(unix)]
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
        #[cfg(windows)]
        self.interrupt.recv().await;
    }
}
