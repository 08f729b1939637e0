//! Which sections a document may have.

use proxy_model::json::Node;
use proxy_model::{Problem, Problems, pointer_to, same_id};

use crate::sources;

/// Sections that are read here or by the providers.
const OURS: [&str; 9] = [
    "ReverseProxy",
    "Listeners",
    "Admin",
    "Telemetry",
    "Server",
    sources::SERVICE_FABRIC,
    sources::SERF,
    sources::CONSUL,
    sources::XDS,
];

/// Sections of ASP.NET applications that mean something for a proxy, and what to do about them.
const FOREIGN: [(&str, &str); 3] = [
    ("Kestrel", "say where to listen in `Listeners`"),
    ("Urls", "say where to listen in `Listeners`"),
    (
        "AllowedHosts",
        "say which hosts are served in `Match.Hosts` of the routes",
    ),
];

/// Reports sections that nobody reads.
///
/// An `appsettings.json` also configures the application around the proxy, so a section that is not ours is no mistake,
/// unless it is nearly one of ours.
pub(super) fn judge(document: &Node, problems: &mut Problems) {
    let Node::Object(root) = document else {
        return;
    };
    for (key, node) in root.iter() {
        if OURS.iter().any(|ours| same_id(ours, key)) {
            continue;
        }
        let pointer = pointer_to("", key);
        if let Some((name, instead)) = FOREIGN.iter().find(|(name, _)| same_id(name, key)) {
            if matches!(node, Node::Text(text) if *name == "AllowedHosts" && text == "*") {
                continue;
            }
            let message = format!("`{name}` configures ASP.NET and is not read here");
            problems.push(
                Problem::warning(pointer, "foreign_section", message).with_suggestion(*instead),
            );
        } else if let Some(meant) = OURS.iter().find(|ours| is_slip_of(key, ours)) {
            problems.push(
                Problem::error(
                    pointer,
                    "unknown_section",
                    format!("there is no section `{key}`"),
                )
                .with_suggestion(format!("did you mean `{meant}`?")),
            );
        }
    }
}

/// Whether `written` is `meant` but for one letter too many, too few, wrong or swapped.
fn is_slip_of(written: &str, meant: &str) -> bool {
    let a: Vec<char> = written.to_lowercase().chars().collect();
    let b: Vec<char> = meant.to_lowercase().chars().collect();
    let prefix = a.iter().zip(&b).take_while(|(x, y)| x == y).count();
    let (a, b) = (&a[prefix..], &b[prefix..]);
    let suffix = a
        .iter()
        .rev()
        .zip(b.iter().rev())
        .take_while(|(x, y)| x == y)
        .count();
    let (a, b) = (&a[..a.len() - suffix], &b[..b.len() - suffix]);
    match (a, b) {
        ([_], [] | [_]) | ([], [_]) => true,
        ([x, y], [v, w]) => x == w && y == v,
        _ => false,
    }
}
