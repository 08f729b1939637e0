//! The time that requests lose in the proxy: opening connections, and everything else that they wait for before
//! they are sent.
//!
//! Most requests wait for nothing, and cost nothing here: they are not recorded, and a scrape adds them.

use std::sync::OnceLock;
use std::time::Duration;

use super::histogram::{Histogram, Sample};
#[cfg(feature = "metrics")]
use super::{HistogramCounts, SeriesTable};

/// A part of opening a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ConnectPhase {
    /// The look-up of the name.
    Name,
    /// The connection, to the forward proxy if there is one.
    Tcp,
    /// The handshake.
    Tls,
}

impl ConnectPhase {
    pub(crate) const ALL: [Self; 3] = [Self::Name, Self::Tcp, Self::Tls];

    /// The name in metrics.
    #[cfg(feature = "metrics")]
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Name => "name",
            Self::Tcp => "tcp",
            Self::Tls => "tls",
        }
    }
}

/// Durations of opening connections to the destinations of a cluster, by phase. Needs one word of memory until the
/// first connection.
#[derive(Debug, Default)]
pub(crate) struct ConnectTimes(OnceLock<Box<[Histogram; ConnectPhase::ALL.len()]>>);

impl ConnectTimes {
    /// Records a phase that has succeeded.
    #[cold]
    pub(crate) fn record(&self, phase: ConnectPhase, took: Duration) {
        self.0.get_or_init(Box::default)[phase as usize].record(took);
    }

    /// The durations of a phase. `None` if there are none.
    #[cfg(feature = "metrics")]
    pub(crate) fn counts(&self, phase: ConnectPhase) -> Option<HistogramCounts> {
        let counts = self.0.get()?[phase as usize].counts();
        (counts.count() > 0).then_some(counts)
    }
}

/// Requests of a cluster that have waited in the proxy and were answered. Needs one word of memory until the first one.
#[derive(Debug, Default)]
pub(crate) struct Waits(OnceLock<Box<WaitRecord>>);

#[derive(Debug, Default)]
struct WaitRecord {
    /// From the head of a request to a connection for it.
    waited: Histogram,
    /// From the pick to the head of the response, of the same requests.
    answered: Histogram,
    /// From the head of the request to that of its response.
    first_byte: Histogram,
}

impl Waits {
    /// Records a request that has waited, by the time of its destination and the time until its response.
    #[cold]
    pub(crate) fn record(&self, waited: Duration, answered: Sample, first_byte: Duration) {
        let record = self.0.get_or_init(Box::default);
        record.waited.record(waited);
        record.answered.record(answered);
        record.first_byte.record(first_byte);
    }

    /// The time that the proxy added before requests were sent, and the time to the head of the response, of all
    /// requests of the cluster that were `answered`. `None` without any.
    #[cfg(feature = "metrics")]
    pub(crate) fn of_all(
        &self,
        answered: &SeriesTable,
    ) -> Option<(HistogramCounts, HistogramCounts)> {
        // Those that waited first: each of them is among the answered ones by then.
        let waits = self.0.get().map(|record| {
            let counts = [&record.waited, &record.answered, &record.first_byte];
            counts.map(Histogram::counts)
        });
        let mut all = HistogramCounts::default();
        answered.for_each(|_, counts| all.merge(counts));
        if all.count() == 0 {
            return None;
        }
        let Some([mut added, of_destination, first_byte]) = waits else {
            return Some((HistogramCounts::zeros(all.count()), all));
        };
        added.merge(&HistogramCounts::zeros(
            all.count().saturating_sub(added.count()),
        ));
        let mut first = all.since(&of_destination);
        first.merge(&first_byte);
        Some((added, first))
    }
}

#[cfg(all(test, feature = "metrics"))]
mod tests {
    use http::{Method, StatusCode, Version};

    use super::*;
    use crate::observe::Labels;

    #[test]
    fn requests_that_wait_for_nothing_are_counted_as_such() {
        let (waits, answered) = (Waits::default(), SeriesTable::default());
        assert!(waits.of_all(&answered).is_none());
        let labels = Labels::new(&Method::GET, Version::HTTP_11, StatusCode::OK);
        let ms = Duration::from_millis;
        for took in [1, 1, 5] {
            answered.record(labels, ms(took));
        }
        let (added, first) = waits.of_all(&answered).unwrap();
        assert_eq!((added.count(), added.sum()), (3, Duration::ZERO));
        assert_eq!((first.count(), first.sum()), (3, ms(7)));
        // The last one has waited for 20 ms.
        waits.record(ms(20), ms(5).into(), ms(25));
        let (added, first) = waits.of_all(&answered).unwrap();
        assert_eq!((added.count(), added.sum()), (3, ms(20)));
        assert_eq!((first.count(), first.sum()), (3, ms(27)));
    }

    #[test]
    fn phases_are_told_apart() {
        let times = ConnectTimes::default();
        assert!(times.counts(ConnectPhase::Tcp).is_none());
        times.record(ConnectPhase::Tls, Duration::from_millis(3));
        assert!(times.counts(ConnectPhase::Tcp).is_none());
        let tls = times.counts(ConnectPhase::Tls).unwrap();
        assert_eq!((tls.count(), tls.sum()), (1, Duration::from_millis(3)));
    }
}
