//! The tables of the page.

use super::super::access::{Place, Rule, Treatment, rules};

/// Each place with its title, and whether anything without a row closes.
const PLACES: [(Place, &str, bool); 14] = [
    (Place::Listener, "a listener", false),
    (Place::ListenerFilter, "listener filters", true),
    (Place::FilterChain, "a filter chain", false),
    (
        Place::FilterChainMatch,
        "`filter_chain_match`, for all of the listener",
        false,
    ),
    (Place::TransportSocket, "transport sockets of clients", true),
    (Place::NetworkFilter, "network filters", true),
    (Place::Manager, "the HTTP connection manager", false),
    (
        Place::OriginalIpDetection,
        "`original_ip_detection_extensions`",
        true,
    ),
    (Place::HttpFilter, "HTTP filters", true),
    (Place::RouteConfiguration, "a route configuration", false),
    (Place::VirtualHost, "a virtual host", false),
    (Place::Route, "a route", false),
    (Place::RouteAction, "the action `route`", false),
    (Place::PerRoute, "`typed_per_filter_config`", true),
];

/// The names of a row.
fn names(rule: &Rule) -> Vec<String> {
    match rule.name {
        "" => rule
            .types
            .iter()
            .map(|field| format!("`{field}`"))
            .collect(),
        name if name.contains('`') => vec![name.to_owned()],
        name => vec![format!("`{name}`")],
    }
}

/// The table of treatments.
fn treatments() -> String {
    let mut page = String::from(
        "| of | honoured | makes no difference | has no effect, with a warning | closes |\n|---|---|---|---|---|\n",
    );
    for (place, title, anything) in PLACES {
        let column = |treatment| {
            let rules = rules().filter(|rule| (rule.place, rule.treatment) == (place, treatment));
            let mut names: Vec<_> = rules.flat_map(names).collect();
            if treatment == Treatment::Closes && anything {
                names.push("any other".to_owned());
            }
            match names.is_empty() {
                true => "–".to_owned(),
                false => names.join(", "),
            }
        };
        page += &format!(
            "| {title} | {} | {} | {} | {} |\n",
            column(Treatment::Honoured),
            column(Treatment::Harmless),
            column(Treatment::Reported),
            column(Treatment::Closes)
        );
    }
    page
}

/// The table of reasons: each once, with all that it is the reason of.
fn reasons() -> String {
    let mut reasons: Vec<(&str, Vec<String>)> = Vec::new();
    for rule in rules().filter(|rule| rule.treatment == Treatment::Reported) {
        let at = reasons
            .iter()
            .position(|(reason, _)| *reason == rule.reason);
        let at = at.unwrap_or_else(|| {
            reasons.push((rule.reason, Vec::new()));
            reasons.len() - 1
        });
        for name in names(rule) {
            if !reasons[at].1.contains(&name) {
                reasons[at].1.push(name);
            }
        }
    }
    let mut page = String::from("| has no effect | closes nothing, because |\n|---|---|\n");
    for (reason, names) in reasons {
        page += &format!("| {} | {reason} |\n", names.join(", "));
    }
    page
}

#[test]
fn the_page_has_the_tables() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/xds.md");
    let Ok(text) = std::fs::read_to_string(path) else {
        return; // A package of this crate alone.
    };
    for table in [treatments(), reasons()] {
        assert!(text.contains(&table), "docs/xds.md should have:\n{table}");
    }
}
