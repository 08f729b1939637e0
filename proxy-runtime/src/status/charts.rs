//! The charts of the last hour: of all requests, of each route and of each cluster.

use std::collections::HashMap;

use proxy_model::compiled::{Route, RouteTarget};
use proxy_model::{ClusterId, RouteId};
use serde::Serialize;

use crate::error::{ForwardErrorKind, Side};
use crate::observe::{
    Chart, ClusterMetrics, MOST_CHARTS, Point, RouteMetrics, STEP, SeriesTable, Totals,
};
use crate::proxy::Shared;
use crate::state::{Generation, RouteState};

/// Number of routes and clusters between two yields to other tasks.
const BATCH: usize = 200;

/// Adds a point to every chart. To be called once in each [`STEP`].
///
/// Cancel safe: charts that were not reached miss a point.
pub(crate) async fn chart(shared: &Shared) {
    let generation = shared.load_full();
    let mut all = Totals::default();
    add_series(&shared.metrics().unrouted, None, &mut all);
    let (mut open, mut seen) = (0, 0);
    let routes = generation.snapshot().routes().iter();
    for (route, state) in routes.zip(generation.routes()) {
        let metrics = state.metrics();
        let requests = metrics.requests();
        // An idle route needs no look at its series.
        let totals = match requests {
            0 => Totals::default(),
            _ => of_route(route, metrics),
        };
        all.add(&totals);
        let is_open = metrics
            .chart
            .record(requests, open < MOST_CHARTS, || totals);
        open += usize::from(is_open);
        pause(&mut seen).await;
    }
    for (_, cluster) in generation.clusters() {
        let metrics = cluster.live().metrics();
        let requests = attempts(metrics);
        let totals = || of_cluster(metrics);
        let is_open = metrics.chart.record(requests, open < MOST_CHARTS, totals);
        open += usize::from(is_open);
        pause(&mut seen).await;
    }
    let requests = all.requests;
    let _ = shared.metrics().chart.record(requests, true, || all);
}

/// A chart as the page draws it: one value for each step of the last hour, the oldest first.
#[derive(Serialize)]
pub(crate) struct ChartView {
    /// Seconds of one step.
    step: u64,
    requests: Vec<u32>,
    failures: Vec<u32>,
    p50_ms: Vec<f64>,
    p90_ms: Vec<f64>,
    p99_ms: Vec<f64>,
}

impl ChartView {
    /// The chart of a route. `None` if there is no such route.
    pub(crate) fn of_route(shared: &Shared, id: &RouteId) -> Option<Self> {
        let generation = shared.load_full();
        let (_, state) = routes(&generation).find(|(route, _)| *route == id)?;
        Some(Self::of(&state.metrics().chart))
    }

    /// The chart of a cluster. `None` if there is no such cluster.
    pub(crate) fn of_cluster(shared: &Shared, id: &ClusterId) -> Option<Self> {
        let generation = shared.load_full();
        let (_, state) = generation.find_cluster(id)?;
        Some(Self::of(&state.live().metrics().chart))
    }

    pub(crate) fn of(chart: &Chart) -> Self {
        let points = chart.points();
        let percentile = |index: usize| {
            let each = points.iter().map(|point| point.percentiles[index]);
            each.map(|micros| f64::from(micros) / 1e3).collect()
        };
        Self {
            step: STEP.as_secs(),
            requests: points.iter().map(|point| point.requests).collect(),
            failures: points.iter().map(|point| point.failures).collect(),
            p50_ms: percentile(0),
            p90_ms: percentile(1),
            p99_ms: percentile(2),
        }
    }
}

/// The figures of the last minute.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct LastMinute {
    pub(crate) requests: u32,
    /// Answers from 500 on, and errors that no client caused.
    pub(crate) failures: u32,
    p50_ms: f64,
    pub(crate) p99_ms: f64,
}

impl LastMinute {
    /// The charts of all routes that had requests in the last hour.
    pub(crate) fn of_routes(shared: &Shared) -> HashMap<RouteId, Self> {
        let generation = shared.load_full();
        let known = routes(&generation);
        known
            .filter_map(|(id, state)| Some((id.clone(), Self::of(&state.metrics().chart)?)))
            .collect()
    }

    /// The charts of all clusters that had requests in the last hour.
    pub(crate) fn of_clusters(shared: &Shared) -> HashMap<ClusterId, Self> {
        let generation = shared.load_full();
        let clusters = generation.clusters().filter_map(|(cluster, state)| {
            let minute = Self::of(&state.live().metrics().chart)?;
            Some((cluster.id().clone(), minute))
        });
        clusters.collect()
    }

    /// `None` without a request in the last hour.
    pub(crate) fn of(chart: &Chart) -> Option<Self> {
        // One minute.
        const STEPS: usize = 6;
        let Point {
            requests,
            failures,
            percentiles: [p50, _, p99],
        } = chart.recent(STEPS)?;
        Some(Self {
            requests,
            failures,
            p50_ms: f64::from(p50) / 1e3,
            p99_ms: f64::from(p99) / 1e3,
        })
    }

    /// The part of failed requests, from 0 to 1.
    pub(crate) fn failed(&self) -> f64 {
        match self.requests {
            0 => 0.0,
            requests => f64::from(self.failures) / f64::from(requests),
        }
    }
}

fn routes(generation: &Generation) -> impl Iterator<Item = (&RouteId, &RouteState)> {
    let configured = generation.snapshot().routes().iter();
    configured.map(Route::id).zip(generation.routes())
}

/// The requests of a route. Those that got its configured response have not failed.
fn of_route(route: &Route, metrics: &RouteMetrics) -> Totals {
    let mut totals = Totals::default();
    let configured = match route.target() {
        RouteTarget::Respond(fixed) => Some(fixed.status().as_u16()),
        _ => None,
    };
    add_series(metrics.durations(), configured, &mut totals);
    totals
}

/// The attempts of a cluster: those that were answered, and those that failed before.
fn of_cluster(metrics: &ClusterMetrics) -> Totals {
    let mut totals = Totals::default();
    add_series(&metrics.requests, None, &mut totals);
    for (kind, count) in metrics.errors.iter() {
        // A client that disconnects says nothing about the cluster.
        if kind.side() == Side::Client {
            continue;
        }
        totals.failures += count;
        if is_unanswered(kind) {
            totals.requests += count;
        }
    }
    // A response with an error status whose body fails as well was counted twice.
    totals.failures = totals.failures.min(totals.requests);
    totals
}

fn attempts(metrics: &ClusterMetrics) -> u64 {
    let errors = metrics.errors.iter();
    let unanswered = errors.filter(|(kind, _)| is_unanswered(*kind));
    metrics.requests.recorded() + unanswered.map(|(_, count)| count).sum::<u64>()
}

/// True for errors that end an attempt before its response.
fn is_unanswered(kind: ForwardErrorKind) -> bool {
    [
        ForwardErrorKind::NoAvailableDestinations,
        ForwardErrorKind::Request,
        ForwardErrorKind::RequestBodyDestination,
        ForwardErrorKind::RequestCreation,
        ForwardErrorKind::RequestTimedOut,
    ]
    .contains(&kind)
}

/// Adds requests. Those with the status `fine` have not failed, whatever it is.
fn add_series(series: &SeriesTable, fine: Option<u16>, totals: &mut Totals) {
    series.for_each(|labels, counts| {
        let requests = counts.count();
        totals.requests += requests;
        if labels.is_some_and(|labels| labels.status() >= 500 && Some(labels.status()) != fine) {
            totals.failures += requests;
        }
        totals.durations.merge(counts);
    });
}

async fn pause(seen: &mut usize) {
    *seen += 1;
    if seen.is_multiple_of(BATCH) {
        tokio::task::yield_now().await;
    }
}
