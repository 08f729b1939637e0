//! The figures of the last hour, for charts.

use std::time::Duration;

use parking_lot::Mutex;

use crate::observe::HistogramCounts;

/// Seconds that one point covers.
pub(crate) const STEP: Duration = Duration::from_secs(10);

/// Number of points: one hour.
pub(crate) const POINTS: usize = 360;

/// Maximum of charts that have points, over all routes and clusters. They take 16 MB.
pub(crate) const MOST: usize = 2_000;

/// Counters since the start.
#[derive(Clone, Debug, Default)]
pub(crate) struct Totals {
    pub(crate) requests: u64,
    pub(crate) failures: u64,
    pub(crate) durations: HistogramCounts,
}

/// Requests, failures and durations of a route, of a cluster or of all requests over the last hour.
///
/// An object without requests has no points.
#[derive(Debug, Default)]
pub(crate) struct Chart(Mutex<Option<Box<Ring>>>);

/// The figures of one step.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Point {
    pub(crate) requests: u32,
    pub(crate) failures: u32,
    /// The median, and the 90th and 99th percentile, in microseconds; 0 without requests.
    pub(crate) percentiles: [u32; 3],
}

#[derive(Debug)]
struct Ring {
    points: [Point; POINTS],
    /// The oldest point.
    next: usize,
    /// Number of points at the end that have no requests.
    idle: usize,
    seen: Totals,
}

impl Totals {
    pub(crate) fn add(&mut self, other: &Self) {
        self.requests += other.requests;
        self.failures += other.failures;
        self.durations.merge(&other.durations);
    }

    /// The figures since `earlier`. Routes that were removed since take their numbers along.
    fn since(&self, earlier: &Self) -> Point {
        let durations = self.durations.since(&earlier.durations);
        let short = |number: u64| u32::try_from(number).unwrap_or(u32::MAX);
        let percentile = |part: f64| {
            let found = durations.quantile(part).unwrap_or_default();
            u32::try_from(found.as_micros()).unwrap_or(u32::MAX)
        };
        Point {
            requests: short(self.requests.saturating_sub(earlier.requests)),
            failures: short(self.failures.saturating_sub(earlier.failures)),
            percentiles: [0.5, 0.9, 0.99].map(percentile),
        }
    }
}

impl Chart {
    /// Adds a point at the end of a step. `requests`: a number that grows with each request. Returns true if the chart
    /// has points; one without points gets some only if it `may_open`.
    pub(crate) fn record(
        &self,
        requests: u64,
        may_open: bool,
        totals: impl FnOnce() -> Totals,
    ) -> bool {
        let mut ring = self.0.lock();
        match &mut *ring {
            None if requests == 0 || !may_open => return false,
            // The first step began before anything was seen, so that its requests count.
            None => *ring = Some(Box::new(Ring::after(&totals()))),
            Some(open) => {
                if open.push(totals()) == POINTS {
                    // A whole hour without requests gives the memory back.
                    *ring = None;
                }
            }
        }
        ring.is_some()
    }

    /// The points, the oldest first; fewer than an hour's are never there.
    pub(crate) fn points(&self) -> Vec<Point> {
        match &*self.0.lock() {
            None => vec![Point::default(); POINTS],
            Some(ring) => {
                let (newer, older) = ring.points.split_at(ring.next);
                [older, newer].concat()
            }
        }
    }

    /// Requests and failures of the last `count` points.
    pub(crate) fn recent(&self, count: usize) -> Option<Point> {
        let ring = self.0.lock();
        let ring = ring.as_ref()?;
        let latest = |ago: usize| ring.points[(ring.next + POINTS - ago) % POINTS];
        let mut sum = Point::default();
        for ago in 1..=count {
            let point = latest(ago);
            sum.requests = sum.requests.saturating_add(point.requests);
            sum.failures = sum.failures.saturating_add(point.failures);
            // Percentiles cannot be added, so those of the latest step with requests stand for all.
            if sum.percentiles == [0; 3] {
                sum.percentiles = point.percentiles;
            }
        }
        Some(sum)
    }
}

impl Ring {
    fn after(first: &Totals) -> Self {
        let mut ring = Self {
            points: [Point::default(); POINTS],
            next: 0,
            idle: POINTS - 1,
            seen: Totals::default(),
        };
        ring.push(first.clone());
        ring
    }

    /// Returns the number of points without requests at the end.
    fn push(&mut self, totals: Totals) -> usize {
        let point = totals.since(&self.seen);
        self.seen = totals;
        self.points[self.next] = point;
        self.next = (self.next + 1) % POINTS;
        self.idle = match point.requests {
            0 => (self.idle + 1).min(POINTS),
            _ => 0,
        };
        self.idle
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn totals(requests: u64, failures: u64, each: Duration) -> Totals {
        let histogram = crate::observe::histogram::Histogram::default();
        (0..requests).for_each(|_| histogram.record(each));
        Totals {
            requests,
            failures,
            durations: histogram.counts(),
        }
    }

    #[test]
    fn points_are_differences_and_an_idle_hour_takes_no_memory() {
        let chart = Chart::default();
        assert!(!chart.record(0, true, Totals::default), "no request yet");
        assert!(!chart.record(5, false, Totals::default), "too many charts");
        assert_eq!(chart.recent(6), None);
        assert!(chart.record(5, true, || totals(5, 1, Duration::from_millis(3))));
        assert!(chart.record(9, false, || totals(9, 4, Duration::from_millis(3))));
        let points = chart.points();
        assert_eq!(points.len(), POINTS);
        let [.., before, last] = &points[..] else {
            panic!("there are many");
        };
        assert_eq!((before.requests, before.failures), (5, 1));
        assert_eq!((last.requests, last.failures), (4, 3));
        let median = last.percentiles[0];
        assert!((2_500..=3_000).contains(&median), "{median}");
        let minute = chart.recent(6).unwrap();
        assert_eq!((minute.requests, minute.failures), (9, 4));
        for _ in 0..POINTS - 1 {
            assert!(chart.record(9, false, || totals(9, 4, Duration::from_millis(3))));
        }
        assert_eq!(chart.points()[0].requests, 4, "an hour ago");
        assert!(!chart.record(9, false, || totals(9, 4, Duration::from_millis(3))));
        assert_eq!(chart.points(), [Point::default(); POINTS]);
    }
}
