//! Load over HTTP/1.1.

use std::io;
use std::time::{Duration, Instant};

use super::arrivals::Arrivals;
use super::connection::{LoadConnection, LoadOutcome};
use super::phase::{Course, Phase, Step};
use super::{Edge, Pace, Plan, Tally, Target};
use crate::poll::{Interest, Poll, Ready};

const BUFFER: usize = 256 << 10;

/// Number of errors that ends a run: it measures nothing useful.
const ERRORS: u64 = 25;

/// Pause after a failed attempt to connect.
const PAUSE: Duration = Duration::from_millis(10);

/// Maximum of a single wait, so that a run ends even if nothing happens.
const LONGEST_WAIT: Duration = Duration::from_millis(100);

/// Sends the requests of `plan` to `target`, notifies `probe` of the beginning and end of the
/// measurement, and returns the counts.
///
/// # Errors
///
/// Fails if the system denies the generator's own resources. Errors of the target are counted
/// instead.
pub(crate) fn run(plan: &Plan, target: &Target, probe: &mut dyn FnMut(Edge)) -> io::Result<Tally> {
    let mut generator = Generator::new(plan, target)?;
    let mut ready = Vec::new();
    loop {
        loop {
            let now = generator.start.elapsed();
            match generator.course.advance(now, generator.unfinished()) {
                Step::Go => break,
                Step::Begin => {
                    generator.tally = Tally::new();
                    probe(Edge::Begin);
                    generator.begun = Instant::now();
                    generator.measured_from = generator.start.elapsed();
                }
                Step::End => {
                    probe(Edge::End);
                    generator.tally.elapsed = generator.begun.elapsed();
                }
                Step::Stop => return Ok(generator.finish()),
            }
        }
        if generator.tally.errors > ERRORS {
            probe(Edge::End);
            return Ok(generator.finish());
        }
        generator.send_due();
        let now = generator.start.elapsed();
        let timeout = generator
            .next()
            .map_or(LONGEST_WAIT, |next| next.saturating_sub(now))
            .min(LONGEST_WAIT);
        generator.poll.wait(Some(timeout), &mut ready)?;
        for event in &ready {
            generator.go_on(event);
        }
    }
}

struct Generator<'a> {
    plan: &'a Plan,
    target: &'a Target,
    request: Vec<u8>,
    poll: Poll,
    connections: Vec<Option<LoadConnection>>,
    /// The indices of free connections.
    free: Vec<usize>,
    arrivals: Option<Arrivals>,
    course: Course,
    under_way: u64,
    start: Instant,
    begun: Instant,
    /// The start of the measurement, since the start of the run.
    measured_from: Duration,
    tally: Tally,
    buffer: Vec<u8>,
}

impl<'a> Generator<'a> {
    fn new(plan: &'a Plan, target: &'a Target) -> io::Result<Self> {
        let start = Instant::now();
        Ok(Self {
            plan,
            target,
            request: plan.exchange.render(plan.pace != Pace::Churn),
            poll: Poll::new()?,
            connections: (0..plan.connections).map(|_| None).collect(),
            free: (0..plan.connections).collect(),
            arrivals: match plan.pace {
                Pace::Open(rate) => Some(Arrivals::at_rate(rate)),
                Pace::Closed | Pace::Churn => None,
            },
            course: Course::new(plan.warm_up, plan.extent),
            under_way: 0,
            start,
            begun: start,
            measured_from: Duration::ZERO,
            tally: Tally::new(),
            buffer: vec![0; BUFFER],
        })
    }

    /// The next instant with work to do if nothing happens before.
    fn next(&self) -> Option<Duration> {
        let sends = self.course.may_send();
        let arrival = self.arrivals.as_ref().filter(|_| sends).map(Arrivals::next);
        // In a closed loop nothing is free after sending, unless sending has failed.
        let again = self.arrivals.is_none() && sends && !self.free.is_empty();
        let again = again.then(|| self.start.elapsed() + PAUSE);
        arrival
            .into_iter()
            .chain(self.course.next())
            .chain(again)
            .min()
    }

    /// Requests that were due and have no answer.
    fn unfinished(&self) -> u64 {
        self.under_way + self.arrivals.as_ref().map_or(0, Arrivals::waiting)
    }

    /// Sends everything that may be sent now.
    fn send_due(&mut self) {
        let now = self.start.elapsed();
        if let Some(arrivals) = self.arrivals.as_mut().filter(|_| self.course.may_send()) {
            arrivals.advance(now);
        }
        while let Some(since) = self.next_due() {
            let Some(number) = self.free.pop() else {
                self.put_back(since);
                return;
            };
            if !self.send(number, since) {
                // The others would fail as well: check for events first.
                return;
            }
        }
    }

    /// The instant from which the latency of the next request counts, or `None` if no request may
    /// be sent. Requests due before the end are sent after it too, so that their wait is measured
    /// and not forgotten.
    fn next_due(&mut self) -> Option<Duration> {
        match &mut self.arrivals {
            Some(arrivals) => arrivals.take(),
            None => self.course.may_send().then(|| self.start.elapsed()),
        }
    }

    fn put_back(&mut self, due: Duration) {
        if let Some(arrivals) = &mut self.arrivals {
            arrivals.put_back(due);
        }
    }

    /// Begins an exchange, on a new connection if there is none. Returns `false` if that fails.
    fn send(&mut self, number: usize, since: Duration) -> bool {
        self.course.has_sent();
        if self.connections[number].is_none() {
            let opened = LoadConnection::open(self.target, self.plan.exchange.resource.len())
                .and_then(|connection| {
                    self.poll.add(&connection, number, Interest::Read)?;
                    Ok(connection)
                });
            match opened {
                Ok(connection) => self.connections[number] = Some(connection),
                Err(error) => {
                    self.tally.fail(|| format!("connecting: {error}"));
                    self.free.push(number);
                    return false;
                }
            }
        }
        self.under_way += 1;
        let connection = self.connections[number]
            .as_mut()
            .expect("it is there or was just opened");
        let outcome = connection.start(&self.request, since);
        self.settle(number, outcome)
    }

    fn go_on(&mut self, event: &Ready) {
        let Some(connection) = self
            .connections
            .get_mut(event.token)
            .and_then(Option::as_mut)
        else {
            return;
        };
        let outcome = connection.go_on(&self.request, event.readable, &mut self.buffer);
        self.settle(event.token, outcome);
    }

    /// Records the outcome of a connection's turn. Returns `false` if the exchange has failed.
    fn settle(&mut self, number: usize, outcome: LoadOutcome) -> bool {
        match outcome {
            LoadOutcome::Waiting => {}
            LoadOutcome::Complete => {
                self.count(number);
                // The proxy was asked to close, and a new connection is opened when it has.
                if self.plan.pace != Pace::Churn {
                    self.under_way -= 1;
                    self.free.push(number);
                }
            }
            LoadOutcome::Closed => {
                self.connections[number] = None;
                if self.plan.pace == Pace::Churn {
                    self.under_way -= 1;
                    self.free.push(number);
                } else {
                    // It stays among the free ones and is opened again at its next turn.
                    self.tally
                        .fail(|| "a connection was closed between requests".to_owned());
                }
                return true;
            }
            LoadOutcome::Failed(why) => {
                self.tally.fail(|| why);
                let closed = self.connections[number].take();
                if self.plan.pace == Pace::Churn || closed.is_some_and(|closed| closed.is_busy()) {
                    self.under_way -= 1;
                    self.free.push(number);
                }
                return false;
            }
        }
        if let Some(connection) = &mut self.connections[number]
            && let Some(interest) = connection.changed_interest()
            && let Err(error) = self.poll.modify(&*connection, number, interest)
        {
            self.tally.fail(|| format!("watching: {error}"));
        }
        true
    }

    fn count(&mut self, number: usize) {
        let now = self.start.elapsed();
        let since = self.connections[number]
            .as_ref()
            .map_or(now, |connection| connection.since);
        match self.course.phase() {
            Phase::Measuring { .. } => {
                self.tally.requests += 1;
                self.tally.latency.record(now.saturating_sub(since));
            }
            // The latencies of an open loop include late answers: slow requests must not be left
            // out.
            Phase::Draining { .. } if self.arrivals.is_some() && since >= self.measured_from => {
                self.tally.latency.record(now.saturating_sub(since));
            }
            Phase::WarmUp | Phase::Settling | Phase::Draining { .. } | Phase::Over => {}
        }
    }

    fn finish(mut self) -> Tally {
        self.tally.unanswered = self.unfinished();
        self.tally
    }
}
