//! Properties of every configuration and every document.

use proptest::prelude::*;
use proxy_model::config::ProxyConfig;
use proxy_model::json::parse_document;
use proxy_model::{CompileOptions, Revision, Snapshot, TimeSpan, apply, diff};

use crate::support::config::any_config;
use crate::support::document::{near_miss, node};

/// Reads and compiles a document in every way that there is.
fn digest(text: &str) {
    let Ok(document) = parse_document(text) else {
        return;
    };
    let options = CompileOptions::default();
    let (isolated, problems) = Snapshot::read_isolated(&document, "/X", &options);
    assert!(
        problems.iter().all(|p| p.pointer.starts_with("/X")),
        "{problems}"
    );
    assert_eq!(
        problems.has_errors(),
        Snapshot::read(&document, "/X", &options).is_err()
    );

    // What was kept has no error, and everything of it was kept.
    let kept = isolated.config().clone();
    let (whole, warnings) = match Snapshot::compile(kept, &options) {
        Ok(compiled) => compiled,
        Err(problems) => panic!("{problems}"),
    };
    assert!(!warnings.has_errors());
    assert_eq!(whole.revision(), isolated.revision());
    assert_eq!(whole.routes().len(), isolated.routes().len());
    assert_eq!(whole.clusters().len(), isolated.clusters().len());
}

/// `pretty`, which has a line for each value, with comments at every place and commas wherever they may be.
fn lenient(pretty: &str) -> String {
    let lines: Vec<&str> = pretty.lines().collect();
    let mut out = String::from("\u{feff}// ü\n");
    for (i, line) in lines.iter().enumerate() {
        let next = lines.get(i + 1).map_or("", |next| next.trim_start());
        let is_last = next.starts_with(['}', ']']) && !line.ends_with(['{', '[']);
        let comma = if is_last { "/* , */," } else { "" };
        out.push_str(&format!("/* \"}} // */{line}{comma} // ], \" /*\n"));
    }
    out
}

/// The ids in their spelling and order.
fn spelled(config: &ProxyConfig) -> Vec<String> {
    let clusters = config.clusters.iter().flat_map(|(id, cluster)| {
        let destinations = cluster.destinations.keys().map(ToString::to_string);
        std::iter::once(id.to_string()).chain(destinations)
    });
    let routes = config.routes.iter().flat_map(|(id, route)| {
        let cluster = route.cluster_id.iter().map(ToString::to_string);
        std::iter::once(id.to_string()).chain(cluster)
    });
    clusters.chain(routes).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_is_written_is_read_again(config in any_config()) {
        let text = serde_json::to_string(&config).unwrap();
        let again = match ProxyConfig::from_json(&text) {
            Ok(again) => again,
            Err(problems) => panic!("{text}\n{problems}"),
        };
        prop_assert_eq!(spelled(&again), spelled(&config));
        prop_assert_eq!(again, config);
    }

    #[test]
    fn a_revision_survives_writing_and_reordering(config in any_config()) {
        let again = ProxyConfig::from_json(&serde_json::to_string_pretty(&config).unwrap()).unwrap();
        prop_assert_eq!(Revision::of(&again), Revision::of(&config));
        let mut turned = config.clone();
        turned.clusters.reverse();
        turned.clusters.values_mut().for_each(|cluster| cluster.destinations.reverse());
        prop_assert_eq!(Revision::of(&turned), Revision::of(&config));
        let text = Revision::of(&config).to_string();
        prop_assert_eq!(text.parse(), Ok(Revision::of(&config)));
    }

    #[test]
    fn applying_a_difference_makes_the_second_of_the_first(old in any_config(), new in any_config()) {
        let changes = diff(&old, &new);
        let applied = apply(&old, &changes);
        prop_assert_eq!(spelled(&applied), spelled(&new));
        prop_assert_eq!(&applied, &new);
        prop_assert_eq!(Revision::of(&applied), Revision::of(&new));
        prop_assert!(diff(&new, &new).is_empty());
        prop_assert!(changes.iter().all(|change| !change.to_string().contains('\n')));
    }

    #[test]
    fn every_configuration_is_compiled_or_rejected(config in any_config()) {
        let options = CompileOptions::default();
        let (isolated, problems) = Snapshot::compile_isolated(config.clone(), &options);
        let whole = Snapshot::compile(config.clone(), &options);
        prop_assert_eq!(problems.has_errors(), whole.is_err());
        let everything_kept = isolated.config() == &config;
        prop_assert_eq!(everything_kept, whole.is_ok());
    }

    #[test]
    fn documents_that_look_like_a_configuration_are_digested(text in near_miss()) {
        digest(&text);
    }

    #[test]
    fn any_json_is_digested(text in node()) {
        digest(&text);
    }

    #[test]
    fn any_text_is_digested(text in any::<String>(), json in near_miss(), at in any::<prop::sample::Index>()) {
        digest(&text);
        // Cut out a part: mostly no JSON any more, sometimes other JSON.
        let mut cut = at.index(json.len());
        while !json.is_char_boundary(cut) {
            cut -= 1;
        }
        digest(&format!("{}{text}{}", &json[..cut], &json[cut..]));
        digest(&json[..cut]);
    }

    #[test]
    fn comments_and_trailing_commas_change_nothing(config in any_config()) {
        let strict = serde_json::to_string_pretty(&config).unwrap();
        prop_assert_eq!(parse_document(&lenient(&strict)), parse_document(&strict));
    }

    #[test]
    fn lengths_of_time_survive_writing(duration in any::<std::time::Duration>()) {
        let span = TimeSpan::new(duration);
        prop_assert_eq!(span.to_string().parse(), Ok(span));
    }

    #[test]
    fn any_text_is_a_length_of_time_or_not(text in "[-0-9dhmsuµ.: ]{0,24}") {
        let _ = text.parse::<TimeSpan>();
    }
}
