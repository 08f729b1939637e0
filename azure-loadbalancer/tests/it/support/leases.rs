//! Leases of a Kubernetes API server, after the reference of `coordination.k8s.io/v1` and its validation.

use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::{Value, json};

/// The leases of one namespace, by name, and the numbers of their writes.
#[derive(Clone, Default)]
pub(crate) struct Leases(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    lease: Option<Value>,
    version: u64,
}

pub(crate) const COLLECTION: &str = "/apis/coordination.k8s.io/v1/namespaces/infra/leases";
pub(crate) const NAME: &str = "front";

fn status(code: u16, reason: &str) -> (u16, Value) {
    (
        code,
        json!({ "kind": "Status", "status": "Failure", "code": code, "reason": reason, "message": reason }),
    )
}

/// Checks for six digits after the dot, which a `MicroTime` has.
fn is_micro_time(value: &Value) -> bool {
    let text = value.as_str().unwrap_or_default();
    text.len() == "2026-11-27T12:00:00.000000Z".len()
        && text.as_bytes().get(19) == Some(&b'.')
        && text.ends_with('Z')
}

fn is_valid(lease: &Value) -> bool {
    let spec = &lease["spec"];
    lease["metadata"]["name"] == NAME
        && spec["leaseDurationSeconds"]
            .as_i64()
            .is_some_and(|seconds| seconds > 0)
        && spec["leaseTransitions"]
            .as_i64()
            .is_some_and(|count| count >= 0)
        && is_micro_time(&spec["renewTime"])
        && is_micro_time(&spec["acquireTime"])
}

impl Leases {
    /// Handles a request.
    pub(crate) fn answer(&self, method: &str, path: &str, body: &[u8]) -> (u16, Value) {
        let mut state = self.0.lock();
        let sent: Value = serde_json::from_slice(body).unwrap_or_default();
        let is_collection = path == COLLECTION;
        let is_lease = path == format!("{COLLECTION}/{NAME}");
        match (method, state.lease.clone()) {
            ("GET", Some(lease)) if is_lease => (200, lease),
            ("GET" | "PUT", None) if is_lease => status(404, "NotFound"),
            ("POST", Some(_)) if is_collection => status(409, "AlreadyExists"),
            ("POST", None) if is_collection && is_valid(&sent) => (201, state.keep(sent)),
            ("PUT", Some(lease)) if is_lease && is_valid(&sent) => {
                match lease["metadata"]["resourceVersion"] == sent["metadata"]["resourceVersion"] {
                    true => (200, state.keep(sent)),
                    false => status(409, "Conflict"),
                }
            }
            ("POST" | "PUT", _) => status(422, "Invalid"),
            _ => panic!("{method} {path}"),
        }
    }

    /// The lease, if there is one.
    pub(crate) fn now(&self) -> Value {
        self.0.lock().lease.clone().unwrap_or_default()
    }

    /// Changes the lease like another client.
    pub(crate) fn change(&self, change: impl FnOnce(&mut Value)) {
        let mut state = self.0.lock();
        let mut lease = state.lease.clone().unwrap_or_default();
        change(&mut lease);
        state.keep(lease);
    }

    /// Deletes the lease like another client.
    pub(crate) fn delete(&self) {
        self.0.lock().lease = None;
    }
}

impl State {
    fn keep(&mut self, mut lease: Value) -> Value {
        self.version += 1;
        lease["metadata"]["resourceVersion"] = json!(self.version.to_string());
        self.lease = Some(lease.clone());
        lease
    }
}
