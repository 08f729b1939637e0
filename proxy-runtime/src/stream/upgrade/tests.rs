//! Clones that wait for the same connection.

use std::future::poll_fn;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::task::Wake;

use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};

use super::*;

/// Counts wake-ups.
#[derive(Default)]
struct Count(AtomicUsize);

impl Wake for Count {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Relaxed);
    }
}

/// A clone with its own task.
struct Task {
    upgrade: OnUpgrade,
    woken: Arc<Count>,
}

impl Task {
    fn new(upgrade: &OnUpgrade) -> Self {
        Self {
            upgrade: upgrade.clone(),
            woken: Arc::default(),
        }
    }

    fn poll(&mut self) -> Poll<io::Result<Upgraded>> {
        let waker = Waker::from(Arc::clone(&self.woken));
        Pin::new(&mut self.upgrade).poll(&mut Context::from_waker(&waker))
    }

    fn woken(&self) -> usize {
        self.woken.0.load(Relaxed)
    }

    fn assert_not_connected(&mut self) {
        let Poll::Ready(Err(error)) = self.poll() else {
            panic!("it is told at once that there is nothing for it");
        };
        assert_eq!(error.kind(), io::ErrorKind::NotConnected);
    }
}

/// A connection, and its other end.
fn connection() -> (Upgraded, DuplexStream) {
    let (io, other) = duplex(64);
    let unread = ReadBuffer::default();
    let io = Box::new(io);
    (Upgraded { io, unread }, other)
}

#[tokio::test]
async fn of_clones_that_wait_all_are_woken_and_the_first_one_polled_gets_it() {
    let (upgrade, switch) = OnUpgrade::new();
    let [mut first, mut second, mut third] = [(); 3].map(|()| Task::new(&upgrade));
    for task in [&mut first, &mut second] {
        assert!(task.poll().is_pending());
    }
    let (connection, mut other) = connection();
    switch.hand_over(connection);
    assert_eq!([&first, &second, &third].map(Task::woken), [1, 1, 0]);

    let Poll::Ready(Ok(mut upgraded)) = second.poll() else {
        panic!("the connection is there");
    };
    for task in [&mut first, &mut third] {
        task.assert_not_connected();
    }
    second.assert_not_connected();
    upgraded.write_all(b"hello").await.unwrap();
    let mut bytes = [0; 5];
    other.read_exact(&mut bytes).await.unwrap();
    assert_eq!(&bytes, b"hello");
}

#[test]
fn all_are_told_that_the_protocol_was_not_switched() {
    let (upgrade, switch) = OnUpgrade::new();
    let [mut first, mut second] = [(); 2].map(|()| Task::new(&upgrade));
    for task in [&mut first, &mut second] {
        assert!(task.poll().is_pending());
    }
    drop(switch);
    for task in [&mut first, &mut second] {
        assert_eq!(task.woken(), 1);
        task.assert_not_connected();
        task.assert_not_connected();
    }
}

/// A moved clone is woken in the task that polled it last, and a dropped clone is not woken.
#[test]
fn nothing_is_kept_of_who_is_gone() {
    let (upgrade, switch) = OnUpgrade::new();
    let mut stays = Task::new(&upgrade);
    assert!(stays.poll().is_pending());
    let before = std::mem::take(&mut stays.woken);
    assert!(stays.poll().is_pending());
    for _ in 0..100 {
        let mut goes = Task::new(&upgrade);
        assert!(goes.poll().is_pending());
        let woken = Arc::downgrade(&goes.woken);
        drop(goes);
        assert!(woken.upgrade().is_none(), "its waker is dropped");
    }
    let kept = match &*upgrade.shared.lock() {
        UpgradeState::Undecided(Waiters(wakers)) => wakers.len(),
        UpgradeState::There(_) | UpgradeState::Gone => panic!("nothing is decided yet"),
    };
    assert_eq!(kept, 2, "one that waits, and a free place");
    drop(switch);
    assert_eq!((before.0.load(Relaxed), stays.woken()), (0, 1));
}

#[tokio::test]
async fn the_last_clone_takes_the_connection_along() {
    let (upgrade, switch) = OnUpgrade::new();
    let mut waits = Task::new(&upgrade);
    assert!(waits.poll().is_pending());
    let (connection, mut other) = connection();
    switch.hand_over(connection);
    // It was woken, and is not polled again.
    drop(waits);
    let is_open = poll_fn(|cx| {
        let mut bytes = [0; 1];
        let mut buffer = ReadBuf::new(&mut bytes);
        let polled = Pin::new(&mut other).poll_read(cx, &mut buffer);
        Poll::Ready(polled.is_pending())
    });
    assert!(is_open.await, "there is still somebody to take it");
    drop(upgrade);
    assert_eq!(other.read(&mut [0; 1]).await.unwrap(), 0);
}
