//! Events of services: `kubectl describe` shows why a request is not met.

use std::collections::BTreeMap;
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

use crate::execute::Reconciled;
use crate::plan::ServiceOutcome;
use crate::service::ServiceKey;
use crate::sources::readiness::text_of_seconds;
use crate::text::with_causes;

/// The maximum length of a message in bytes. The API server takes 1,024.
const LONGEST: usize = 1_000;

/// The last event of each service.
#[derive(Debug, Default)]
pub(super) struct Events {
    told: BTreeMap<ServiceKey, String>,
}

/// An event to write, and its service.
pub(super) type Event = (ServiceKey, Value);

impl Events {
    /// Returns the new events: an error, once while it stays the same, and its end.
    pub(super) fn news(&mut self, report: &Reconciled) -> Vec<Event> {
        self.told.retain(|key, _| report.services.contains_key(key));
        let mut events = Vec::new();
        for (key, outcome) in &report.services {
            let error = report.error_of(key).map(|error| with_causes(&error));
            match (error, self.told.get(key)) {
                (Some(error), Some(told)) if error == *told => {}
                (Some(error), _) => {
                    events.push(event(
                        key,
                        outcome,
                        "Warning",
                        "SyncLoadBalancerFailed",
                        &error,
                    ));
                    self.told.insert(key.clone(), error);
                }
                (None, Some(_)) => {
                    let text = "its request is met";
                    events.push(event(key, outcome, "Normal", "EnsuredLoadBalancer", text));
                    self.told.remove(key);
                }
                (None, None) => {}
            }
        }
        events
    }
}

fn event(
    key: &ServiceKey,
    outcome: &ServiceOutcome,
    kind: &str,
    reason: &str,
    message: &str,
) -> Event {
    let ServiceKey { namespace, name } = key;
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let now = text_of_seconds(now.unwrap_or_default().as_secs());
    let ends = message.char_indices().map(|(at, c)| at + c.len_utf8());
    let end = ends.take_while(|end| *end <= LONGEST).last().unwrap_or(0);
    let message = message.get(..end);
    let document = json!({
        "apiVersion": "v1", "kind": "Event",
        "metadata": { "generateName": format!("{name}."), "namespace": namespace },
        "involvedObject": { "apiVersion": "v1", "kind": "Service", "namespace": namespace, "name": name, "uid": outcome.uid },
        "type": kind, "reason": reason, "message": message,
        "source": { "component": env!("CARGO_PKG_NAME") },
        "firstTimestamp": now, "lastTimestamp": now, "count": 1,
    });
    (key.clone(), document)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::PlanError;

    #[test]
    fn an_error_is_told_once_and_so_is_its_end() {
        let mut events = Events::default();
        let key = ServiceKey::new("shop", "web");
        let report = |error: Option<&str>| {
            let mut report = Reconciled::default();
            let error = error.map(|why| PlanError::Selection(why.to_owned()));
            let uid = "257b".to_owned();
            let outcome = ServiceOutcome {
                error,
                uid,
                ..ServiceOutcome::default()
            };
            report.services.insert(key.clone(), outcome);
            report
        };
        assert!(events.news(&report(None)).is_empty());
        let long = "ü".repeat(5_000);
        let (of, event) = events.news(&report(Some(&long))).remove(0);
        assert_eq!(of, key);
        assert_eq!(
            (&event["type"], &event["involvedObject"]["uid"]),
            (&json!("Warning"), &json!("257b"))
        );
        assert!((LONGEST - 4..=LONGEST).contains(&event["message"].as_str().unwrap().len()));
        assert!(events.news(&report(Some(&long))).is_empty());
        assert_eq!(events.news(&report(Some("other"))).len(), 1);
        assert_eq!(events.news(&report(None))[0].1["type"], "Normal");
        assert!(events.news(&report(None)).is_empty());
    }
}
