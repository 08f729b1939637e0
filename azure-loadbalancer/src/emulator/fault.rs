//! Injected faults.

use http::{Method, StatusCode};
use serde::Deserialize;

use super::operation::Failing;
use super::rejection::Rejection;

/// A fault of requests that match.
///
/// As JSON, for `POST /emulator/faults`:
///
/// ```json
/// { "method": "PUT", "path": "loadBalancers/lb", "skip": 1, "times": 2,
///   "action": { "kind": "answer", "status": 429, "code": "TooManyRequests", "retry_after": 7 } }
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fault {
    /// The method of matching requests.
    #[serde(default)]
    method: Option<String>,
    /// A part of the path of matching requests, ignoring case.
    #[serde(default)]
    path: Option<String>,
    /// A part of the body of matching requests.
    #[serde(default)]
    body: Option<String>,
    /// The number of matching requests that pass first.
    #[serde(default)]
    skip: u32,
    /// The number of requests that fail. Default: 1.
    #[serde(default = "once")]
    times: u32,
    action: FaultAction,
}

/// The effect of a fault.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
#[non_exhaustive]
pub enum FaultAction {
    /// The request is rejected and has no effect.
    Answer {
        /// The status, 400 to 599.
        status: u16,
        /// The code.
        code: String,
        /// The seconds of `Retry-After`.
        #[serde(default)]
        retry_after: Option<u32>,
    },
    /// The request is lost: it has no effect, and the connection ends.
    LoseRequest,
    /// The response is lost: the request takes effect, and the connection ends.
    LoseAnswer,
    /// Another client writes to the resource first, which changes its etag.
    Interfere,
    /// The write is accepted, and its operation fails.
    FailOperation {
        /// The code of the operation's error.
        code: String,
        /// True if the operation ends as `Canceled` instead of `Failed`.
        #[serde(default)]
        canceled: bool,
    },
}

fn once() -> u32 {
    1
}

impl Fault {
    /// Creates a fault of the next request.
    pub fn new(action: FaultAction) -> Self {
        Self {
            method: None,
            path: None,
            body: None,
            skip: 0,
            times: 1,
            action,
        }
    }

    /// Restricts the fault to requests with this method.
    #[must_use]
    pub fn method(mut self, method: &Method) -> Self {
        self.method = Some(method.as_str().to_owned());
        self
    }

    /// Restricts the fault to requests whose path contains `text`, ignoring case.
    #[must_use]
    pub fn path(mut self, text: impl Into<String>) -> Self {
        self.path = Some(text.into());
        self
    }

    /// Restricts the fault to requests whose body contains `text`.
    #[must_use]
    pub fn body(mut self, text: impl Into<String>) -> Self {
        self.body = Some(text.into());
        self
    }

    /// Sets the number of matching requests that pass first.
    #[must_use]
    pub fn skip(mut self, requests: u32) -> Self {
        self.skip = requests;
        self
    }

    /// Sets the number of requests that fail. Default: 1.
    #[must_use]
    pub fn times(mut self, requests: u32) -> Self {
        self.times = requests;
        self
    }

    /// Returns true if the fault applies to a request.
    fn matches(&self, method: &Method, path: &str, body: &[u8]) -> bool {
        let has = |text: &String| {
            text.is_empty() || body.windows(text.len()).any(|part| part == text.as_bytes())
        };
        let path = path.to_ascii_lowercase();
        self.method
            .as_deref()
            .is_none_or(|wanted| method.as_str().eq_ignore_ascii_case(wanted))
            && self
                .path
                .as_deref()
                .is_none_or(|part| path.contains(&part.to_ascii_lowercase()))
            && self.body.as_ref().is_none_or(has)
    }
}

/// The pending faults.
#[derive(Clone, Debug, Default)]
pub(super) struct Faults(Vec<Fault>);

impl Faults {
    pub(super) fn add(&mut self, fault: Fault) {
        self.0.push(fault);
    }

    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    /// Returns the fault of a request.
    pub(super) fn strike(
        &mut self,
        method: &Method,
        path: &str,
        body: &[u8],
    ) -> Option<FaultAction> {
        let mut struck = None;
        for fault in &mut self.0 {
            if !fault.matches(method, path, body) {
                continue;
            }
            // Every matching fault counts the request, even if another one acts on it.
            if fault.skip > 0 {
                fault.skip -= 1;
            } else if struck.is_none() && fault.times > 0 {
                fault.times -= 1;
                struck = Some(fault.action.clone());
            }
        }
        self.0.retain(|fault| fault.times > 0);
        struck
    }
}

impl FaultAction {
    /// Returns the error response.
    pub(super) fn rejection(&self) -> Option<Rejection> {
        let Self::Answer {
            status,
            code,
            retry_after,
        } = self
        else {
            return None;
        };
        let status = StatusCode::from_u16(*status)
            .ok()
            .filter(|status| status.is_client_error() || status.is_server_error());
        let mut rejection = Rejection::new(
            status.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR),
            code,
            "A requested fault.",
        );
        rejection.retry_after = *retry_after;
        Some(rejection)
    }

    /// Returns the failure with which the operation ends.
    pub(super) fn failing(&self) -> Option<Failing> {
        let Self::FailOperation { code, canceled } = self else {
            return None;
        };
        Some(Failing {
            status: if *canceled { "Canceled" } else { "Failed" },
            code: code.clone(),
            message: "A requested fault.".to_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_hits_what_it_is_for_and_no_more() {
        let mut faults = Faults::default();
        faults.add(
            Fault::new(FaultAction::LoseAnswer)
                .method(&Method::PUT)
                .path("LoadBalancers/")
                .skip(1)
                .times(2),
        );
        faults.add(Fault::new(FaultAction::LoseRequest).body("who"));
        let hits: Vec<_> = [
            (Method::GET, "/x/loadBalancers/a", ""),
            (Method::PUT, "/x/publicIPAddresses/a", "wh"),
            (Method::PUT, "/x/loadBalancers/a", ""),
            (Method::PUT, "/x/loadBalancers/a", ""),
            (Method::PUT, "/x/loadBalancers/b", ""),
            (Method::PUT, "/x/loadBalancers/b", ""),
            (Method::GET, "/x/y", "{who}"),
        ]
        .iter()
        .map(|(method, path, body)| faults.strike(method, path, body.as_bytes()).is_some())
        .collect();
        assert_eq!(hits, [false, false, false, true, true, false, true]);
    }

    #[test]
    fn a_fault_is_read_from_json() {
        let text = r#"{"method":"put","skip":1,"action":{"kind":"answer","status":429,"code":"X","retry_after":7}}"#;
        let fault: Fault = serde_json::from_str(text).unwrap();
        let rejection = fault.action.rejection().unwrap();
        assert_eq!(
            (
                rejection.status.as_u16(),
                rejection.retry_after,
                fault.times
            ),
            (429, Some(7), 1)
        );
        serde_json::from_str::<Fault>(r#"{"action":{"kind":"explode"}}"#).unwrap_err();
        serde_json::from_str::<Fault>(r#"{"acton":{"kind":"lose_answer"}}"#).unwrap_err();
    }
}
