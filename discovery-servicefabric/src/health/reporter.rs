//! Sending of reports: changes at once, the rest as seldom as possible.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::stream::{self, StreamExt};
use parking_lot::{Mutex, MutexGuard};
use proxy_model::Problem;
use tokio::time::{Instant, timeout_at};

use super::HealthReport;
use super::cycle_times::CycleTimes;
use super::report_record::{LONGEST_PAUSE, Reason, ReportRecord};
use crate::calls::{CallError, CallErrorKind, ClusterCalls, HealthEntity};
use crate::model::HealthState;
use crate::options::ServiceFabricOptions;

/// The pause after a report was rejected for lack of permission.
const DENIED_PAUSE: Duration = Duration::from_secs(5 * 60);

/// A hint about rejected reports.
const DENIED_HINT: &str = "reporting health takes the role of an administrator; `ReportServicesHealth` and `ReportReplicasHealth` switch it off";

/// Number of consecutive reports without a gateway to accept them, after which the rest waits for the next
/// cycle.
const MOST_UNANSWERED: usize = 16;

/// The longest pause of a report while no report is accepted at all, so that all are sent soon after the
/// gateway is back.
const AWAY_PAUSE: Duration = Duration::from_secs(30);

/// The time limit of reports in flight after the last one was started.
const GRACE: Duration = Duration::from_secs(10);

/// Sends reports, and remembers their content.
pub(crate) struct Reporter {
    calls: Arc<dyn ClusterCalls>,
    period: Duration,
    at_once: usize,
    state: Mutex<ReporterState>,
}

#[derive(Debug)]
struct ReporterState {
    /// The entities of the last cycle, and of no other.
    told: HashMap<HealthEntity, ReportRecord>,
    pace: CycleTimes,
    /// Number of consecutive reports that no gateway accepted.
    unanswered: usize,
    denied_until: Option<Instant>,
    /// The reason why the cluster last rejected reports for lack of permission, until it accepts one.
    denied: Option<String>,
}

/// One cycle of sending.
struct Sending {
    /// The time after which no further report is started.
    until: Instant,
    /// Number of entities that are reported on, sent or not.
    things: usize,
    stopped: AtomicBool,
    /// Number of reports without a response since the last response.
    unanswered: AtomicUsize,
    failed: AtomicUsize,
    left: AtomicUsize,
    first_error: Mutex<Option<CallError>>,
}

impl Reporter {
    pub(crate) fn new(calls: Arc<dyn ClusterCalls>, options: &ServiceFabricOptions) -> Self {
        let (period, at_once) = (options.discovery_period, options.max_concurrent_calls);
        Self {
            calls,
            period,
            at_once,
            state: Mutex::new(ReporterState {
                told: HashMap::new(),
                pace: CycleTimes::new(period, at_once),
                unanswered: 0,
                denied_until: None,
                denied: None,
            }),
        }
    }

    /// Sends the reports that have changed or would expire, for a third of the discovery period but at most
    /// 10 s, and for at most another 10 s those in flight then. Unsent reports go first the next time;
    /// rejected ones go last, after growing pauses.
    ///
    /// # Cancel safety
    ///
    /// May be dropped at any await point. Reports that were sent by then are not sent again.
    pub(crate) async fn send(&self, reports: Vec<HealthReport>) {
        let things = reports.len();
        let Some(due) = self.due(reports) else { return };
        let total = due.len();
        let sending = Sending {
            until: Instant::now() + self.state().pace.budget(),
            things,
            stopped: AtomicBool::new(false),
            unanswered: AtomicUsize::new(0),
            failed: AtomicUsize::new(0),
            left: AtomicUsize::new(0),
            first_error: Mutex::new(None),
        };
        stream::iter(due)
            .map(|report| self.one(report, &sending))
            .buffer_unordered(self.at_once)
            .collect::<()>()
            .await;
        let left = sending.left.into_inner();
        let first = sending.first_error.into_inner();
        if let Some(error) = first {
            self.failed(&error, sending.failed.into_inner(), left, total);
        } else if left > 0 {
            tracing::debug!(
                target: "discovery::servicefabric",
                left,
                total,
                "reports about the health of services wait for the next cycle",
            );
        }
    }

    /// The reports that must be sent now, in the order of their turns.
    fn due(&self, mut reports: Vec<HealthReport>) -> Option<Vec<HealthReport>> {
        let now = Instant::now();
        let mut state = self.state();
        let state = &mut *state;
        let since = state.pace.begins(now);
        if state.denied_until.is_some_and(|until| now < until) {
            return None;
        }
        // Two reports about one entity would be sent at once, and chance would decide which of them counts.
        let mut entities = HashSet::with_capacity(reports.len());
        reports.retain(|report| entities.insert(report.entity.clone()));
        state.told.retain(|entity, _| entities.contains(entity));
        let (cycle, holds) = (state.pace.cycle(), state.pace.time_to_live(reports.len()));
        // This many in each cycle renew all of them in time, and no cycle has to renew all.
        let share = since.unwrap_or_default().as_secs_f64() / (holds / 3).as_secs_f64();
        let mut share = (reports.len() as f64 * share) as usize;
        let (mut due, mut early) = (Vec::new(), Vec::new());
        for report in reports {
            let told = state.told.entry(report.entity.clone()).or_default();
            match told.reason(&report, now, cycle) {
                Some(Reason::News) => due.push(report),
                Some(Reason::Expiring) => {
                    share = share.saturating_sub(1);
                    due.push(report);
                }
                Some(Reason::Early) => early.push((told.said_at(), report)),
                None => told.rests(),
            }
        }
        early.sort_by_key(|(said, _)| *said);
        let rest = early.split_off(share.min(early.len()));
        for (_, report) in rest {
            if let Some(told) = state.told.get_mut(&report.entity) {
                told.rests();
            }
        }
        due.extend(early.into_iter().map(|(_, report)| report));
        due.sort_by_cached_key(|report| {
            let is_well = report.information.health_state == HealthState::Ok;
            let told = state.told.get(&report.entity);
            told.map(|told| told.turn(now, is_well))
        });
        for report in &due {
            if let Some(told) = state.told.get_mut(&report.entity) {
                told.waits(now);
            }
        }
        Some(due)
    }

    async fn one(&self, report: HealthReport, sending: &Sending) {
        // Its content is as old as its beginning.
        let begun = Instant::now();
        if sending.stopped.load(Ordering::Relaxed) || begun >= sending.until {
            sending.left.fetch_add(1, Ordering::Relaxed);
            return;
        }
        let HealthReport {
            entity,
            mut information,
            immediate,
            news,
        } = report;
        let holds = {
            let mut state = self.state();
            let told = state.told.entry(entity.clone()).or_default();
            told.tries(begun, news);
            let holds = state.pace.time_to_live(sending.things);
            holds.max(information.time_to_live.unwrap_or_default())
        };
        information.time_to_live = Some(holds);
        let call = self.calls.report_health(&entity, &information, immediate);
        let taken = timeout_at(sending.until + GRACE, call).await;
        let taken = taken.unwrap_or_else(|_| {
            let call = format!("report about {entity}");
            let message = "it was not taken before the next cycle was due";
            Err(CallError::new(CallErrorKind::TimedOut, call, message))
        });
        let now = Instant::now();
        let mut state = self.state();
        match taken {
            Ok(()) => {
                state.unanswered = 0;
                state.denied = None;
                sending.unanswered.store(0, Ordering::Relaxed);
                state.pace.took(now.duration_since(begun));
                if let Some(told) = state.told.get_mut(&entity) {
                    told.succeeded(begun, news, holds);
                }
            }
            Err(error) => {
                let denied = error.kind() == CallErrorKind::Denied;
                if is_unanswered(&error) {
                    state.unanswered = state.unanswered.saturating_add(1);
                    let unanswered = sending.unanswered.fetch_add(1, Ordering::Relaxed) + 1;
                    if unanswered >= MOST_UNANSWERED {
                        sending.stopped.store(true, Ordering::Relaxed);
                    }
                } else {
                    state.unanswered = 0;
                    sending.unanswered.store(0, Ordering::Relaxed);
                }
                if denied {
                    sending.stopped.store(true, Ordering::Relaxed);
                }
                let longest = match denied || state.unanswered >= MOST_UNANSWERED {
                    true => AWAY_PAUSE,
                    false => LONGEST_PAUSE,
                };
                if let Some(told) = state.told.get_mut(&entity) {
                    told.failed(now, longest);
                }
                sending.failed.fetch_add(1, Ordering::Relaxed);
                let first = sending.first_error.lock();
                let mut first = first;
                // That one explains why the rest was not tried.
                if denied || first.is_none() {
                    *first = Some(error);
                }
            }
        }
    }

    fn failed(&self, error: &CallError, failed: usize, left: usize, total: usize) {
        let denied = error.kind() == CallErrorKind::Denied;
        if denied {
            let mut state = self.state();
            state.denied_until = Some(Instant::now() + DENIED_PAUSE);
            state.denied = Some(error.chain());
        }
        let hint = match denied {
            true => format!("; {DENIED_HINT}"),
            false => String::new(),
        };
        tracing::warn!(
            target: "discovery::servicefabric",
            error = error.chain(),
            failed,
            left,
            total,
            "reports about the health of services were not taken{hint}",
        );
    }

    /// Returns a warning while the cluster rejects reports for lack of permission.
    pub(crate) fn rejection(&self) -> Option<Problem> {
        let error = self.state().denied.clone()?;
        let message = format!("the cluster rejects reports about the health of services: {error}");
        Some(Problem::warning("", "health_reports_refused", message).with_suggestion(DENIED_HINT))
    }

    fn state(&self) -> MutexGuard<'_, ReporterState> {
        // Each step under the lock leaves it whole.
        self.state.lock()
    }
}

/// Returns true if the gateway is unreachable or overloaded, which affects the other reports too. All other
/// errors concern one report.
fn is_unanswered(error: &CallError) -> bool {
    matches!(
        error.kind(),
        CallErrorKind::Unreachable | CallErrorKind::TimedOut | CallErrorKind::Busy
    )
}

impl fmt::Debug for Reporter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reporter")
            .field("period", &self.period)
            .finish_non_exhaustive()
    }
}
