//! An agent by script: a program that announces what a destination may get, in the protocol of HAProxy's
//! `agent-check`.
//!
//! ```
//! use testkit::agent::Agent;
//! use tokio::io::AsyncReadExt;
//! use tokio::net::TcpStream;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> std::io::Result<()> {
//! let agent = Agent::saying("up 75%\n");
//! let mut stream = TcpStream::connect(agent.addr()).await?;
//! let mut said = String::new();
//! stream.read_to_string(&mut said).await?;
//! assert_eq!(said, "up 75%\n");
//! # Ok(())
//! # }
//! ```

use std::net::SocketAddr;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::watch;

use crate::listen;
use crate::tasks::Tasks;
use crate::time::guarded;

/// An agent that says the same to everyone until the test changes it.
#[derive(Debug)]
pub struct Agent {
    address: SocketAddr,
    said: Arc<Mutex<Said>>,
    /// Number of clients that were answered.
    answered: watch::Receiver<usize>,
    heard: Arc<Mutex<Vec<String>>>,
    _tasks: Tasks,
}

#[derive(Clone, Debug)]
enum Said {
    /// Bytes, and then the end.
    Bytes(Vec<u8>),
    /// Bytes that are repeated without an end.
    Endless(Vec<u8>),
    /// No bytes, and no end.
    Nothing,
}

impl Agent {
    /// Starts an agent that says these bytes.
    #[track_caller]
    pub fn saying(bytes: impl Into<Vec<u8>>) -> Self {
        let (listener, address) = listen::listen(listen::V4);
        let said = Arc::new(Mutex::new(Said::Bytes(bytes.into())));
        let heard = Arc::new(Mutex::new(Vec::new()));
        let (count, answered) = watch::channel(0);
        let tasks = Tasks::new();
        let spawner = tasks.spawner();
        let (script, ears) = (Arc::clone(&said), Arc::clone(&heard));
        tasks.spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let said = script.lock().clone();
                let (ears, count) = (Arc::clone(&ears), count.clone());
                spawner.spawn(async move {
                    let heard = answer(stream, said, &count).await;
                    ears.lock().push(heard);
                });
            }
        });
        Self {
            address,
            said,
            answered,
            heard,
            _tasks: tasks,
        }
    }

    /// The address.
    pub fn addr(&self) -> SocketAddr {
        self.address
    }

    /// The port.
    pub fn port(&self) -> u16 {
        self.address.port()
    }

    /// Says these bytes from now on.
    pub fn say(&self, bytes: impl Into<Vec<u8>>) {
        *self.said.lock() = Said::Bytes(bytes.into());
    }

    /// Says these bytes from now on, again and again without an end.
    pub fn say_endlessly(&self, bytes: impl Into<Vec<u8>>) {
        *self.said.lock() = Said::Endless(bytes.into());
    }

    /// Accepts clients from now on, and says nothing.
    pub fn be_silent(&self) {
        *self.said.lock() = Said::Nothing;
    }

    /// The number of clients that were answered.
    pub fn answered(&self) -> usize {
        *self.answered.borrow()
    }

    /// Waits until `count` more clients were answered than now.
    pub async fn wait_for(&self, count: usize) {
        let mut answered = self.answered.clone();
        let wanted = *answered.borrow() + count;
        let reached = answered.wait_for(|answered| *answered >= wanted);
        guarded("clients of the agent", reached)
            .await
            .expect("the agent runs");
    }

    /// The texts of the clients that have gone.
    pub fn heard(&self) -> Vec<String> {
        self.heard.lock().clone()
    }
}

/// Returns the text of the client.
async fn answer(mut stream: TcpStream, said: Said, count: &watch::Sender<usize>) -> String {
    match said {
        Said::Bytes(bytes) => {
            // A client may go before it has read all.
            let _ = stream.write_all(&bytes).await;
            let _ = stream.shutdown().await;
        }
        Said::Endless(bytes) => while stream.write_all(&bytes).await.is_ok() {},
        Said::Nothing => {}
    }
    count.send_modify(|count| *count += 1);
    let mut heard = Vec::new();
    let _ = stream.read_to_end(&mut heard).await;
    String::from_utf8_lossy(&heard).into_owned()
}
