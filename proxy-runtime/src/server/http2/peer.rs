//! A scripted client for tests.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use testkit::raw::frame::{self, Frame};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, ReadHalf, WriteHalf, split};
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};

/// The setting of the initial window of streams.
pub(crate) const INITIAL_WINDOW_SIZE: u16 = 4;

/// A client that sends arbitrary frames, and records received frames with their time. It answers
/// nothing by itself.
pub(crate) struct Peer {
    sending: WriteHalf<DuplexStream>,
    seen: Rc<Seen>,
    reading: JoinHandle<()>,
}

#[derive(Default)]
struct Seen {
    frames: RefCell<Vec<(Instant, Frame)>>,
    news: Notify,
}

impl Peer {
    /// Opens a connection, and acknowledges the server's settings.
    pub(crate) async fn open(stream: DuplexStream, settings: &[(u16, u32)]) -> Self {
        Self::open_slow(stream, settings, usize::MAX, Duration::ZERO).await
    }

    /// Opens a connection that reads at most `bytes` at a time, and then pauses.
    pub(crate) async fn open_slow(
        stream: DuplexStream,
        settings: &[(u16, u32)],
        bytes: usize,
        pause: Duration,
    ) -> Self {
        let mut peer = Self::begin(stream, bytes, pause);
        peer.sending.write_all(frame::PREFACE).await.unwrap();
        peer.send(Frame::settings(settings)).await;
        peer.send(Frame::new(frame::SETTINGS, frame::ACK, 0, []))
            .await;
        peer
    }

    /// Opens a connection that does not acknowledge the server's settings.
    pub(crate) async fn open_unacknowledged(stream: DuplexStream) -> Self {
        let mut peer = Self::begin(stream, usize::MAX, Duration::ZERO);
        peer.sending.write_all(frame::PREFACE).await.unwrap();
        peer.send(Frame::settings(&[])).await;
        peer
    }

    fn begin(stream: DuplexStream, bytes: usize, pause: Duration) -> Self {
        let (receiving, sending) = split(stream);
        let seen = Rc::<Seen>::default();
        let reading = read(receiving, Rc::clone(&seen), bytes, pause);
        Self {
            sending,
            seen,
            reading: tokio::task::spawn_local(reading),
        }
    }

    pub(crate) async fn send(&mut self, frame: Frame) {
        self.sending.write_all(&frame.encode()).await.unwrap();
    }

    /// Sends a frame. Returns false if the server has closed the connection.
    pub(crate) async fn try_send(&mut self, frame: Frame) -> bool {
        self.try_send_bytes(&frame.encode()).await
    }

    pub(crate) async fn try_send_bytes(&mut self, bytes: &[u8]) -> bool {
        self.sending.write_all(bytes).await.is_ok()
    }

    pub(crate) fn head(stream: u32, method: &str, path: &str, is_end: bool) -> Frame {
        let fields = [
            (":method", method),
            (":scheme", "http"),
            (":authority", "h"),
            (":path", path),
        ];
        Frame::headers(stream, &fields, is_end)
    }

    pub(crate) async fn get(&mut self, stream: u32, path: &str) {
        self.send(Self::head(stream, "GET", path, true)).await;
    }

    pub(crate) async fn open_window(&mut self, stream: u32, bytes: u32) {
        let update = Frame::new(frame::WINDOW_UPDATE, 0, stream, bytes.to_be_bytes());
        self.send(update).await;
    }

    pub(crate) async fn ping(&mut self) {
        self.send(Frame::new(frame::PING, 0, 0, [7; 8])).await;
    }

    /// Waits for a frame, among those received and those to come. Panics if the server closes the
    /// connection before.
    pub(crate) async fn wait_for(&self, is_it: impl Fn(&Frame) -> bool) -> (Instant, Frame) {
        loop {
            // Registered before the search, so that no frame is missed in between.
            let news = self.seen.news.notified();
            let found = {
                let frames = self.seen.frames.borrow();
                frames.iter().find(|(_, frame)| is_it(frame)).cloned()
            };
            match found {
                Some(found) => return found,
                None if self.reading.is_finished() => panic!("only {:?}", self.frames()),
                None => news.await,
            }
        }
    }

    /// Waits for the end of a stream. Returns the code of a reset.
    pub(crate) async fn end_of(&self, stream: u32) -> (Instant, Option<u32>) {
        let is_end = |frame: &Frame| {
            let ends = matches!(frame.kind, frame::DATA | frame::HEADERS);
            frame.stream == stream
                && (frame.kind == frame::RST_STREAM || ends && frame.has(frame::END_STREAM))
        };
        let (when, end) = self.wait_for(is_end).await;
        (when, end.error_code())
    }

    /// Waits for the end of the connection. Returns the code of its GOAWAY, if any.
    pub(crate) async fn end(&mut self) -> (Instant, Option<u32>) {
        (&mut self.reading).await.unwrap();
        let goaway = |frame: &Frame| frame.kind == frame::GOAWAY;
        let last = self.frames().into_iter().rfind(goaway);
        (Instant::now(), last.and_then(|frame| frame.error_code()))
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.reading.is_finished()
    }

    /// All frames received so far.
    pub(crate) fn frames(&self) -> Vec<Frame> {
        let frames = self.seen.frames.borrow();
        frames.iter().map(|(_, frame)| frame.clone()).collect()
    }

    /// Forgets all frames received so far.
    pub(crate) fn forget(&self) {
        self.seen.frames.borrow_mut().clear();
    }

    /// The received content of a stream.
    pub(crate) fn content(&self, stream: u32) -> Vec<u8> {
        let frames = self.frames().into_iter();
        let data = frames.filter(|frame| frame.kind == frame::DATA && frame.stream == stream);
        data.flat_map(|frame| frame.payload).collect()
    }
}

async fn read(mut stream: ReadHalf<DuplexStream>, seen: Rc<Seen>, most: usize, pause: Duration) {
    let mut bytes = Vec::new();
    let mut part = vec![0; most.min(16 * 1024)];
    while let Ok(1..) = stream.read(&mut part).await.inspect(|read| {
        bytes.extend_from_slice(&part[..*read]);
    }) {
        while let Some(frame) = take_frame(&mut bytes) {
            seen.frames.borrow_mut().push((Instant::now(), frame));
        }
        seen.news.notify_waiters();
        if !pause.is_zero() {
            sleep(pause).await;
        }
    }
    // A waiter sees that this task has finished in its next turn.
    tokio::task::spawn_local(async move { seen.news.notify_waiters() });
}

fn take_frame(bytes: &mut Vec<u8>) -> Option<Frame> {
    const HEAD: usize = 9;
    let head: [u8; HEAD] = bytes.get(..HEAD)?.try_into().ok()?;
    let length = u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize;
    let payload = bytes.get(HEAD..HEAD + length)?.to_vec();
    bytes.drain(..HEAD + length);
    let stream = u32::from_be_bytes([head[5], head[6], head[7], head[8]]);
    Some(Frame::new(head[3], head[4], stream, payload))
}
