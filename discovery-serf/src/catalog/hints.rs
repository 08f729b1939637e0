//! The route hints in the tags of a service's instances.

use std::collections::HashSet;

use proxy_model::matching::{HostPattern, PathTemplate, RouteMatcher, RouteMatcherParts};

use super::collected_problems::CollectedProblems;
use super::keys::Entry;
use super::shown::shown;
use super::{RouteHint, tags};

/// Returns the hint of a service: the first host, otherwise the first path.
///
/// Instances with another hint stay destinations. A change of a hint reaches one node after the other, and
/// the service must be reachable all the time.
pub(super) fn of(entries: &[Entry<'_>], collected: &mut CollectedProblems) -> RouteHint {
    let host = |entry: &Entry<'_>| entry.instance.host.clone();
    if let Some(host) = first(entries, host, tags::HOST, same_hosts, collected) {
        return RouteHint::Host(host);
    }
    let path = |entry: &Entry<'_>| entry.instance.route_path.clone();
    match first(entries, path, tags::ROUTE_PATH, same_paths, collected) {
        Some(path) => RouteHint::Path(path),
        None => RouteHint::None,
    }
}

fn first(
    entries: &[Entry<'_>],
    hint: impl Fn(&Entry<'_>) -> Option<String>,
    tag: &'static str,
    are_same: fn(&str, &str) -> bool,
    collected: &mut CollectedProblems,
) -> Option<String> {
    let mut hints = entries
        .iter()
        .filter_map(|entry| Some((entry.member, hint(entry)?)));
    let (decides, used) = hints.next()?;
    // Many instances have the same text, and each text is checked once.
    let mut seen = HashSet::from([used.clone()]);
    for (member, other) in hints {
        if seen.contains(&other) {
            continue;
        }
        if !are_same(&used, &other) {
            let message = format!(
                "`{tag}` is `{}`; the service goes by `{}`, which the node `{}` says",
                shown(other.as_bytes()),
                shown(used.as_bytes()),
                shown(decides.name.as_bytes()),
            );
            collected.tag(member, tag, "conflicting_hints", &message);
        }
        seen.insert(other);
    }
    Some(used)
}

/// Returns true if both patterns match the same hosts, independent of their spelling.
fn same_hosts(one: &str, other: &str) -> bool {
    let matcher = |text| {
        let hosts = vec![HostPattern::parse(text).ok()?];
        Some(RouteMatcher::new(RouteMatcherParts {
            hosts,
            ..RouteMatcherParts::default()
        }))
    };
    are_same(matcher(one), matcher(other))
}

/// Returns true if both templates match the same paths. Names of parameters make no difference.
fn same_paths(one: &str, other: &str) -> bool {
    let matcher = |text| {
        let path = PathTemplate::parse(text).ok()?;
        Some(RouteMatcher::new(RouteMatcherParts {
            path,
            ..RouteMatcherParts::default()
        }))
    };
    are_same(matcher(one), matcher(other))
}

fn are_same(one: Option<RouteMatcher>, other: Option<RouteMatcher>) -> bool {
    one.zip(other)
        .is_some_and(|(one, other)| one.same_criteria(&other))
}
