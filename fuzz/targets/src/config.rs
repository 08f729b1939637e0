//! Configuration documents: read, checked, compiled.

use proxy_model::config::ProxyConfig;
use proxy_model::json::parse_document;
use proxy_model::{CompileOptions, Revision, Snapshot};

use crate::input::{check_problems, text};

/// Location of the section in its document.
const SECTION: &str = "/ReverseProxy";

/// Fuzzes the reading of a section `ReverseProxy`.
///
/// * Every problem has a location in the section.
/// * The strict reading fails exactly if the lenient one has errors.
/// * The result of the lenient reading is valid and complete. Written and read again, it is equal.
pub fn config(data: &[u8]) {
    let text = text(data);
    let Ok(document) = parse_document(&text) else {
        return;
    };
    let options = CompileOptions::default();
    let (isolated, problems) = Snapshot::read_isolated(&document, SECTION, &options);
    check_problems(&problems, SECTION);
    match Snapshot::read(&document, SECTION, &options) {
        Ok((whole, warnings)) => {
            assert!(!problems.has_errors(), "{problems}");
            check_problems(&warnings, SECTION);
            assert_eq!(whole.config(), isolated.config());
        }
        Err(errors) => {
            assert!(problems.has_errors());
            check_problems(&errors, SECTION);
        }
    }

    let (whole, _) = Snapshot::compile(isolated.config().clone(), &options)
        .unwrap_or_else(|errors| panic!("what was kept is rejected: {errors}"));
    assert_eq!(whole.revision(), isolated.revision());
    assert_eq!(whole.routes().len(), isolated.config().routes.len());
    assert_eq!(whole.clusters().len(), isolated.config().clusters.len());
    check_round_trip(isolated.config());
}

/// Asserts that a written configuration is read as the same value.
pub(crate) fn check_round_trip(config: &ProxyConfig) {
    let written = serde_json::to_string(config).expect("keys are text");
    let again = ProxyConfig::from_json(&written)
        .unwrap_or_else(|problems| panic!("{written}\nis not read: {problems}"));
    assert_eq!(&again, config, "{written}");
    assert_eq!(Revision::of(&again), Revision::of(config));
}
