//! The reports that a cycle causes, as a pure function.

use std::fmt::Write as _;
use std::sync::Once;
use std::time::Duration;

use discovery_core::{CycleReport, ServiceOutcome, ServiceReport};
use proxy_model::Problems;

use super::{HealthReport, PROPERTY, Subject, Subjects, time_to_live};
use crate::calls::HealthEntity;
use crate::hash::fnv1a;
use crate::id::id_of;
use crate::labels::{NO_USABLE_ENDPOINT, ReplicaOutcome};
use crate::model::{HealthInformation, HealthState, ServiceKind};
use crate::options::ServiceFabricOptions;
use crate::topology::PARTITION_NOT_READ;

/// The most of a description that a cluster keeps.
const MAX_DESCRIPTION: usize = 4096;

/// The codes of warnings about labels without effect.
const NOT_DONE: [&str; 5] = [
    "no_effect",
    PARTITION_NOT_READ,
    "unknown_label",
    "unsupported",
    "unsupported_label",
];

/// The code of the warning that earlier destinations of unreadable partitions do not serve any more.
const DESTINATIONS_TOO_OLD: &str = "destinations_too_old";

/// The content of a report.
struct Finding {
    state: HealthState,
    text: String,
    /// The text that decides whether the report has changed, if it differs from `text`. Messages about
    /// calls contain addresses and times, which change from cycle to cycle while nothing happens.
    news: Option<String>,
    /// The age of the data that serves, if it is old. It does not count as a change.
    age: Option<String>,
}

/// The reports that a cycle gives rise to, in the order of its services. Those of replicas come before that of their
/// service, which sums them up.
pub(crate) fn reports_of(
    report: &CycleReport,
    subjects: &Subjects,
    options: &ServiceFabricOptions,
) -> Vec<HealthReport> {
    let mut reports = Vec::new();
    for service in &report.services {
        let subject = subjects.get(&service.name);
        if options.report_replicas_health {
            let parsed = subject.and_then(|subject| subject.parsed.as_ref());
            let replicas = parsed.into_iter().flat_map(|parsed| &parsed.replicas);
            reports.extend(replicas.filter_map(|replica| of_replica(replica, options)));
        }
        if options.report_services_health {
            reports.extend(of_service(service, subject, options));
        }
    }
    reports
}

fn of_service(
    service: &ServiceReport,
    subject: Option<&Subject>,
    options: &ServiceFabricOptions,
) -> Option<HealthReport> {
    let finding = finding(service, subject)?;
    let entity = HealthEntity::Service {
        service_id: subject.map_or_else(
            || id_of(&service.name),
            |subject| subject.service_id.clone(),
        ),
    };
    let is_well = finding.state == HealthState::Ok;
    let immediate = options.always_send_immediate_health_reports || !is_well;
    Some(made(entity, finding, immediate, options))
}

/// Returns the report about a service. `None` if there is nothing to report.
fn finding(service: &ServiceReport, subject: Option<&Subject>) -> Option<Finding> {
    let is_unread = subject.is_some_and(|subject| subject.is_unread);
    let stale = subject.and_then(|subject| subject.stale.as_ref());
    match &service.outcome {
        ServiceOutcome::Accepted { clusters, routes } => {
            let dark = without_destination(service, subject);
            let is_well = dark.is_none() && stale.is_none();
            let mut text = match dark {
                Some(reasons) => reasons,
                None => {
                    let names: Vec<_> = clusters.iter().map(|id| format!("`{id}`")).collect();
                    let names = names.join(", ");
                    let routes = routes.len();
                    format!("The service is served. Clusters: {names}. Routes: {routes}.")
                }
            };
            let state = match !is_well || has_code(&service.problems, &NOT_DONE) {
                true => HealthState::Warning,
                false => HealthState::Ok,
            };
            let unread = has_code(&service.problems, &[PARTITION_NOT_READ]);
            let mut news = (unread || stale.is_some()).then(|| codes(&text, &service.problems));
            let mut age = None;
            if let Some(stale) = stale {
                let outage = "The last known state of the service is used, since calls fail: ";
                text = format!("{outage}{}\n{text}", stale.error);
                news = news.map(|news| format!("{outage}\n{news}"));
                age = Some(aged(stale.at.elapsed()));
            }
            list(&mut text, &service.problems);
            Some(Finding {
                state,
                text,
                news,
                age,
            })
        }
        // Another service's problem, and no data of this service serves that could be called old.
        ServiceOutcome::Quarantined {
            last_known_good_age: None,
            ..
        } if is_unread => None,
        ServiceOutcome::Quarantined {
            last_known_good_age,
            destinations_age,
        } => {
            let serves = (last_known_good_age.is_some(), destinations_age.is_some());
            let mut text = match (is_unread, serves) {
                (true, (_, true)) => {
                    "The service could not be read; its last known state is served.".to_owned()
                }
                (true, (_, false)) => {
                    "The service could not be read, and its last known state has no destination."
                        .to_owned()
                }
                (false, (true, true)) => {
                    "The service is served by its last known good labels: its current labels are invalid."
                        .to_owned()
                }
                (false, (true, false)) => format!(
                    "The service has {}. Its current labels are invalid, and its last known good labels apply.",
                    lacking(&service.problems)
                ),
                (false, (false, _)) => "The service is not served: its labels are invalid.".to_owned(),
            };
            let age = last_known_good_age.map(|rules| match destinations_age {
                Some(replicas) if *replicas < rules => format!(
                    "What serves: labels of {} ago, replicas of {} ago.",
                    rounded(rules),
                    rounded(*replicas)
                ),
                Some(_) => aged(rules),
                None => format!("Its labels are those of {} ago.", rounded(rules)),
            });
            let news = match (
                is_unread,
                has_code(&service.problems, &[PARTITION_NOT_READ]),
            ) {
                (true, _) => Some(codes(&text, &service.problems)),
                (false, true) => Some(mistakes(&text, &service.problems)),
                (false, false) => None,
            };
            list(&mut text, &service.problems);
            Some(Finding {
                state: HealthState::Warning,
                text,
                news,
                age,
            })
        }
        ServiceOutcome::Kept {
            last_known_good_age,
        } => {
            let mut text = String::from(
                "The last known state of the service is served: the services of its application could not be listed.",
            );
            let news = codes(&text, &service.problems);
            list(&mut text, &service.problems);
            Some(Finding {
                state: HealthState::Warning,
                text,
                news: Some(news),
                age: Some(aged(*last_known_good_age)),
            })
        }
        _ => None,
    }
}

/// Returns the kind of destination that a service with none lacks.
fn lacking(problems: &Problems) -> &'static str {
    if has_code(problems, &[NO_USABLE_ENDPOINT]) {
        "no destination that can be used"
    } else if has_code(problems, &[PARTITION_NOT_READ, DESTINATIONS_TOO_OLD]) {
        "no destination that is known"
    } else {
        "no replica that is ready for requests"
    }
}

fn has_code(problems: &Problems, codes: &[&str]) -> bool {
    let mut problems = problems.iter();
    problems.any(|problem| codes.contains(&&*problem.code))
}

/// Returns the reason why the service, or a part of it, has no destination although replicas are ready.
fn without_destination(service: &ServiceReport, subject: Option<&Subject>) -> Option<String> {
    let part = || {
        let text = "A part of the service has no destination; the rest is served.";
        has_code(&service.problems, &[NO_USABLE_ENDPOINT]).then(|| text.to_owned())
    };
    subject.and_then(all_rejected).or_else(part)
}

/// Returns the reason why the service has no destination although replicas are ready.
fn all_rejected(subject: &Subject) -> Option<String> {
    let replicas = &subject.parsed.as_ref()?.replicas;
    if replicas.is_empty() || replicas.iter().any(|replica| replica.result.is_ok()) {
        return None;
    }
    let mut text =
        String::from("The service has no destination: no replica has a usable endpoint.");
    let reasons = replicas.iter().filter_map(|replica| {
        let reason = replica.result.as_ref().err()?;
        Some(format!(
            "{}/{}: {reason}",
            replica.partition_id, replica.replica_id
        ))
    });
    for reason in reasons {
        if text.len() > MAX_DESCRIPTION {
            break;
        }
        let _ = write!(text, "\n{reason}");
    }
    Some(text)
}

/// Returns the report about a replica. `None` if the kind of the service is unknown, which the gateway
/// requires.
fn of_replica(replica: &ReplicaOutcome, options: &ServiceFabricOptions) -> Option<HealthReport> {
    static SAID: Once = Once::new();
    if !matches!(replica.kind, ServiceKind::Stateless | ServiceKind::Stateful) {
        SAID.call_once(|| {
            tracing::debug!(
                target: "discovery::servicefabric",
                partition = replica.partition_id,
                replica = replica.replica_id,
                "no health is reported for replicas that may or may not be stateful",
            );
        });
        return None;
    }
    let entity = HealthEntity::Replica {
        partition_id: replica.partition_id.clone(),
        replica_id: replica.replica_id,
        kind: replica.kind.clone(),
    };
    let (state, text) = match &replica.result {
        Ok(listeners) => {
            let names: Vec<_> = listeners.iter().map(|name| format!("`{name}`")).collect();
            let text = format!(
                "The replica is a destination. Listeners: {}.",
                names.join(", ")
            );
            (HealthState::Ok, text)
        }
        Err(reason) => {
            let text = format!("The replica is no destination: {reason}");
            (HealthState::Warning, text)
        }
    };
    let immediate = state != HealthState::Ok;
    let finding = Finding {
        state,
        text,
        news: None,
        age: None,
    };
    Some(made(entity, finding, immediate, options))
}

fn made(
    entity: HealthEntity,
    finding: Finding,
    immediate: bool,
    options: &ServiceFabricOptions,
) -> HealthReport {
    let said = finding.news.as_ref().unwrap_or(&finding.text);
    let news = fnv1a(&[finding.state.as_str(), said]);
    let text = match finding.age {
        Some(age) => format!("{age} {}", finding.text),
        None => finding.text,
    };
    let source = options.health_report_source.as_str();
    let mut information = HealthInformation::new(source, PROPERTY, finding.state);
    information.time_to_live = Some(time_to_live(options.discovery_period));
    information.description = cut(text);
    information.remove_when_expired = true;
    HealthReport {
        entity,
        information,
        immediate,
        news,
    }
}

/// Returns the problems without their messages.
fn codes(text: &str, problems: &Problems) -> String {
    let codes = problems
        .iter()
        .map(|problem| format!("{} {}", problem.pointer, problem.code));
    let mut codes: Vec<_> = codes.collect();
    codes.push(text.to_owned());
    codes.join("\n")
}

/// Returns the problems of the labels, in words, and those of the partitions without their messages.
fn mistakes(text: &str, problems: &Problems) -> String {
    let mut said = text.to_owned();
    for problem in problems.iter() {
        let _ = match &*problem.code {
            PARTITION_NOT_READ | "destinations_not_read" | DESTINATIONS_TOO_OLD => {
                write!(said, "\n{}", problem.code)
            }
            _ => write!(said, "\n{problem}"),
        };
    }
    said
}

fn list(text: &mut String, problems: &Problems) {
    for problem in problems.iter() {
        if text.len() > MAX_DESCRIPTION {
            return;
        }
        let _ = write!(text, "\n{problem}");
    }
}

/// Returns the part of the text that a cluster keeps, cut between characters.
fn cut(mut text: String) -> String {
    const MARK: &str = " …";
    if text.len() > MAX_DESCRIPTION {
        let mut end = MAX_DESCRIPTION - MARK.len();
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        text.truncate(end);
        text.push_str(MARK);
    }
    text
}

fn aged(age: Duration) -> String {
    format!("What serves is {} old.", rounded(age))
}

/// `90 s`, `12 min`, `5 h`.
fn rounded(age: Duration) -> String {
    match age.as_secs() {
        seconds @ 0..120 => format!("{seconds} s"),
        seconds @ 120..7200 => format!("{} min", seconds / 60),
        seconds => format!("{} h", seconds / 3600),
    }
}
