use super::*;
use crate::config::Metadata;

/// Metadata with two keys that are equal ignoring case. No document can contain it, but a program or a
/// registry can.
fn twice() -> Option<Metadata> {
    let entries = [("\u{c4}", "1"), ("other", "2"), ("\u{e4}", "3")];
    Some(
        entries
            .map(|(key, value)| (key.into(), value.into()))
            .into(),
    )
}

#[test]
fn keys_that_differ_in_case_only_are_rejected_wherever_metadata_are() {
    let whole = || {
        config(json!({
            "Routes": { "r": { "Match": { "Path": "/" } } },
            "Clusters": { "c": { "Destinations": { "d": { "Address": "http://h" } } } }
        }))
    };
    let (mut in_route, mut in_cluster, mut in_destination) = (whole(), whole(), whole());
    in_route.routes[0].metadata = twice();
    in_cluster.clusters[0].metadata = twice();
    in_destination.clusters[0].destinations[0].metadata = twice();
    for (config, pointer) in [
        (in_route, "/Routes/r/Metadata/\u{e4}"),
        (in_cluster, "/Clusters/c/Metadata/\u{e4}"),
        (in_destination, "/Clusters/c/Destinations/d/Metadata/\u{e4}"),
    ] {
        let problems = Snapshot::compile(config, &options()).unwrap_err();
        assert_eq!(
            found(&problems),
            [(Severity::Error, "duplicate_key", pointer)],
            "{problems}"
        );
    }
}
