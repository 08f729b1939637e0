//! A measurement: load on one proxy, with readings of its resources.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use super::{Entrant, Field, Latency, Score};
use crate::case::{Case, Shape};
use crate::load::{self, Edge, Extent, Plan, Tally, Target};
use crate::proxies::{Protocol, Running};
use crate::syscalls;
use crate::system::{self, ProcessorTime};

/// The share by which an open loop may fall short of its rate within the measurement; late requests
/// are answered and counted afterwards.
const SHORTFALL: f64 = 0.1;

/// Number of requests over which system calls are counted; with large bodies, each needs many
/// calls.
const COUNTED: u64 = 10_000;
const COUNTED_LARGE: u64 = 300;
impl Field<'_> {
    /// Puts load on a proxy. Returns the value of the case, and the latencies.
    pub(super) fn busy(
        &self,
        case: &Case,
        address: SocketAddr,
        running: &Running,
        score: &mut Score,
    ) -> Result<(f64, Option<Latency>), String> {
        let processes = running.processes();
        let mut edges = Vec::with_capacity(2);
        let mut probe = |_: Edge| edges.push(ProcessorTime::now(&processes));
        let extent = Extent::Time(self.pains.window);
        let tally = self.generate(case, address, self.pains.warm_up, extent, &mut probe)?;
        let used = match &edges[..] {
            [begin, end] => end.since(begin),
            _ => return Err("the load did not come to its end".to_owned()),
        };
        judge(case, &tally)?;
        if used.is_zero() {
            return Err(
                "the kernel tells no processor time (/proc/PID/task/*/schedstat)".to_owned(),
            );
        }
        #[expect(
            clippy::cast_precision_loss,
            reason = "a measurement has far fewer than 2^52 requests"
        )]
        let requests = tally.requests as f64;
        score
            .throughput
            .push(requests / tally.elapsed.as_secs_f64());
        let value = match case.shape {
            Shape::Workers { .. } => tally.elapsed.as_secs_f64() * 1e6 / requests,
            _ => used.as_secs_f64() * 1e6 / requests,
        };
        Ok((value, Latency::of(&tally.latency)))
    }

    fn generate(
        &self,
        case: &Case,
        address: SocketAddr,
        warm_up: Duration,
        extent: Extent,
        probe: &mut dyn FnMut(Edge),
    ) -> Result<Tally, String> {
        let (pace, connections) = match case.shape {
            Shape::Load { pace, connections } => (pace, connections),
            Shape::Streams { connections, .. }
            | Shape::Workers { connections }
            | Shape::Idle { connections } => (load::Pace::Closed, connections),
        };
        let plan = Plan {
            exchange: case.exchange,
            pace,
            connections,
            warm_up,
            extent,
        };
        let target = Target {
            address,
            tls: (case.protocol == Protocol::Tls).then(|| Arc::clone(self.tls)),
        };
        let tally = match case.shape {
            Shape::Streams { streams, .. } => load::run_http2(&plan, address, streams, probe),
            _ => load::run_http1(&plan, &target, probe),
        };
        tally.map_err(|error| format!("the generator: {error}"))
    }

    /// Memory of a proxy per idle connection, in KiB.
    pub(super) fn idle(
        &self,
        case: &Case,
        connections: usize,
        address: SocketAddr,
        running: &Running,
    ) -> Result<f64, String> {
        // Generator and origin have their ends of connections in this process, and the relay has
        // two of each.
        let connections = connections.min((self.open_files / 2).saturating_sub(500));
        let unreadable = || "its memory cannot be read".to_owned();
        // The first few connections allocate everything that is allocated once.
        drop(load::hold(address, case.exchange, 64).map_err(|error| error.to_string())?);
        let before = system::memory(&running.processes()).ok_or_else(unreadable)?;
        let held =
            load::hold(address, case.exchange, connections).map_err(|error| error.to_string())?;
        let after = system::memory(&running.processes()).ok_or_else(unreadable)?;
        drop(held);
        #[expect(
            clippy::cast_precision_loss,
            reason = "KiB of a process and its connections are far below 2^52"
        )]
        Ok(after.saturating_sub(before) as f64 / connections as f64)
    }

    pub(super) fn count_syscalls(&self, case: &Case, entrants: &mut [Entrant]) {
        if !matches!(
            case.shape,
            Shape::Load {
                pace: load::Pace::Closed,
                ..
            }
        ) {
            return;
        }
        let requests = if case.has_large_bodies() {
            COUNTED_LARGE
        } else {
            COUNTED
        };
        for entrant in entrants {
            let Some(running) = &entrant.running else {
                continue;
            };
            let mut trace = None;
            let mut counted = Err("the load did not come to its end".to_owned());
            let mut probe = |edge: Edge| match edge {
                Edge::Begin => {
                    trace = Some(syscalls::Trace::begin(
                        Path::new("strace"),
                        &running.processes(),
                        self.directory,
                    ))
                }
                Edge::End => {
                    if let Some(trace) = trace.take() {
                        counted = trace.and_then(syscalls::Trace::end);
                    }
                }
            };
            let tally = self.generate(
                case,
                entrant.address,
                self.pains.warm_up,
                Extent::Requests(requests),
                &mut probe,
            );
            let counted = tally.and_then(|tally| {
                judge(case, &tally)?;
                Ok(counted?.per_request(tally.requests))
            });
            match counted {
                Ok(calls) => {
                    println!("    {}: {calls}", entrant.score.contestant.label());
                    entrant.score.calls = Some(calls);
                }
                Err(why) => println!(
                    "    {}: SYSTEM CALLS NOT COUNTED: {why}",
                    entrant.score.contestant.label()
                ),
            }
        }
    }
}

/// Returns an error if a measurement is invalid.
fn judge(case: &Case, tally: &Tally) -> Result<(), String> {
    if tally.errors > 0 {
        let first = tally.first_error.as_deref().unwrap_or_default();
        return Err(format!("{} errors, the first: {first}", tally.errors));
    }
    if tally.unanswered > 0 {
        return Err(format!(
            "{} requests had no answer in the end",
            tally.unanswered
        ));
    }
    if tally.requests == 0 {
        return Err("no request was answered".to_owned());
    }
    if let Shape::Load {
        pace: load::Pace::Open(rate),
        ..
    } = case.shape
    {
        #[expect(
            clippy::cast_precision_loss,
            reason = "a measurement has far fewer than 2^52 requests"
        )]
        let reached = tally.requests as f64 / tally.elapsed.as_secs_f64();
        if reached < rate * (1.0 - SHORTFALL) {
            return Err(format!(
                "it cannot keep up: {reached:.0} of {rate:.0} requests a second"
            ));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::case::CASES;
    use crate::histogram::Histogram;

    fn tally(requests: u64) -> Tally {
        Tally {
            requests,
            errors: 0,
            first_error: None,
            unanswered: 0,
            elapsed: Duration::from_secs(1),
            latency: Histogram::new(),
        }
    }

    fn case(name: &str) -> &'static Case {
        CASES.iter().find(|case| case.name == name).unwrap()
    }

    #[test]
    fn a_round_with_errors_or_without_answers_is_worth_nothing() {
        let closed = case("get-128");
        assert_eq!(judge(closed, &tally(10)), Ok(()));
        assert!(judge(closed, &tally(0)).is_err());
        let failed = Tally {
            errors: 2,
            first_error: Some("status 502".to_owned()),
            ..tally(10)
        };
        assert_eq!(
            judge(closed, &failed),
            Err("2 errors, the first: status 502".to_owned())
        );
        let lost = Tally {
            unanswered: 1,
            ..tally(10)
        };
        assert!(judge(closed, &lost).is_err());
    }

    #[test]
    fn who_does_not_keep_up_with_an_open_loop_has_no_value_in_it() {
        let open = case("open-5k");
        assert_eq!(judge(open, &tally(4_800)), Ok(()));
        let why = judge(open, &tally(4_400)).unwrap_err();
        assert_eq!(why, "it cannot keep up: 4400 of 5000 requests a second");
    }
}
