//! The verdict on the proxy: its state in one word and one sentence.

use serde::Serialize;

use super::overview::OverviewCounts;
use super::providers::Start;
use super::trouble::Trouble;

/// The overall state of the proxy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum OverallState {
    Ok,
    Starting,
    Degraded,
    Down,
}

/// Summarises the state in a sentence that begins with the worst problem.
pub(super) fn judge(
    counts: &OverviewCounts,
    trouble: &Trouble,
    start: &Start,
) -> (OverallState, String) {
    // Before the first configuration every other figure is meaningless.
    if *start != Start::Ready {
        return (OverallState::Starting, format!("Not ready: {start}."));
    }
    let said = said(trouble);
    if said.is_empty() {
        return all_is_well(counts);
    }
    // Only a cluster that is down makes the proxy down.
    let verdict = match counts.clusters_down {
        0 => OverallState::Degraded,
        _ => OverallState::Down,
    };
    (verdict, format!("{}.", said.join("; ")))
}

/// Returns each kind of trouble in words.
fn said(trouble: &Trouble) -> Vec<String> {
    let lists = [
        ("Down", &trouble.down),
        ("Partly down", &trouble.degraded),
        ("Refusing every request", &trouble.rejected),
        ("Leading nowhere", &trouble.lost),
        ("Unable to authorize", &trouble.undecided),
        ("Granting shares of limits", &trouble.limits),
    ];
    let lists = lists.into_iter().filter(|(_, names)| !names.is_empty());
    let mut said: Vec<_> = lists
        .map(|(what, names)| format!("{what}: {}", named(names)))
        .collect();
    if let Some(bytes) = trouble.memory {
        let mebibytes = bytes / (1024 * 1024);
        said.push(format!(
            "Clients hold all of the {mebibytes} MiB that they may (Server.Limits.MemoryBytes): connections are reset"
        ));
    }
    let sources = &trouble.sources;
    for ((kind, serves), names) in &sources.outages {
        let outage = kind.outage(names.len(), *serves);
        said.push(format!("{} {outage}: {}", names.len(), named(names)));
    }
    for (kind, names) in &sources.partial {
        let outage = kind.partial_outage(names.len());
        said.push(format!("{} {outage}: {}", names.len(), named(names)));
    }
    for (names, one, many) in [
        (
            &sources.failing,
            "source fails, its last known good configuration serves",
            "sources fail, their last known good configuration serves",
        ),
        (
            &sources.unanswered,
            "source has not answered yet, nothing of it serves",
            "sources have not answered yet, nothing of them serves",
        ),
        (
            &sources.restored,
            "source has not answered since the start, what was kept on disk serves",
            "sources have not answered since the start, what was kept on disk serves",
        ),
        (
            &sources.left_out,
            "service is left out because of its description",
            "services are left out because of their descriptions",
        ),
        (
            &sources.unusable,
            "service has no destination that can be used",
            "services have no destination that can be used",
        ),
        (
            &sources.empty,
            "service has no destination",
            "services have no destination",
        ),
        (
            &sources.unkept,
            "source cannot be kept on disk",
            "sources cannot be kept on disk",
        ),
        (
            &trouble.mistakes,
            "mistake in the configuration",
            "mistakes in the configuration",
        ),
    ] {
        if !names.is_empty() {
            said.push(format!(
                "{}: {}",
                some(names.len(), one, many),
                named(names)
            ));
        }
    }
    said
}

/// Describes a proxy without trouble. A configuration of which nothing serves is none, whatever its warnings say.
fn all_is_well(counts: &OverviewCounts) -> (OverallState, String) {
    let warnings = some(counts.warnings, "warning", "warnings");
    if (counts.clusters, counts.routes) == (0, 0) {
        let nothing = "there is no route and no cluster";
        return match counts.warnings {
            0 => (
                OverallState::Ok,
                format!("Nothing is configured yet: {nothing}."),
            ),
            _ => (
                OverallState::Degraded,
                format!("Nothing serves: {nothing}, and {warnings}."),
            ),
        };
    }
    let well = match counts.warnings {
        0 => "All is well".to_owned(),
        _ => warnings,
    };
    let answering = some(
        counts.answering,
        "route answers itself",
        "routes answer themselves",
    );
    let leading = format!(
        "{} to {} with {}",
        some(
            counts.routes - counts.answering,
            "route leads",
            "routes lead"
        ),
        some(counts.clusters, "cluster", "clusters"),
        some(counts.destinations, "destination", "destinations"),
    );
    let what = match counts.answering {
        0 => leading,
        all if all == counts.routes && counts.clusters == 0 => answering,
        _ => format!("{leading}, {answering}"),
    };
    (OverallState::Ok, format!("{well}: {what}."))
}

/// The first few names, and the number of the others.
fn named(names: &[String]) -> String {
    /// Number of names that a sentence lists.
    const FEW: usize = 3;
    let shown = names[..names.len().min(FEW)].join(", ");
    match names.len().saturating_sub(FEW) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

fn some(count: usize, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use discovery_core::DiscoverErrorKind as Kind;

    use super::*;
    use crate::admin::trouble::SourceTrouble;

    #[test]
    fn the_worst_thing_comes_first() {
        let mut healthy = OverviewCounts::default();
        (healthy.routes, healthy.clusters, healthy.destinations) = (1, 2, 3);

        let (verdict, sentence) = judge(&healthy, &Trouble::default(), &Start::Ready);
        assert_eq!(verdict, OverallState::Ok);
        assert_eq!(
            sentence,
            "All is well: 1 route leads to 2 clusters with 3 destinations."
        );

        let mut warned = healthy;
        warned.warnings = 2;
        let (verdict, sentence) = judge(&warned, &Trouble::default(), &Start::Ready);
        assert_eq!(verdict, OverallState::Ok);
        assert_eq!(
            sentence,
            "2 warnings: 1 route leads to 2 clusters with 3 destinations."
        );

        let partial = warned;
        let sealed = Trouble {
            rejected: vec!["sealed".to_owned()],
            sources: SourceTrouble {
                partial: BTreeMap::from([(Kind::TimedOut, vec!["serf".to_owned()])]),
                ..SourceTrouble::default()
            },
            ..Trouble::default()
        };
        let (verdict, sentence) = judge(&partial, &sealed, &Start::Ready);
        assert_eq!(verdict, OverallState::Degraded);
        assert_eq!(
            sentence,
            "Refusing every request: sealed; 1 source answers in part, older answers stand in for the rest: serf."
        );

        let mut ill = healthy;
        ill.clusters_down = 1;
        let trouble = Trouble {
            down: vec!["orders".to_owned()],
            degraded: ["a", "b", "c", "d"].map(str::to_owned).to_vec(),
            mistakes: vec!["/Routes/r of consul".to_owned()],
            ..Trouble::default()
        };
        let (verdict, sentence) = judge(&ill, &trouble, &Start::Ready);
        assert_eq!(verdict, OverallState::Down);
        assert_eq!(
            sentence,
            "Down: orders; Partly down: a, b, c and 1 more; 1 mistake in the configuration: /Routes/r of consul."
        );

        let crowded = Trouble {
            memory: Some(3 << 20),
            ..Trouble::default()
        };
        let (verdict, sentence) = judge(&healthy, &crowded, &Start::Ready);
        assert_eq!(verdict, OverallState::Degraded);
        assert_eq!(
            sentence,
            "Clients hold all of the 3 MiB that they may (Server.Limits.MemoryBytes): connections are reset."
        );

        let (verdict, sentence) = judge(
            &ill,
            &trouble,
            &Start::WaitingFor(vec!["consul".to_owned()]),
        );
        assert_eq!(verdict, OverallState::Starting);
        assert!(sentence.contains("consul"));
    }
    #[test]
    fn routes_that_answer_themselves_lead_nowhere_and_are_well() {
        let said = |routes, answering, clusters, warnings| {
            let counts = OverviewCounts {
                routes,
                answering,
                clusters,
                warnings,
                destinations: clusters,
                ..OverviewCounts::default()
            };
            judge(&counts, &Trouble::default(), &Start::Ready)
        };
        for (counts, state, sentence) in [
            (
                (2, 1, 1, 0),
                OverallState::Ok,
                "All is well: 1 route leads to 1 cluster with 1 destination, 1 route answers itself.",
            ),
            (
                (2, 2, 0, 0),
                OverallState::Ok,
                "All is well: 2 routes answer themselves.",
            ),
            (
                (0, 0, 0, 0),
                OverallState::Ok,
                "Nothing is configured yet: there is no route and no cluster.",
            ),
            (
                (0, 0, 0, 2),
                OverallState::Degraded,
                "Nothing serves: there is no route and no cluster, and 2 warnings.",
            ),
        ] {
            let (routes, answering, clusters, warnings) = counts;
            let (judged, text) = said(routes, answering, clusters, warnings);
            assert_eq!((judged, &*text), (state, sentence));
        }
    }

    #[test]
    fn what_is_the_matter_with_sources_and_policies_is_said() {
        let one = |name: &str| vec![name.to_owned()];
        let trouble = Trouble {
            undecided: one("staff (refused)"),
            limits: one("api (refused)"),
            sources: SourceTrouble {
                failing: one("a"),
                unanswered: one("b"),
                restored: one("c"),
                partial: BTreeMap::from([(Kind::Transient, one("d"))]),
                outages: BTreeMap::from([
                    ((Kind::Rejected, true), one("g (403 Forbidden)")),
                    ((Kind::Rejected, false), one("h (401 Unauthorized)")),
                    ((Kind::TimedOut, false), one("i")),
                    (
                        (Kind::Transient, true),
                        vec!["j".to_owned(), "k".to_owned()],
                    ),
                ]),
                left_out: one("orders of e"),
                unusable: one("web of e"),
                empty: one("idle of e"),
                unkept: one("f (read-only)"),
            },
            ..Trouble::default()
        };
        let (state, sentence) = judge(&OverviewCounts::default(), &trouble, &Start::Ready);
        assert_eq!(state, OverallState::Degraded);
        assert_eq!(
            sentence,
            "Unable to authorize: staff (refused); \
             Granting shares of limits: api (refused); \
             2 sources cannot be read, their last known good configuration serves: j, k; \
             1 source rejects the request, nothing of it serves yet: h (401 Unauthorized); \
             1 source rejects the request, its last known good configuration serves: g (403 Forbidden); \
             1 source does not answer, nothing of it serves yet: i; \
             1 source answers in part, older answers stand in for the rest: d; \
             1 source fails, its last known good configuration serves: a; \
             1 source has not answered yet, nothing of it serves: b; \
             1 source has not answered since the start, what was kept on disk serves: c; \
             1 service is left out because of its description: orders of e; \
             1 service has no destination that can be used: web of e; \
             1 service has no destination: idle of e; \
             1 source cannot be kept on disk: f (read-only)."
        );
    }
}
