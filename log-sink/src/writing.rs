use std::collections::VecDeque;
use std::io::{self, ErrorKind, Write};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use crate::output::Output;
use crate::queue::Queue;

/// The number of bytes that are collected before a write.
const CHUNK: usize = 64 * 1024;

/// The pause between two reports of dropped lines.
const REPORT_PAUSE: Duration = Duration::from_secs(1);

/// The pause before a retry on a standard stream that another process made non-blocking.
const BUSY_PAUSE: Duration = Duration::from_millis(20);

/// A change of state, reported on the thread that writes.
#[derive(Debug)]
#[non_exhaustive]
pub enum Event<'a> {
    /// Writing has begun to fail. Further failures are not reported.
    Failed(&'a io::Error),
    /// Writing has succeeded again after a failure.
    Recovered,
    /// The number of lines that were dropped because they came faster than they could be written, or lost
    /// because writing failed. Reported at most once a second, and while writing works.
    Dropped(u64),
    /// The file was reopened under its name.
    Reopened,
    /// The file could not be reopened: lines go to the former file.
    NotReopened(&'a io::Error),
}

/// The thread's side of a queue.
pub(crate) struct Writing<F> {
    output: Output,
    queue: Arc<Queue>,
    on_event: F,
    chunk: Vec<u8>,
    /// The number of bytes at the beginning of the chunk that are the rest of a torn line.
    rest: usize,
    torn: Option<Torn>,
    is_failing: bool,
    last_report: Option<Instant>,
}

/// A line that was only partly written when writing failed.
struct Torn {
    rest: Vec<u8>,
    /// The length of the file after that part. `None`: not a regular file.
    length: Option<u64>,
}

impl<F: FnMut(Event<'_>)> Writing<F> {
    pub(crate) fn new(output: Output, queue: Arc<Queue>, on_event: F) -> Self {
        Self {
            output,
            queue,
            on_event,
            chunk: Vec::with_capacity(CHUNK),
            rest: 0,
            torn: None,
            is_failing: false,
            last_report: None,
        }
    }

    pub(crate) fn run(mut self) {
        let mut unreported = 0;
        loop {
            let pause = (unreported > 0 && !self.is_failing).then_some(REPORT_PAUSE);
            let work = self.queue.wait(pause);
            if work.wants_reopen {
                self.reopen();
            }
            self.write_lines(work.lines);
            let (dropped, is_flushing) = self.queue.note(0, 0, self.is_failing);
            unreported = dropped;
            let is_due = self
                .last_report
                .is_none_or(|last| last.elapsed() >= REPORT_PAUSE);
            // A failing log would lose the report, and then report that loss.
            if unreported > 0 && !self.is_failing && (is_due || is_flushing || work.is_last) {
                self.last_report = Some(Instant::now());
                (self.on_event)(Event::Dropped(unreported));
                self.queue.reported(unreported);
                unreported = 0;
            }
            if work.is_last {
                return;
            }
        }
    }

    fn reopen(&mut self) {
        match self.output.reopen() {
            Ok(true) => {
                // The rest of a torn line belongs to the former file.
                let lost = u64::from(self.torn.take().is_some());
                self.queue.note(0, lost, self.is_failing);
                (self.on_event)(Event::Reopened);
            }
            Ok(false) => {}
            Err(error) => (self.on_event)(Event::NotReopened(&error)),
        }
    }

    pub(crate) fn write_lines(&mut self, lines: VecDeque<Box<[u8]>>) {
        let mut lines = lines.into_iter().peekable();
        while lines.peek().is_some() {
            let mut lost = self.begin_chunk();
            let mut done = 0;
            while let Some(line) =
                lines.next_if(|line| done == 0 || self.chunk.len() + line.len() <= CHUNK)
            {
                self.chunk.extend_from_slice(&line);
                done += 1;
            }
            match self.write_chunk() {
                Ok(()) => self.recovered(),
                Err((error, written)) => {
                    lost += self.keep_torn(written);
                    self.failed(&error);
                }
            }
            self.queue.note(done, lost, self.is_failing);
        }
    }

    /// Begins with the rest of a torn line, if its beginning is still in the file. Returns the number of
    /// lines lost.
    fn begin_chunk(&mut self) -> u64 {
        self.chunk.clear();
        self.rest = 0;
        let Some(torn) = self.torn.take() else {
            return 0;
        };
        let is_truncated = match (self.output.length(), torn.length) {
            (Some(now), Some(then)) => now < then,
            _ => false,
        };
        if is_truncated {
            return 1;
        }
        self.chunk.extend_from_slice(&torn.rest);
        self.rest = torn.rest.len();
        0
    }

    /// Writes the chunk. Fails with the bytes that were written before.
    fn write_chunk(&mut self) -> Result<(), (io::Error, usize)> {
        let mut written = 0;
        while written < self.chunk.len() {
            match self.output.write(&self.chunk[written..]) {
                Ok(0) => return Err((ErrorKind::WriteZero.into(), written)),
                Ok(bytes) => written += bytes,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    thread::park_timeout(BUSY_PAUSE);
                }
                Err(error) => return Err((error, written)),
            }
        }
        self.output.flush().map_err(|error| (error, written))
    }

    /// Keeps the rest of the line that was torn after `written` bytes of the chunk. Returns the number of
    /// lines after it, which are lost.
    fn keep_torn(&mut self, written: usize) -> u64 {
        let begins_line = written == self.rest || self.chunk[..written].last() == Some(&b'\n');
        let end = if written < self.rest {
            self.rest
        } else if begins_line {
            written
        } else {
            let rest = self.chunk[written..].iter();
            let end = rest.take_while(|byte| **byte != b'\n').count() + written + 1;
            end.min(self.chunk.len())
        };
        let (rest, behind) = self.chunk[written..].split_at(end - written);
        if !rest.is_empty() {
            self.torn = Some(Torn {
                rest: rest.to_vec(),
                length: self.output.length(),
            });
        }
        behind.iter().filter(|byte| **byte == b'\n').count() as u64
    }

    /// Simulates that the end of a line could not be written.
    #[cfg(test)]
    pub(crate) fn tear(&mut self, rest: &[u8]) {
        self.torn = Some(Torn {
            rest: rest.to_vec(),
            length: self.output.length(),
        });
    }

    fn failed(&mut self, error: &io::Error) {
        if !std::mem::replace(&mut self.is_failing, true) {
            (self.on_event)(Event::Failed(error));
        }
    }

    fn recovered(&mut self) {
        if std::mem::take(&mut self.is_failing) {
            (self.on_event)(Event::Recovered);
        }
    }
}
