use std::sync::Arc;

use tokio::sync::watch;

use super::stream::find;
use crate::time::guarded;

/// Maximum number of recorded bytes per connection: 1 MiB. Later bytes are only counted.
pub const RECORDED_BYTES: usize = 1 << 20;

/// The data that the script of a [`RawOrigin`](super::RawOrigin) has read on one connection, and
/// the script's result.
///
/// Records only what the script reads, not bytes left in the socket. A clone shows the same
/// connection.
#[derive(Clone, Debug)]
pub struct Recording {
    state: Arc<watch::Sender<RecordingState>>,
}

#[derive(Debug, Default)]
struct RecordingState {
    bytes: Vec<u8>,
    total: u64,
    outcome: Option<Result<(), String>>,
}

impl Recording {
    pub(super) fn new() -> Self {
        let state = Arc::new(watch::Sender::new(RecordingState::default()));
        Self { state }
    }

    pub(super) fn add(&self, read: &[u8]) {
        self.state.send_modify(|state| {
            let room = RECORDED_BYTES - state.bytes.len();
            state.bytes.extend_from_slice(&read[..read.len().min(room)]);
            state.total += read.len() as u64;
        });
    }

    pub(super) fn ended(&self, outcome: Result<(), String>) {
        self.state
            .send_modify(|state| state.outcome = Some(outcome));
    }

    /// The recorded bytes, at most the first [`RECORDED_BYTES`].
    pub fn bytes(&self) -> Vec<u8> {
        self.state.borrow().bytes.clone()
    }

    /// The recorded bytes as text, one character per byte (ISO 8859-1).
    pub fn text(&self) -> String {
        crate::latin1(&self.state.borrow().bytes)
    }

    /// Number of bytes received so far.
    pub fn total(&self) -> u64 {
        self.state.borrow().total
    }

    /// Waits until `pattern` is among the recorded bytes; panics after [`GUARD`](crate::time::GUARD).
    #[track_caller]
    pub fn wait_for<P: AsRef<[u8]>>(&self, pattern: P) -> impl Future<Output = ()> + use<P> {
        let pattern = pattern.as_ref().to_vec();
        let what = format!("\"{}\"", pattern.escape_ascii());
        self.wait_until(what, move |state| find(&state.bytes, &pattern).is_some())
    }

    /// Waits until at least `n` bytes were received; panics after [`GUARD`](crate::time::GUARD).
    #[track_caller]
    pub fn wait_for_total(&self, n: u64) -> impl Future<Output = ()> + use<> {
        self.wait_until(format!("{n} bytes"), move |state| state.total >= n)
    }

    /// Waits until the script has returned, and returns its error as text; panics after
    /// [`GUARD`](crate::time::GUARD).
    #[track_caller]
    pub fn outcome(&self) -> impl Future<Output = Result<(), String>> + use<> {
        let ended = |state: &RecordingState| state.outcome.is_some();
        let ended = self.wait_until("the end of the script".to_owned(), ended);
        let this = self.clone();
        async move {
            ended.await;
            let outcome = this.state.borrow().outcome.clone();
            outcome.expect("waited for it")
        }
    }

    #[track_caller]
    fn wait_until<C>(&self, what: String, condition: C) -> impl Future<Output = ()> + use<C>
    where
        C: Fn(&RecordingState) -> bool,
    {
        let this = self.clone();
        guarded(what, async move {
            let mut state = this.state.subscribe();
            let reached = state.wait_for(|state| condition(state)).await;
            reached.map(drop).expect("the sender lives in `this`");
        })
    }
}
