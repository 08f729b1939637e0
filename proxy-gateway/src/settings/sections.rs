//! The sections that a document may have.

use proxy_model::json::{Node, Setting};
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
    ("Kestrel", "set the addresses in `Listeners`"),
    ("Urls", "set the addresses in `Listeners`"),
    (
        "AllowedHosts",
        "set the hosts in `Match.Hosts` of the routes",
    ),
];

/// The relation of a section's name to the sections that are read.
pub(crate) enum Kinship {
    /// One of our sections.
    Ours,
    /// A section of ASP.NET that matters for a proxy.
    Foreign,
    /// A name that is nearly that of one of our sections.
    Near(&'static str),
    /// No relation.
    None,
}

/// Returns the relation of `name` to the sections that are read.
pub(crate) fn kinship(name: &str) -> Kinship {
    let find = |is_it: &dyn Fn(&str) -> bool| OURS.into_iter().find(|ours| is_it(ours));
    if find(&|ours| same_id(ours, name)).is_some() {
        return Kinship::Ours;
    }
    if FOREIGN.iter().any(|(foreign, _)| same_id(foreign, name)) {
        return Kinship::Foreign;
    }
    match find(&|ours| is_longer(name, ours) || is_slip_of(name, ours) || is_singular(name, ours)) {
        Some(meant) => Kinship::Near(meant),
        None => Kinship::None,
    }
}

/// Returns the names of all sections, for a message.
pub(crate) fn listed() -> String {
    OURS.map(|name| format!("`{name}`")).join(", ")
}

/// Returns the problem of a section of ASP.NET.
pub(crate) fn foreign(name: &str) -> Option<Problem> {
    let (name, instead) = FOREIGN.iter().find(|(foreign, _)| same_id(foreign, name))?;
    let message = format!("`{name}` configures ASP.NET and is not read here");
    let pointer = pointer_to("", name);
    Some(Problem::warning(pointer, "foreign_section", message).with_suggestion(*instead))
}

/// Returns true if a problem is in one of our sections, or in none.
pub(crate) fn concerns_us(problem: &Problem) -> bool {
    match problem.pointer.split('/').nth(1) {
        Some(section) => matches!(kinship(section), Kinship::Ours),
        None => true,
    }
}

/// Reports an option of the command line that sets no value of our sections.
pub(crate) fn judge_setting(setting: &Setting, problems: &mut Problems) {
    let first = setting.key.split(':').next().unwrap_or_default();
    let suggestion = match kinship(first) {
        Kinship::Ours => return,
        Kinship::Near(meant) => format!("did you mean `{meant}`?"),
        Kinship::Foreign | Kinship::None => format!("sections are {}", listed()),
    };
    let message = format!("there is no section `{first}`");
    problems.push(
        Problem::error("", "unknown_section", message)
            .with_suggestion(suggestion)
            .with_origin(setting.origin.as_str()),
    );
}

/// Reports sections that nothing reads.
///
/// An `appsettings.json` also configures the application around the proxy, so a section that is not ours is
/// no mistake, unless it is nearly one of ours.
pub(super) fn judge(document: &Node, problems: &mut Problems) {
    let Node::Object(root) = document else {
        return;
    };
    for (key, node) in root.iter() {
        let pointer = pointer_to("", key);
        match kinship(key) {
            Kinship::Foreign => {
                // Every host is allowed here as well.
                let is_any_host =
                    matches!(node, Node::Text(text) if text == "*") && same_id(key, "AllowedHosts");
                problems.extend(foreign(key).filter(|_| !is_any_host));
            }
            Kinship::Near(meant) => {
                let problem = if is_longer(key, meant) {
                    let message = format!("the section `{key}` is not read here");
                    Problem::warning(pointer, "unknown_section", message)
                } else {
                    let message = format!("there is no section `{key}`");
                    Problem::error(pointer, "unknown_section", message)
                };
                problems.push(problem.with_suggestion(format!("did you mean `{meant}`?")));
            }
            Kinship::Ours | Kinship::None => {}
        }
    }
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

/// Returns true if `written` is another plural of `meant`, or its singular: `Policys` and `Policy`.
fn is_singular(written: &str, meant: &str) -> bool {
    let (written, lower) = (written.to_lowercase(), meant.to_lowercase());
    let stem = lower.strip_suffix("ies");
    stem.and_then(|stem| written.strip_prefix(stem))
        .is_some_and(|rest| matches!(rest, "y" | "ys" | "ie"))
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
