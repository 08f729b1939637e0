//! Service labels.

use std::collections::HashSet;

use discovery_core::{KeyValueLabels, LabelledService, Labels, LabelsParser};
use proxy_model::config::DestinationConfig;
use proxy_model::{CompileOptions, DestinationId, Snapshot, pointer_to};

use crate::config::check_round_trip;
use crate::input::{check_wording, text};

/// Fuzzes labels, one `key=value` per line.
///
/// * Every problem has the location of a label, or of all labels.
/// * The service's destinations exist, and no others.
/// * Without problems, the order of the labels makes no difference.
/// * A usable result can be kept on disk: written and read again, it is equal.
pub fn labels(data: &[u8]) {
    let text = text(data);
    let labels: Labels = text
        .lines()
        .filter_map(|line| line.split_once('='))
        .map(|(key, value)| (key.to_owned(), value.to_owned()))
        .collect();
    let destinations = ["a", "b"].map(|id| {
        let destination = DestinationConfig {
            address: format!("http://{id}.example.com:8080/"),
            ..DestinationConfig::default()
        };
        (DestinationId::from(id), destination)
    });
    let parser = KeyValueLabels::new();
    let service = LabelledService::new(labels.clone(), destinations.clone().into());
    let parsed = parser.parse("service", &service);

    let pointers: HashSet<String> = labels.keys().map(|key| pointer_to("", key)).collect();
    for problem in &parsed.problems {
        let known = problem.pointer.is_empty() || pointers.contains(&problem.pointer);
        assert!(known, "{problem:?} is at no label");
        check_wording(problem);
    }
    let Some(fragment) = &parsed.fragment else {
        return;
    };
    assert_eq!(fragment.clusters.len(), 1);
    for cluster in fragment.clusters.values() {
        let ids = destinations.iter().map(|(id, _)| id);
        assert!(ids.eq(cluster.destinations.keys()), "{cluster:?}");
    }
    if parsed.problems.is_empty() {
        let reversed = labels.into_iter().rev().collect();
        let reversed = LabelledService::new(reversed, destinations.into());
        assert_eq!(parser.parse("service", &reversed), parsed);
    }
    if !parsed.problems.has_errors()
        && Snapshot::compile(fragment.clone(), &CompileOptions::default()).is_ok()
    {
        check_round_trip(fragment);
    }
}
