use std::io;
use std::thread;

use tokio::sync::watch;

use crate::signals::{Signals, end};

/// The exit code after a second signal, as shells report it for Ctrl-C.
const INTERRUPTED: i32 = 130;

/// A request to stop: Ctrl-C, or SIGTERM where there is one.
///
/// A separate thread receives signals, so that they are handled while all other threads compute. The second
/// signal ends the process with exit code 130.
#[derive(Clone, Debug)]
pub struct Stop(watch::Receiver<bool>);

impl Stop {
    /// Begins to receive signals. From here on the first signal does not end the process.
    ///
    /// # Errors
    ///
    /// A failure if the system does not let the process receive signals.
    pub fn listen() -> Result<Self, crate::Failure> {
        Self::start()
            .map_err(|error| crate::Failure::new(format!("signals cannot be received: {error}")))
    }

    fn start() -> io::Result<Self> {
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
                    signals.stop().await;
                    tell.send_replace(true);
                    signals.stop().await;
                    end(INTERRUPTED)
                });
            })?;
        Ok(Self(asked))
    }

    /// Waits for a request to stop. Cancel safe.
    pub async fn asked(&mut self) {
        // It cannot fail: the other end is there until the process ends.
        let _ = self.0.wait_for(|asked| *asked).await;
    }
}
