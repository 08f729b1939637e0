use std::sync::Arc;
use std::time::Duration;
use std::{io, thread};

use crate::output::Output;
use crate::queue::{Capacity, Queue};
use crate::writing::{Event, Writing};

/// A log whose lines are written by its own thread.
///
/// The thread ends when this value is dropped and the pending lines are written. Call [`flush`](Self::flush)
/// before the program ends: the thread does not keep it alive.
#[derive(Debug)]
pub struct LogWriter {
    queue: Arc<Queue>,
}

impl LogWriter {
    /// Starts a thread of this name that writes to `output`. `on_event` is called on that thread. It may
    /// write to this log, but must not flush it.
    ///
    /// # Errors
    ///
    /// The system's error if the thread cannot be started.
    pub fn start(
        name: &str,
        output: Output,
        capacity: Capacity,
        on_event: impl FnMut(Event<'_>) + Send + 'static,
    ) -> io::Result<Self> {
        let queue = Arc::new(Queue::new(capacity));
        let writing = Writing::new(output, Arc::clone(&queue), on_event);
        thread::Builder::new()
            .name(name.to_owned())
            .spawn(move || writing.run())?;
        Ok(Self { queue })
    }

    /// Passes a line, with its line end, to the thread. Returns false if the line was dropped, because too
    /// many are pending. Never blocks for longer than a pointer takes to copy.
    pub fn write(&self, line: impl Into<Box<[u8]>>) -> bool {
        self.queue.push(line.into())
    }

    /// Returns the number of lines that were dropped, or lost because writing failed.
    pub fn dropped(&self) -> u64 {
        self.queue.dropped()
    }

    /// Reopens the file under its name before the next line is written, for a rotation that renames it. Does
    /// nothing for an output without a name.
    pub fn reopen(&self) {
        self.queue.reopen();
    }

    /// Waits until all earlier lines are written, at most for `within`. Returns false on timeout. Blocks the
    /// thread.
    pub fn flush(&self, within: Duration) -> bool {
        self.queue.flush(within)
    }
}

impl Drop for LogWriter {
    fn drop(&mut self) {
        self.queue.close();
    }
}

#[cfg(test)]
mod tests;
