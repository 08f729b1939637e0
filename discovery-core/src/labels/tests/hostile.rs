//! Tests of hostile labels.

use proptest::prelude::*;

use super::*;

#[test]
fn too_much_is_rejected_and_cut_short() {
    let many: Labels = (0..20_000)
        .map(|i| (format!("proxy.junk{i}"), String::new()))
        .chain([("proxy.enable".to_owned(), "true".to_owned())])
        .collect();
    let service = LabelledService::new(many, Destinations::new());
    let parser = KeyValueLabels::new().with_enabled_by_default(true);
    let parsed = parser.parse("s", &service);
    assert!(parsed.problems.has_errors());
    assert!(parsed.problems.len() <= 102, "{}", parsed.problems.len());

    let deep = format!("proxy.{}", "a.".repeat(100_000));
    let (_, problems) = served(&[(&deep, "x")]);
    assert!(problems[0].ends_with("more than 32 parts"));
}

fn any_key() -> impl Strategy<Value = String> {
    let part = prop_oneof![
        4 => prop::sample::select(vec![
            "enable", "cluster", "Cluster", "routes", "r", "id", "path", "hosts", "headers", "transforms", "[0]",
            "[1]", "[00]", "[x]", "[", "]", "name", "values", "mode", "metadata", "destinations", "weight", "order",
            "httpRequest", "version", "healthCheck", "active", "enabled", "interval", "",
        ])
        .prop_map(str::to_owned),
        1 => ".{0,6}",
    ];
    prop::collection::vec(part, 0..6).prop_map(|parts| format!("proxy.{}", parts.join(".")))
}

proptest! {
    /// Arbitrary labels of a registry: no panic, bounded output, and the same result twice.
    #[test]
    fn labels_of_any_kind_do_no_harm(
        pairs in prop::collection::vec((any_key(), prop_oneof!["true", "[0-9]{0,12}", ".{0,12}"]), 0..20),
        ignore_key_case: bool,
    ) {
        let service = LabelledService::new(pairs.into_iter().collect(), destinations());
        let rules = LabelRules::new("proxy.").with_ignore_key_case(ignore_key_case);
        let parser = KeyValueLabels::with_rules(rules).with_enabled_by_default(true);
        let parsed = parser.parse("s", &service);
        prop_assert!(parsed.problems.len() <= 102);
        prop_assert_eq!(parser.parse("s", &service), parsed);
    }

    #[test]
    fn a_key_keeps_its_text_below_metadata(key in "[a-z\\[\\]0-9]{1,5}(\\.[a-z\\[\\]0-9]{1,5}){0,3}", value in ".*") {
        let label = format!("proxy.cluster.metadata.{key}");
        let (config, problems) = served(&[(&label, &value)]);
        prop_assert_eq!(problems, Vec::<String>::new());
        let metadata = config.clusters[0].metadata.as_ref().unwrap();
        prop_assert_eq!(metadata, &IndexMap::from([(key, value)]));
    }
}
