use std::sync::Arc;

use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::sync::watch;

/// Maximum output that is kept of one program: 8 MiB. Later output is read and dropped.
const KEPT: usize = 8 << 20;

/// The output of a program so far, all of its streams in the order of arrival.
#[derive(Clone, Debug, Default)]
pub(super) struct Captured {
    state: Arc<watch::Sender<CaptureState>>,
}

#[derive(Debug, Default)]
struct CaptureState {
    text: String,
    /// Number of streams that may still produce output.
    open: usize,
}

impl Captured {
    pub(super) fn text(&self) -> String {
        self.state.borrow().text.clone()
    }

    /// Waits for `pattern`; false if all streams have ended without it.
    pub(super) async fn wait_for(&self, pattern: &str) -> bool {
        let mut state = self.state.subscribe();
        let reached = state
            .wait_for(|state| state.open == 0 || state.text.contains(pattern))
            .await;
        let reached = reached.expect("the sender lives in self");
        reached.text.contains(pattern)
    }

    /// Waits until all streams have ended, and returns their output.
    pub(super) async fn whole(&self) -> String {
        let mut state = self.state.subscribe();
        let ended = state.wait_for(|state| state.open == 0).await;
        ended.expect("the sender lives in self").text.clone()
    }

    /// Reads a stream to its end. The stream counts as open from now on, not only once the future
    /// is polled.
    pub(super) fn read(
        &self,
        stream: impl AsyncRead + Unpin + Send + 'static,
    ) -> impl Future<Output = ()> + Send + 'static {
        self.state.send_modify(|state| state.open += 1);
        let this = self.clone();
        async move {
            this.read_to_end(stream).await;
            this.state.send_modify(|state| state.open -= 1);
        }
    }

    async fn read_to_end(&self, mut stream: impl AsyncRead + Unpin) {
        let mut bytes = [0; 8 * 1024];
        let mut cut = Vec::new();
        while let Ok(read) = stream.read(&mut bytes).await {
            if read == 0 {
                break;
            }
            // A character may be split between two reads.
            cut.extend_from_slice(&bytes[..read]);
            let whole = whole_characters(&cut);
            let text = String::from_utf8_lossy(&cut[..whole]).into_owned();
            cut.drain(..whole);
            self.state.send_modify(|state| {
                if state.text.len() + text.len() <= KEPT {
                    state.text.push_str(&text);
                }
            });
        }
    }
}

/// Number of bytes that do not belong to an incomplete character.
fn whole_characters(bytes: &[u8]) -> usize {
    match std::str::from_utf8(bytes) {
        Err(error) if error.error_len().is_none() => error.valid_up_to(),
        _ => bytes.len(),
    }
}
