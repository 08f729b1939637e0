//! Envoy's message about clusters that it rejects.

use std::collections::BTreeSet;
use std::sync::Arc;

/// The beginning of Envoy's list of rejected clusters, each followed by a colon and the reason. The other
/// clusters are accepted (`CdsApiHelper::onConfigUpdate`).
const ALL_BUT: &str = "Error adding/updating cluster(s) ";
/// The end of a truncated message (`Config::Utility::truncateGrpcStatusMessage`).
const CUT: &str = "...(truncated)";

/// Returns the names of a response that a NACK blames. `None` if the whole response must be treated as
/// rejected.
pub(super) fn nacked<'n>(
    message: &str,
    names: impl IntoIterator<Item = &'n Arc<str>>,
) -> Option<BTreeSet<Arc<str>>> {
    if message.ends_with(CUT) {
        return None;
    }
    let (_, reasons) = message.split_once(ALL_BUT)?;
    let is_blamed = |name: &str| {
        reasons.match_indices(name).any(|(at, _)| {
            let (before, after) = (reasons.get(..at), reasons.get(at + name.len()..));
            before.is_some_and(|before| before.is_empty() || before.ends_with(", "))
                && after.is_some_and(|after| after.starts_with(": "))
        })
    };
    let nacked: BTreeSet<_> = (names.into_iter())
        .filter(|name| !name.is_empty() && is_blamed(name))
        .cloned()
        .collect();
    (!nacked.is_empty()).then_some(nacked)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_blamed() {
        let names = ["a", "b", "ab", "b-canary"].map(Arc::from);
        for (message, expected) in [
            ("no", None),
            ("Proto constraint validation failed (a: b)", None),
            (
                "Error adding/updating cluster(s) b: unknown extension, a: needs endpoints",
                Some("a b"),
            ),
            (
                "Error adding/updating cluster(s) b-canary: no b: or a: here",
                Some("b-canary"),
            ),
            ("Error adding/updating cluster(s) other: why", None),
            (
                "Error adding/updating cluster(s) ab: wh...(truncated)",
                None,
            ),
        ] {
            let nacked = nacked(message, &names);
            let shown = nacked.map(|names| names.into_iter().collect::<Vec<_>>().join(" "));
            assert_eq!(shown.as_deref(), expected, "{message}");
        }
    }
}
