//! The observations of a scene, and the expected ones.

use std::fmt::Write;
use std::time::Duration;

use http::StatusCode;

use super::client::{End, Received};
use super::message::{Message, head};
use super::scene::{Answer, Content, Expected, Scene};
use super::transport::Read;
use crate::cluster::ClusterState;
use crate::error::{Cause, ForwardErrorKind, Side};
use crate::live::DestinationState;
use crate::observe::{ErrorCounters, RecentFailures, SeriesTable};
use crate::server::AccessRecord;
use crate::server::Outcome;
use crate::server::metrics::ServerCounts;

/// Names and values of the compared fields.
pub(super) type Fields = Vec<(&'static str, String)>;

/// The observations of a scene.
pub(super) struct Seen {
    /// `None` if the client has left.
    pub(super) answer: Option<Received>,
    pub(super) after: Duration,
    pub(super) destination: Read,
    /// Requests that came over second connections.
    pub(super) again: u64,
    pub(super) lines: Vec<Line>,
    /// Bytes that fit between the proxy and a client that takes nothing.
    pub(super) room: usize,
    pub(super) server: ServerCounts,
    pub(super) active: i64,
    pub(super) cluster: Cluster,
    pub(super) route: String,
}

/// The counters of a cluster and its last destination.
pub(super) struct Cluster {
    errors: String,
    causes: String,
    series: String,
    requests: u64,
    destination_errors: String,
    failing: String,
    responses: String,
    sent: u64,
    received: u64,
    in_flight: u32,
    /// Errors of the destination before.
    rejected: String,
}

impl Cluster {
    pub(super) fn of(state: &ClusterState) -> Self {
        let errors = |destination: &DestinationState| errors(&destination.metrics().errors);
        let (last, others) = state.destinations().split_last().unwrap();
        let metrics = last.metrics();
        let classes = metrics.responses();
        let responses: Vec<_> = (0..)
            .zip(classes)
            .filter(|(_, count)| *count > 0)
            .map(|(class, count)| format!("{class}xx: {count}"))
            .collect();
        let counters = &state.live().metrics().errors;
        let causes = counters.causes().map(|(cause, _)| cause.as_str());
        Self {
            causes: causes.collect::<Vec<_>>().join(" "),
            errors: self::errors(counters),
            series: series(&state.live().metrics().requests),
            requests: metrics.requests(),
            destination_errors: errors(last),
            failing: failing(&metrics.failures),
            responses: responses.join(" "),
            sent: metrics.bytes_sent(),
            received: metrics.bytes_received(),
            in_flight: last.in_flight(),
            rejected: others.iter().map(|other| errors(other)).collect(),
        }
    }
}

impl Cluster {
    fn causes(&self, expected: &Expected) -> String {
        match expected.cause {
            Some(_) => self.causes.clone(),
            None => String::new(),
        }
    }
}

fn cause(cause: Option<Cause>) -> String {
    cause.map_or_else(String::new, |cause| cause.as_str().to_owned())
}

fn errors(counters: &ErrorCounters) -> String {
    let errors = counters.iter().map(|(kind, count)| match count {
        1 => kind.as_str().to_owned(),
        _ => format!("{count} {kind}"),
    });
    errors.collect::<Vec<_>>().join(" ")
}

/// The failures that count for health, and the latest kind.
fn failing(failures: &RecentFailures) -> String {
    match (failures.total(), failures.kind()) {
        (1, Some(kind)) => kind.as_str().to_owned(),
        (0, None) => String::new(),
        (count, kind) => format!("{count}, the last {kind:?}"),
    }
}

/// The series that were counted, by status.
pub(super) fn series(table: &SeriesTable) -> String {
    let mut series = Vec::new();
    table.for_each(|labels, counts| {
        let status = labels.unwrap().status();
        series.push(match counts.count() {
            1 => status.to_string(),
            count => format!("{count} of {status}"),
        });
    });
    series.join(" ")
}

/// A line of the access log.
#[derive(Clone, Debug)]
pub(super) struct Line {
    status: Option<u16>,
    outcome: Outcome,
    error: Option<ForwardErrorKind>,
    cause: Option<Cause>,
    received: u64,
    sent: u64,
}

impl Line {
    pub(super) fn of(record: &AccessRecord<'_>) -> Self {
        let error = record.exchange.and_then(|exchange| exchange.error);
        Self {
            status: record.status.map(|status| status.as_u16()),
            outcome: record.outcome,
            error: error.or(record.body_error),
            cause: record.cause(),
            received: record.bytes_received,
            sent: record.bytes_sent,
        }
    }
}

impl Seen {
    pub(super) fn fields(&self, scene: &Scene, expected: &Expected) -> Fields {
        let cluster = &self.cluster;
        // There is none of a request that does not end.
        let line = self.lines.last();
        let after = self.after.as_secs();
        // Clocks look once in a second at most.
        let is_in_time = after == expected.after || after == expected.after + 1;
        vec![
            ("answer", self.answer()),
            (
                "after",
                if is_in_time { expected.after } else { after }.to_string(),
            ),
            ("errors", cluster.errors.clone()),
            ("causes", cluster.causes(expected)),
            (
                "log cause",
                cause(
                    expected
                        .cause
                        .and_then(|_| line.and_then(|line| line.cause)),
                ),
            ),
            ("requests", cluster.requests.to_string()),
            ("destination errors", cluster.destination_errors.clone()),
            ("failing", cluster.failing.clone()),
            ("refused", cluster.rejected.clone()),
            ("responses", cluster.responses.clone()),
            ("sent", cluster.sent.to_string()),
            ("received", bytes(cluster.received, scene)),
            ("in flight", cluster.in_flight.to_string()),
            ("client series", cluster.series.clone()),
            ("server series", self.route.clone()),
            ("active", self.active.to_string()),
            ("saw", self.saw(scene)),
            ("connection", self.connection().to_owned()),
            ("server", self.server()),
            ("log lines", self.lines.len().to_string()),
            (
                "log status",
                format!("{:?}", line.and_then(|line| line.status)),
            ),
            (
                "log outcome",
                line.map_or("", |line| line.outcome.as_str()).to_owned(),
            ),
            ("log error", named(line.and_then(|line| line.error))),
            (
                "log received",
                line.map_or(0, |line| line.received).to_string(),
            ),
            (
                "log sent",
                line.map_or(String::new(), |line| self.taken(line.sent, scene)),
            ),
        ]
    }

    /// Bytes that a client was sent, whatever came for it.
    fn taken(&self, count: u64, scene: &Scene) -> String {
        match count <= self.room as u64 {
            true => bytes(count, scene),
            false => count.to_string(),
        }
    }

    fn answer(&self) -> String {
        let Some(answer) = &self.answer else {
            return "left".to_owned();
        };
        let Some(status) = answer.status else {
            return "nothing".to_owned();
        };
        let text = String::from_utf8_lossy(&answer.content);
        let mut told = match answer.end {
            End::Whole if answer.is_marked && text == own_text(status) => {
                return format!("{status} of the proxy");
            }
            End::Whole => format!("{status} whole"),
            End::Cut => format!("{status} cut"),
            // In HTTP/1.1 this is nothing else.
            End::Dropped => format!("{status} dropped"),
            End::Reset(code) => format!("{status} reset with {code}"),
        };
        if status >= 400 && !text.starts_with("no") {
            write!(told, " {text:?}").unwrap();
        }
        told
    }

    fn saw(&self, scene: &Scene) -> String {
        let bytes = &self.destination.bytes;
        let Some(head) = head(bytes) else {
            return match bytes.is_empty() {
                true => "nothing".to_owned(),
                false => "a part of a head".to_owned(),
            };
        };
        let Message { content, is_whole } = Message::read(head, &bytes[head.len()..]);
        // How much fits into the connection depends on the length of the head.
        match !scene.takes_request && !is_whole && !content.is_empty() {
            true => "in part".to_owned(),
            false => saw(content.len() as u64, is_whole),
        }
    }

    fn connection(&self) -> &'static str {
        match (self.destination.is_closed, self.again) {
            (true, 0) => "closed",
            (false, 0) => "kept",
            (true, 1) => "closed, a second one",
            _ => "odd",
        }
    }

    fn server(&self) -> String {
        let counts = [
            ("refused", self.server.rejected_requests),
            ("malformed", self.server.malformed_requests),
            ("slow", self.server.slow_clients),
            ("panics", self.server.panics),
            ("active", self.server.active_requests),
        ];
        let counted = counts.into_iter().filter(|(_, count)| *count > 0);
        counted.map(|(name, _)| name).collect::<Vec<_>>().join(" ")
    }
}

/// Formats the number of bytes of a response. If the client takes nothing, the number depends on buffers.
fn bytes(count: u64, scene: &Scene) -> String {
    match scene.takes_response {
        true => count.to_string(),
        false => "some".to_owned(),
    }
}

fn own_text(status: u16) -> String {
    let status = StatusCode::from_u16(status).unwrap();
    format!(
        "{} {}\n",
        status.as_str(),
        status.canonical_reason().unwrap()
    )
}

fn saw(bytes: u64, is_whole: bool) -> String {
    match is_whole {
        true => format!("{bytes} bytes, whole"),
        false => format!("{bytes} bytes, broken"),
    }
}

fn named(error: Option<ForwardErrorKind>) -> String {
    error.map_or_else(String::new, |error| error.as_str().to_owned())
}

impl Scene {
    /// The expected fields.
    pub(super) fn fields(&self, expected: &Expected, is_http2: bool) -> Fields {
        let error = named(expected.error);
        let (answer, status, label, outcome) = match expected.answer {
            Answer::Own(status) => {
                let answer = format!("{status} of the proxy");
                (answer, Some(status), status, Outcome::Complete)
            }
            Answer::Whole(status) => {
                let answer = format!("{status} whole");
                (answer, Some(status), status, Outcome::Complete)
            }
            Answer::Cut(status) => {
                let answer = format!("{status} cut");
                (answer, Some(status), status, Outcome::Failed)
            }
            Answer::Dropped(status) => {
                let how = if is_http2 { "dropped" } else { "cut" };
                let answer = format!("{status} {how}");
                (answer, Some(status), status, Outcome::Aborted)
            }
            Answer::Reset => ("nothing".to_owned(), None, 400, Outcome::Aborted),
            Answer::Left(status) => {
                // Metrics count it as 400, if it has left before there was a response.
                let label = status.unwrap_or(400);
                ("left".to_owned(), status, label, Outcome::Aborted)
            }
        };
        let answered = expected.answered;
        let log_sent = match expected.answer {
            Answer::Own(status) => own_text(status).len() as u64,
            _ => expected.received,
        };
        let is_whole = self.is_sent_whole();
        let saw = match expected.saw {
            Some(saw) => saw.to_owned(),
            None => saw(expected.sent, is_whole || self.content == Content::None),
        };
        // What the client has caused, and the destination before was told.
        let errors = match expected.rejected {
            "" => error.clone(),
            rejected => format!("{rejected} {error}").trim_end().to_owned(),
        };
        let is_its_fault = |kind: &ForwardErrorKind| kind.side() == Side::Destination;
        let failing = named(expected.error.filter(is_its_fault));
        let log_error = match (expected.logged, expected.answer) {
            (Some((_, error)), _) => named(error),
            (None, Answer::Left(_) | Answer::Reset | Answer::Dropped(_)) => String::new(),
            (None, _) => error.clone(),
        };
        let outcome = expected.logged.map_or(outcome, |(outcome, _)| outcome);
        vec![
            ("answer", answer),
            ("after", expected.after.to_string()),
            ("errors", errors),
            ("causes", cause(expected.cause)),
            ("log cause", cause(expected.cause)),
            ("requests", "1".to_owned()),
            ("destination errors", error),
            ("failing", failing),
            ("refused", expected.rejected.to_owned()),
            (
                "responses",
                answered.map_or_else(String::new, |status| format!("{}xx: 1", status / 100)),
            ),
            ("sent", expected.sent.to_string()),
            ("received", bytes(expected.received, self)),
            ("in flight", "0".to_owned()),
            (
                "client series",
                answered.map_or_else(String::new, |status| status.to_string()),
            ),
            ("server series", label.to_string()),
            ("active", "0".to_owned()),
            ("saw", saw),
            (
                "connection",
                match (expected.is_kept, self.second) {
                    (_, Some(_)) => "closed, a second one",
                    (true, None) => "kept",
                    (false, None) => "closed",
                }
                .to_owned(),
            ),
            ("server", expected.server.to_owned()),
            ("log lines", "1".to_owned()),
            ("log status", format!("{status:?}")),
            ("log outcome", outcome.as_str().to_owned()),
            ("log error", log_error),
            (
                "log received",
                expected.uploaded.unwrap_or(expected.sent).to_string(),
            ),
            ("log sent", bytes(log_sent, self)),
        ]
    }
}
