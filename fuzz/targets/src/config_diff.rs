//! Differences between two configurations.

use proxy_model::config::ProxyConfig;
use proxy_model::json::{parse_document, read_config};
use proxy_model::{Problems, Revision, apply, diff};

use crate::input::text;

/// Fuzzes the difference of two sections, separated by a line `----`.
///
/// * The difference, applied to the first section, results in the second, in its order.
/// * A configuration has no difference to itself.
/// * Each change is described in one line.
pub fn config_diff(data: &[u8]) {
    let text = text(data);
    let (old, new) = text.split_once("\n----\n").unwrap_or((&text, ""));
    let (old, new) = (read(old), read(new));
    let changes = diff(&old, &new);
    let applied = apply(&old, &changes);
    assert_eq!(applied, new);
    assert_eq!(spelled(&applied), spelled(&new));
    assert_eq!(Revision::of(&applied), Revision::of(&new));
    assert_eq!(diff(&new, &new), []);
    for change in &changes {
        let line = change.to_string();
        assert!(!line.is_empty() && !line.contains(['\n', '\r']), "{line:?}");
    }
}

/// Reads the valid parts of a section.
fn read(text: &str) -> ProxyConfig {
    parse_document(text)
        .map(|document| read_config(&document, "", &mut Problems::new()))
        .unwrap_or_default()
}

/// The ids in their spelling and order.
fn spelled(config: &ProxyConfig) -> Vec<String> {
    let clusters = config.clusters.iter().flat_map(|(id, cluster)| {
        let destinations = cluster.destinations.keys().map(ToString::to_string);
        std::iter::once(id.to_string()).chain(destinations)
    });
    let routes = config.routes.keys().map(ToString::to_string);
    clusters.chain(routes).collect()
}
