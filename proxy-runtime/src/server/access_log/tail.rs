//! The latest requests in memory, for the admin page.

use std::collections::VecDeque;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use parking_lot::Mutex;
use tokio::time::Instant;

use super::AccessLogSink;
use super::format::{AccessLogFormat, QueryLogging, write_line};
use super::record::AccessRecord;

/// Number of requests that are kept.
const MOST: usize = 200;
/// Maximum bytes of a part of a request that the client chooses.
const LONGEST: usize = 512;

/// The latest requests for the [admin API](crate::admin): the fields of the access log, without the values of queries.
///
/// At most 200 are kept. The number per second is limited, separately for failed requests and for others. A request
/// beyond the limit costs two atomic operations.
pub struct RequestTail {
    per_second: u32,
    begun: Instant,
    served: SecondLimit,
    failed: SecondLimit,
    left_out: AtomicU64,
    kept: Mutex<Kept>,
}

/// The requests that were taken in the latest second.
#[derive(Default)]
struct SecondLimit(AtomicU64);

#[derive(Default)]
struct Kept {
    /// Number of requests that were taken.
    taken: u64,
    /// Lines of JSON with their numbers, the oldest first.
    lines: VecDeque<(u64, String)>,
}

impl RequestTail {
    /// Keeps at most `per_second` requests of a second, and as many failed ones.
    pub fn new(per_second: u32) -> Self {
        Self {
            per_second,
            begun: Instant::now(),
            served: SecondLimit::default(),
            failed: SecondLimit::default(),
            left_out: AtomicU64::new(0),
            kept: Mutex::default(),
        }
    }

    /// The number of requests that were taken.
    #[cfg(feature = "admin")]
    pub(crate) fn taken(&self) -> u64 {
        self.kept.lock().taken
    }

    /// The limit of requests of a second.
    #[cfg(feature = "admin")]
    pub(crate) fn per_second(&self) -> u32 {
        self.per_second
    }

    /// The number of requests that were not taken.
    #[cfg(feature = "admin")]
    pub(crate) fn left_out(&self) -> u64 {
        self.left_out.load(Relaxed)
    }

    /// The requests after the one with this number, the oldest first: number and JSON.
    #[cfg(feature = "admin")]
    pub(crate) fn after(&self, number: u64) -> Vec<(u64, String)> {
        let kept = self.kept.lock();
        let lines = kept.lines.iter().filter(|(known, _)| *known > number);
        lines.cloned().collect()
    }

    /// The request with this number, while it is kept.
    #[cfg(feature = "admin")]
    pub(crate) fn find(&self, number: u64) -> Option<String> {
        let kept = self.kept.lock();
        let mut lines = kept.lines.iter();
        let found = lines.find(|(known, _)| *known == number);
        found.map(|(_, line)| line.clone())
    }
}

impl SecondLimit {
    /// Returns true if one more may be taken in this second.
    fn takes(&self, second: u32, most: u32) -> bool {
        // Second and count are one word, so that one exchange updates both.
        let more = |slot: u64| {
            let (of, count) = ((slot >> 32) as u32, slot as u32);
            let count = if of == second { count } else { 0 };
            (count < most).then_some(u64::from(second) << 32 | u64::from(count + 1))
        };
        self.0.fetch_update(Relaxed, Relaxed, more).is_ok()
    }
}

impl AccessLogSink for RequestTail {
    fn log(&self, record: &AccessRecord<'_>) {
        let second = u32::try_from(self.begun.elapsed().as_secs()).unwrap_or(u32::MAX);
        let allowed = match record.is_failure() {
            true => &self.failed,
            false => &self.served,
        };
        // Before the line is written, so that requests that are left out cost little.
        if !allowed.takes(second, self.per_second) {
            self.left_out.fetch_add(1, Relaxed);
            return;
        }
        let record = AccessRecord {
            host: shortened(record.host),
            path: shortened_text(record.path),
            query: record.query.map(shortened_text),
            user_agent: record.user_agent.map(shortened),
            ..record.clone()
        };
        let mut line = String::new();
        write_line(
            &mut line,
            &record,
            &AccessLogFormat::Json,
            QueryLogging::Names,
        );
        // Locked only now, so that no worker waits while another one formats a line.
        let mut kept = self.kept.lock();
        kept.taken += 1;
        let number = kept.taken;
        if kept.lines.len() == MOST {
            kept.lines.pop_front();
        }
        kept.lines.push_back((number, line));
    }
}

fn shortened(bytes: &[u8]) -> &[u8] {
    &bytes[..bytes.len().min(LONGEST)]
}

fn shortened_text(text: &str) -> &str {
    let mut end = text.len().min(LONGEST);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

impl fmt::Debug for RequestTail {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RequestTail")
            .field("per_second", &self.per_second)
            .finish_non_exhaustive()
    }
}

#[cfg(all(test, feature = "admin"))]
mod tests {
    use std::time::Duration;

    use http::StatusCode;

    use super::super::tests::record;
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn of_a_flood_few_are_kept_and_failures_beside_them() {
        let tail = RequestTail::new(3);
        let failure = AccessRecord {
            status: Some(StatusCode::BAD_GATEWAY),
            ..record()
        };
        for _ in 0..10 {
            tail.log(&record());
            tail.log(&failure);
        }
        let kept = tail.after(0);
        assert_eq!((kept.len(), tail.left_out()), (6, 14));
        let failed = kept
            .iter()
            .filter(|(_, line)| line.contains("\"status\":502"));
        assert_eq!(failed.count(), 3);
        // The next second has room again, and a reader gets only what is new.
        tokio::time::advance(Duration::from_secs(1)).await;
        tail.log(&record());
        let [(number, line)] = &tail.after(6)[..] else {
            panic!("one is new");
        };
        assert_eq!(*number, 7);
        assert!(
            line.contains("user=…") && !line.contains("s3cret"),
            "{line}"
        );
        assert_eq!(tail.find(7).as_ref(), Some(line));
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_kept_is_bounded() {
        let tail = RequestTail::new(u32::MAX);
        let long = "/x".repeat(20_000);
        let large = AccessRecord {
            path: &long,
            user_agent: Some(long.as_bytes()),
            host: long.as_bytes(),
            ..record()
        };
        for _ in 0..MOST + 50 {
            tail.log(&large);
        }
        let kept = tail.after(0);
        assert_eq!(kept.len(), MOST);
        assert!(kept.iter().all(|(_, line)| line.len() < 4 * LONGEST));
        assert_eq!(kept[0].0, 51);
        assert!(tail.find(50).is_none());
    }
}
