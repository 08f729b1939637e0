use std::collections::VecDeque;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

/// The maximum number and size of pending lines.
#[derive(Clone, Copy, Debug)]
pub struct Capacity {
    /// Number of lines. Default: 8,192, a second of the load that a busy core produces.
    pub lines: usize,
    /// Bytes of all lines together. Default: 4 MiB.
    pub bytes: usize,
}

impl Default for Capacity {
    fn default() -> Self {
        Self {
            lines: 8192,
            bytes: 4 * 1024 * 1024,
        }
    }
}

/// The pending lines, between the logging threads and the writing one.
#[derive(Debug)]
pub(crate) struct Queue {
    capacity: Capacity,
    state: Mutex<State>,
    /// Notified when the writer has work.
    work: Condvar,
    /// Notified when lines have been written or reported.
    progress: Condvar,
}

#[derive(Debug, Default)]
struct State {
    lines: VecDeque<Box<[u8]>>,
    bytes: usize,
    /// The lines accepted since the start, and those of them that are written or lost.
    pushed: u64,
    done: u64,
    /// The lines dropped or lost since the start, and those of them that were reported.
    dropped: u64,
    reported: u64,
    is_failing: bool,
    /// True while the writer waits for `work`.
    is_idle: bool,
    /// The number of callers that wait until everything is written.
    flushing: usize,
    wants_reopen: bool,
    is_closed: bool,
}

impl State {
    fn has_no_work(&self) -> bool {
        let owes_report = self.flushing > 0 && self.reported < self.dropped && !self.is_failing;
        self.lines.is_empty() && !self.wants_reopen && !self.is_closed && !owes_report
    }
}

/// A unit of work for the writer.
#[derive(Debug, Default)]
pub(crate) struct Work {
    pub(crate) lines: VecDeque<Box<[u8]>>,
    pub(crate) wants_reopen: bool,
    /// True if the queue is closed, and these are its last lines.
    pub(crate) is_last: bool,
}

impl Queue {
    pub(crate) fn new(capacity: Capacity) -> Self {
        Self {
            capacity,
            state: Mutex::default(),
            work: Condvar::new(),
            progress: Condvar::new(),
        }
    }

    /// Adds a line. Returns false if it was dropped.
    pub(crate) fn push(&self, line: Box<[u8]>) -> bool {
        let mut state = self.state.lock();
        let has_room = state.lines.len() < self.capacity.lines.max(1)
            && (state.lines.is_empty() || state.bytes + line.len() <= self.capacity.bytes);
        if !has_room {
            state.dropped += 1;
            return false;
        }
        state.bytes += line.len();
        state.pushed += 1;
        state.lines.push_back(line);
        self.wake(state.is_idle);
        true
    }

    pub(crate) fn dropped(&self) -> u64 {
        self.state.lock().dropped
    }

    pub(crate) fn reopen(&self) {
        let mut state = self.state.lock();
        state.wants_reopen = true;
        self.wake(state.is_idle);
    }

    pub(crate) fn close(&self) {
        let mut state = self.state.lock();
        state.is_closed = true;
        self.wake(state.is_idle);
    }

    fn wake(&self, is_idle: bool) {
        // A busy writer checks the queue again by itself.
        if is_idle {
            self.work.notify_one();
        }
    }

    /// Waits for work, at most for `patience` if it is given.
    pub(crate) fn wait(&self, patience: Option<Duration>) -> Work {
        let until = patience.map(|patience| Instant::now() + patience);
        let mut state = self.state.lock();
        while state.has_no_work() {
            state.is_idle = true;
            let is_over = match until {
                Some(until) => self.work.wait_until(&mut state, until).timed_out(),
                None => {
                    self.work.wait(&mut state);
                    false
                }
            };
            state.is_idle = false;
            if is_over {
                break;
            }
        }
        state.bytes = 0;
        Work {
            lines: std::mem::take(&mut state.lines),
            wants_reopen: std::mem::take(&mut state.wants_reopen),
            is_last: state.is_closed,
        }
    }

    /// Records that `done` lines were written or lost, `lost` of them lost. Returns the drops to report, and
    /// true if a caller waits for that.
    pub(crate) fn note(&self, done: u64, lost: u64, is_failing: bool) -> (u64, bool) {
        let mut state = self.state.lock();
        state.done += done;
        state.dropped += lost;
        state.is_failing = is_failing;
        self.progress.notify_all();
        (state.dropped - state.reported, state.flushing > 0)
    }

    /// Records that `lines` dropped ones were reported.
    pub(crate) fn reported(&self, lines: u64) {
        let mut state = self.state.lock();
        state.reported += lines;
        self.progress.notify_all();
    }

    /// Waits until everything accepted before is written or lost, and drops are reported.
    pub(crate) fn flush(&self, within: Duration) -> bool {
        let until = Instant::now() + within;
        let mut state = self.state.lock();
        state.flushing += 1;
        self.wake(state.is_idle);
        let dropped = state.dropped;
        let mut is_done = true;
        // Twice, since a report of drops may be a line itself.
        for _ in 0..2 {
            let pushed = state.pushed;
            while is_done
                && (state.done < pushed || (state.reported < dropped && !state.is_failing))
            {
                is_done = !self.progress.wait_until(&mut state, until).timed_out();
            }
        }
        state.flushing -= 1;
        is_done && !state.is_failing
    }
}
