//! The sections that a document may have.

use proxy_model::json::Node;
use proxy_model::{Problem, Problems, pointer_to, same_id};

use crate::check::SECTION;
use crate::sources;

/// The sections that this program or the providers read.
const OURS: [&str; 10] = [
    SECTION,
    proxy_policies::SECTION,
    "Listeners",
    "Admin",
    "Telemetry",
    "Server",
    sources::SERVICE_FABRIC,
    sources::SERF,
    sources::CONSUL,
    sources::XDS,
];

/// The sections of ASP.NET applications that matter for a proxy, and the remedy.
const FOREIGN: [(&str, &str); 3] = [
    ("Kestrel", "say where to listen in `Listeners`"),
    ("Urls", "say where to listen in `Listeners`"),
    (
        "AllowedHosts",
        "say which hosts are served in `Match.Hosts` of the routes",
    ),
];

/// Reports sections that nothing reads.
///
/// An `appsettings.json` also configures the application around the proxy, so a section that is not ours is
/// no mistake, unless it is nearly one of ours.
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
        } else if let Some((first, _)) = key.split_once(':') {
            if OURS.iter().any(|ours| same_id(ours, first)) {
                let message = "keys with colons are not read here, as .NET reads them";
                problems.push(
                    Problem::warning(pointer, "flattened_key", message).with_suggestion(format!(
                        "write objects in each other: `\"{}\": {{ … }}`",
                        key.replace(':', "\": { \"")
                    )),
                );
            }
        } else if let Some(meant) = OURS.iter().find(|ours| is_longer(key, ours)) {
            problems.push(
                Problem::warning(
                    pointer,
                    "unknown_section",
                    format!("the section `{key}` is not read here"),
                )
                .with_suggestion(format!("did you mean `{meant}`?")),
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

/// Reports environment variables that would configure a .NET program.
pub(crate) fn judge_environment(names: impl Iterator<Item = String>, problems: &mut Problems) {
    /// The maximum number of environment variables named in a message.
    const FEW: usize = 3;
    let is_meant = |name: &String| {
        let first = name
            .split("__")
            .next()
            .and_then(|first| first.split(':').next());
        first.is_some_and(|first| {
            first.len() < name.len() && OURS.iter().any(|ours| same_id(ours, first))
        })
    };
    let mut found: Vec<String> = names.filter(is_meant).collect();
    found.sort_unstable();
    let Some(more) = found
        .len()
        .checked_sub(1)
        .map(|last| last.saturating_sub(FEW - 1))
    else {
        return;
    };
    found.truncate(FEW);
    let mut named: Vec<_> = found.iter().map(|name| format!("`{name}`")).collect();
    if more > 0 {
        named.push(format!("{more} more"));
    }
    let message = format!(
        "the environment does not configure this program, unlike one for .NET: {} has no effect",
        named.join(", ")
    );
    problems.push(
        Problem::warning("", "environment_variable", message)
            .with_suggestion("write it into a file, and name that with another `--config`"),
    );
}

/// Returns true if `written` extends `meant` as names of other sections do: `ReverseProxy2`,
/// `ReverseProxies`, `Servers`.
fn is_longer(written: &str, meant: &str) -> bool {
    let (written, lower) = (written.to_lowercase(), meant.to_lowercase());
    match meant {
        // Long enough to clash with no other name.
        SECTION => written.len() > lower.len() && written.starts_with(&lower[..lower.len() - 1]),
        _ => written
            .strip_prefix(&lower)
            .is_some_and(|rest| rest.chars().count() == 1),
    }
}

/// Returns true if `written` differs from `meant` by one letter: extra, missing, wrong or swapped.
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
