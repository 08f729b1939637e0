//! Header fields about limits: `RateLimit` and `RateLimit-Policy` of the IETF's draft
//! `draft-ietf-httpapi-ratelimit-headers-10`, and limits in words.

use std::time::Duration;

use http::HeaderValue;

use super::algorithm::Standing;
use crate::config::{LimiterKind, PartitionBy, RateLimiterConfig};
use crate::head::{Answer, Head};

/// The fields of one policy.
#[derive(Debug)]
pub(super) struct Fields {
    name: Box<str>,
    policy: HeaderValue,
}

impl Fields {
    /// Creates the fields. `None` if the configuration turns them off, or the limit has no period to report.
    pub(super) fn new(name: &str, config: &RateLimiterConfig) -> Option<Self> {
        if !config.fields {
            return None;
        }
        let (quota, window) = match config.kind {
            LimiterKind::FixedWindow { permits, window }
            | LimiterKind::SlidingWindow {
                permits, window, ..
            } => (permits, window.duration()),
            LimiterKind::TokenBucket {
                per_period, period, ..
            } => (per_period, period.duration()),
            LimiterKind::Concurrency { .. } => return None,
        };
        let window = seconds(window);
        let policy = format!("\"{name}\";q={quota};w={window}");
        Some(Self {
            name: name.into(),
            policy: HeaderValue::from_str(&policy).ok()?,
        })
    }

    fn limit(&self, standing: Standing) -> Option<HeaderValue> {
        let Self { name, .. } = self;
        let left = standing.left;
        let text = match standing.reset {
            Some(reset) => format!("\"{name}\";r={left};t={}", seconds(reset)),
            None => format!("\"{name}\";r={left}"),
        };
        HeaderValue::from_maybe_shared(bytes::Bytes::from(text)).ok()
    }

    /// Tells the client of a request that passes.
    pub(super) fn note(&self, standing: Standing, head: &mut impl Head) {
        head.append_on_response("ratelimit-policy", self.policy.clone());
        if let Some(limit) = self.limit(standing) {
            head.append_on_response("ratelimit", limit);
        }
    }

    /// Tells the client of a request that is rejected.
    pub(super) fn push(&self, standing: Standing, answer: &mut Answer) {
        answer.push("ratelimit-policy", self.policy.clone());
        if let Some(limit) = self.limit(standing) {
            answer.push("ratelimit", limit);
        }
    }
}

/// Whole seconds, so many that the time has passed by then, at least 1.
pub(super) fn seconds(time: Duration) -> u64 {
    let whole = time.as_secs();
    let rest = u64::from(time.subsec_nanos() > 0);
    (whole + rest).max(1)
}

/// The limit in words.
pub(super) fn describe(kind: LimiterKind, by: &PartitionBy) -> String {
    let limit = match kind {
        LimiterKind::FixedWindow { permits, window } => {
            format!("{permits} requests in each {window}")
        }
        LimiterKind::SlidingWindow {
            permits,
            window,
            segments,
        } => format!("{permits} requests in any {window}, counted in {segments} segments"),
        LimiterKind::TokenBucket {
            tokens,
            per_period,
            period,
        } => format!("{tokens} requests at once, and {per_period} more each {period}"),
        LimiterKind::Concurrency { permits } => format!("{permits} requests at a time"),
    };
    let each = match by {
        PartitionBy::None => "for all clients together".to_owned(),
        PartitionBy::Address => "for each client address".to_owned(),
        PartitionBy::Header(name) => format!("for each value of the header {name}"),
        PartitionBy::RouteValue(name) => format!("for each value of {{{name}}} in the path"),
        PartitionBy::Claim(name) => format!("for each value of the claim {name}"),
    };
    format!("{limit}, {each}")
}
