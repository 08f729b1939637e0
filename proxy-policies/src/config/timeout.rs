//! Timeout policies.

use proxy_model::TimeSpan;
use proxy_model::json::ObjectReader;

use super::{missing, positive};

/// Reads a policy: the longest that a request may take until its response begins.
pub(super) fn read(policy: &mut ObjectReader<'_, '_>) -> Option<TimeSpan> {
    if policy.peek("Timeout").is_none() {
        policy.skip("Timeout");
        missing(policy, "Timeout", "write `\"Timeout\": \"30s\"`");
        return None;
    }
    positive(policy, "Timeout")
}
