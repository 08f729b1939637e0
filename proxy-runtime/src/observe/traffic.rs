//! Request rates and durations of the last minute.

use std::collections::VecDeque;

use parking_lot::{Mutex, MutexGuard};

use crate::observe::HistogramCounts;

/// Number of seconds that are kept.
pub(crate) const SECONDS: usize = 60;
/// Seconds between two marks of the durations.
const MARK_EVERY: usize = 10;
/// Marks that cover the last minute.
const MARKS: usize = SECONDS / MARK_EVERY;

/// Requests per second and their durations over the last minute.
///
/// Sampled once a second. An object without requests for a minute needs a few words of memory only.
#[derive(Debug, Default)]
pub(crate) struct Traffic(Mutex<Samples>);

#[derive(Debug, Default)]
struct Samples {
    /// The counter at the latest sample.
    seen: u64,
    /// The durations when the last window ended.
    baseline: Option<Box<HistogramCounts>>,
    window: Option<Box<Window>>,
}

#[derive(Debug)]
struct Window {
    /// Requests per second; `next` is the oldest.
    seconds: [u32; SECONDS],
    next: usize,
    /// Seconds since the last request.
    idle: usize,
    /// The durations 10, 20 … 60 seconds ago, the oldest first.
    marks: VecDeque<HistogramCounts>,
    until_mark: usize,
}

impl Traffic {
    /// Records the counters so far. To be called once a second.
    pub(crate) fn sample(&self, requests: u64, latency: impl Fn() -> Option<HistogramCounts>) {
        let mut samples = self.lock();
        let new = requests.wrapping_sub(samples.seen);
        samples.seen = requests;
        // An idle object stays without a window.
        if new == 0 && samples.window.is_none() {
            return;
        }
        let samples = &mut *samples;
        let window = samples
            .window
            .get_or_insert_with(|| Box::new(Window::after(samples.baseline.take())));
        // Idle for the whole window: only the baseline is kept.
        if !window.push(new, &latency) {
            samples.window = None;
            samples.baseline = latency().map(Box::new);
        }
    }

    /// Requests in each of the last 60 seconds, the oldest first; all 0 if idle.
    pub(crate) fn per_second(&self) -> Vec<u32> {
        let samples = self.lock();
        let Some(window) = &samples.window else {
            return vec![0; SECONDS];
        };
        let (newer, older) = window.seconds.split_at(window.next);
        [older, newer].concat()
    }

    /// Number of requests in the latest second.
    pub(crate) fn last_second(&self) -> u32 {
        let samples = self.lock();
        let window = samples.window.as_ref();
        window.map_or(0, |window| {
            window.seconds[(window.next + SECONDS - 1) % SECONDS]
        })
    }

    /// Number of requests in the last `seconds` and since the latest sample. `requests` is the
    /// counter now.
    pub(crate) fn recent(&self, seconds: usize, requests: u64) -> u64 {
        let samples = self.lock();
        let sampled = samples.window.as_ref().map_or(0, |window| {
            let late =
                (1..=seconds.min(SECONDS)).map(|ago| (window.next + SECONDS - ago) % SECONDS);
            late.map(|at| u64::from(window.seconds[at])).sum()
        });
        // Adds the requests since the last sample.
        sampled + requests.wrapping_sub(samples.seen)
    }

    /// Number of responses in the last `seconds` at most, in steps of ten of them. `now` has the durations so far, one
    /// for each response.
    pub(crate) fn answers(&self, seconds: usize, now: &HistogramCounts) -> u64 {
        let samples = self.lock();
        let before = match &samples.window {
            Some(window) => window.mark_after(seconds).count(),
            None => samples.baseline.as_ref().map_or(0, |base| base.count()),
        };
        now.count().saturating_sub(before)
    }

    /// The part of `now`, the durations so far, that was recorded in about the last minute.
    pub(crate) fn last_minute(&self, now: &HistogramCounts) -> HistogramCounts {
        let samples = self.lock();
        match samples
            .window
            .as_ref()
            .and_then(|window| window.marks.front())
        {
            Some(oldest) => now.since(oldest),
            None => HistogramCounts::default(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Samples> {
        // The figures are for display: a sample cut short by a panic is off by one at most.
        self.0.lock()
    }
}

impl Window {
    fn after(baseline: Option<Box<HistogramCounts>>) -> Self {
        Self {
            seconds: [0; SECONDS],
            next: 0,
            idle: 0,
            marks: VecDeque::from([baseline.map_or_else(HistogramCounts::default, |b| *b)]),
            until_mark: MARK_EVERY,
        }
    }

    /// The oldest mark that was set at most `seconds` ago, else the latest one.
    fn mark_after(&self, seconds: usize) -> &HistogramCounts {
        let age = MARK_EVERY - self.until_mark;
        let younger = seconds.saturating_sub(age) / MARK_EVERY;
        let last = self.marks.len() - 1;
        &self.marks[last.saturating_sub(younger)]
    }

    /// Adds a second. Returns false if the whole window is idle.
    fn push(&mut self, new: u64, latency: &impl Fn() -> Option<HistogramCounts>) -> bool {
        self.seconds[self.next] = u32::try_from(new).unwrap_or(u32::MAX);
        self.next = (self.next + 1) % SECONDS;
        self.idle = if new > 0 { 0 } else { self.idle + 1 };
        // Histograms are large, so they are copied every few seconds only.
        self.until_mark -= 1;
        if self.until_mark == 0 {
            self.until_mark = MARK_EVERY;
            if let Some(counts) = latency() {
                if self.marks.len() == MARKS {
                    self.marks.pop_front();
                }
                self.marks.push_back(counts);
            }
        }
        self.idle < SECONDS
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::observe::Histogram;

    #[test]
    fn the_last_minute_is_remembered_and_no_more() {
        let traffic = Traffic::default();
        for second in 1..=70_u64 {
            traffic.sample(second * (second + 1) / 2, || None);
        }
        let expected: Vec<u32> = (11..=70).collect();
        assert_eq!(traffic.per_second(), expected);
    }

    #[test]
    fn late_requests_are_those_of_some_seconds_and_what_is_not_sampled_yet() {
        let traffic = Traffic::default();
        assert_eq!(traffic.recent(30, 2), 2);
        for second in 1..=65 {
            traffic.sample(second, || None);
        }
        assert_eq!(traffic.recent(30, 65), 30);
        assert_eq!(traffic.recent(30, 72), 37);
    }

    #[test]
    fn durations_leave_with_their_minute() {
        let traffic = Traffic::default();
        let histogram = Histogram::default();
        histogram.record(Duration::from_secs(1));
        let sample = |requests| traffic.sample(requests, || Some(histogram.counts()));
        sample(1);
        assert_eq!(traffic.last_minute(&histogram.counts()).count(), 1);
        for _ in 0..49 {
            sample(1);
        }
        histogram.record(Duration::from_millis(1));
        sample(2);
        assert_eq!(traffic.last_minute(&histogram.counts()).count(), 2);
        for _ in 0..20 {
            sample(2);
        }
        let left = traffic.last_minute(&histogram.counts());
        assert_eq!((left.count(), left.sum()), (1, Duration::from_millis(1)));
    }

    #[test]
    fn answers_are_those_of_the_last_seconds() {
        let traffic = Traffic::default();
        let histogram = Histogram::default();
        let answers = || traffic.answers(30, &histogram.counts());
        let sample = |requests| traffic.sample(requests, || Some(histogram.counts()));
        histogram.record(Duration::from_millis(1));
        assert_eq!(answers(), 1, "nothing is sampled yet");
        for second in 1..=100 {
            sample(second);
            // It has not answered since, and requests go on.
            let expected = u64::from(second <= 30);
            assert!(answers() <= expected, "after {second} s");
            assert!(second > 20 || answers() == 1, "after {second} s");
        }
        histogram.record(Duration::from_millis(1));
        assert_eq!(answers(), 1);
    }

    #[test]
    fn an_idle_minute_frees_the_window_and_forgets_nothing_after_it() {
        let traffic = Traffic::default();
        let histogram = Histogram::default();
        let sample = |requests| traffic.sample(requests, || Some(histogram.counts()));
        histogram.record(Duration::from_secs(1));
        sample(1);
        for _ in 0..SECONDS {
            sample(1);
        }
        assert!(traffic.lock().window.is_none());
        assert_eq!(traffic.per_second(), [0; SECONDS]);
        histogram.record(Duration::from_millis(1));
        sample(2);
        assert_eq!(traffic.per_second()[SECONDS - 1], 1);
        let last = traffic.last_minute(&histogram.counts());
        assert_eq!(last.sum(), Duration::from_millis(1));
    }
}
