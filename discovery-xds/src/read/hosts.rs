//! Domains of virtual hosts as patterns, and their rank.

use std::collections::{BTreeMap, BTreeSet};

use proxy_model::config::{HeaderMatchMode, RouteHeader};
use proxy_model::matching::HostPattern;

use super::Reading;

/// The position of a virtual host's routes in `Order`. Envoy searches only one virtual host, the one with
/// the most specific domain, and tries its routes one after the other; the model compares `Order` first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Specificity {
    Exact,
    /// A wildcard with a suffix of this many bytes, counted down from the longest name.
    Suffix(usize),
    /// A wildcard with a prefix. This is not supported.
    Prefix,
    Any,
}

const LONGEST_NAME: usize = 255;

/// The first `Order` of the routes for any host.
const AFTER_ALL: i32 = 1_000_000_000;

/// Routes of one virtual host for which there is room.
pub(super) const MOST_ROUTES: usize = 99_999;

/// The last place of a rank.
pub(super) const LAST: usize = 99_999;

/// The distance between the first routes of two ranks.
const STEP: i32 = 100_000;

impl Specificity {
    /// Returns the `Order` of the route at a position. `None` if there is no space for it.
    pub(super) fn order(self, position: usize) -> Option<i32> {
        let position = i32::try_from(position).ok().filter(|at| *at < STEP)?;
        let rank = match self {
            Self::Exact => 0,
            Self::Suffix(length) => i32::try_from(LONGEST_NAME.saturating_sub(length)).ok()? + 1,
            Self::Prefix => return Some(AFTER_ALL - STEP + position),
            Self::Any => return Some(AFTER_ALL + position),
        };
        // The last rank ends where routes without an order begin, as those of this project may be.
        let last = i32::try_from(LONGEST_NAME).ok()? + 2;
        Some((rank - last) * STEP + position)
    }
}

/// The domains of a virtual host.
#[derive(Debug, Default)]
pub(super) struct Domains {
    /// The patterns by how specific they are; `None` for all hosts.
    pub(super) groups: BTreeMap<Specificity, Option<Vec<String>>>,
    /// Conditions for the requests of rejected domains.
    pub(super) rejected: Vec<(Specificity, RouteHeader)>,
}

/// Reads the domains of a virtual host, except those that are rejected. `claimed` has the domains of
/// virtual hosts before it.
pub(super) fn domains(
    domains: &[String],
    claimed: &mut BTreeSet<String>,
    reading: &mut Reading,
) -> Domains {
    let mut found = Domains::default();
    let mut known = BTreeMap::new();
    for domain in domains {
        // `name:*` stands for any port.
        let name = domain.strip_suffix(":*").unwrap_or(domain);
        match HostPattern::parse(name) {
            Ok(pattern) => {
                known.insert((pattern.to_ascii(), pattern.port()), pattern);
            }
            Err(error) => {
                let message = match guard(domain) {
                    Some(guard) => {
                        let what = said(&guard.1);
                        found.rejected.push(guard);
                        format!(
                            "`{domain}` cannot be honoured: {error}; requests {what} get 503, unless a more specific domain takes them"
                        )
                    }
                    None => format!("`{domain}` cannot be honoured: {error}"),
                };
                reading.reject("domains", message);
            }
        }
    }
    known.retain(|(pattern, _), _| {
        let is_free = !claimed.contains(pattern);
        if !is_free {
            let message = format!("`{pattern}` is a domain of another virtual host, which has it");
            reading.reject("domains", message);
        }
        is_free
    });
    for ((pattern, port), parsed) in &known {
        claimed.insert(pattern.clone());
        if !parsed.as_str().is_ascii() && pattern.contains("xn--") && !is_ascii(domains, pattern) {
            let message = format!("requests for `{pattern}`, its ASCII form, match, too");
            reading.differs("domains", message);
        }
        if pattern == "*" {
            found.groups.insert(Specificity::Any, None);
            continue;
        }
        let name = port.and_then(|port| pattern.strip_suffix(&format!(":{port}")));
        // A name on any port is a name on each.
        if name.is_some_and(|name| known.contains_key(&(name.to_owned(), None))) {
            continue;
        }
        let name = name.unwrap_or(pattern);
        let rank = match name.strip_prefix('*') {
            Some(suffix) => Specificity::Suffix(suffix.len()),
            None => Specificity::Exact,
        };
        let group = found.groups.entry(rank);
        if let Some(patterns) = group.or_insert_with(|| Some(Vec::new())) {
            patterns.push(parsed.to_unicode());
        }
    }
    found
}

/// Returns true if a name was written in its ASCII form.
fn is_ascii(domains: &[String], pattern: &str) -> bool {
    let name = |domain: &String| {
        domain
            .strip_suffix(":*")
            .unwrap_or(domain)
            .to_ascii_lowercase()
    };
    domains.iter().any(|domain| name(domain) == pattern)
}

/// Returns a condition for the requests that Envoy would take for a domain, or for a few more. `None` if no
/// request that a proxy accepts is one.
fn guard(domain: &str) -> Option<(Specificity, RouteHeader)> {
    let (rank, mode, value) = match (domain.strip_prefix('*'), domain.strip_suffix('*')) {
        (Some(suffix), _) => (
            Specificity::Suffix(suffix.len()),
            HeaderMatchMode::Contains,
            suffix,
        ),
        (_, Some(prefix)) => (Specificity::Prefix, HeaderMatchMode::HeaderPrefix, prefix),
        _ => (Specificity::Exact, HeaderMatchMode::ExactHeader, domain),
    };
    // Others are in no host, and would not be found in what the model takes for a list.
    let is_plain = |byte: u8| byte.is_ascii_graphic() && !matches!(byte, b'"' | b',' | b'*');
    let is_writable =
        !value.is_empty() && value.len() <= LONGEST_NAME && value.bytes().all(is_plain);
    is_writable.then(|| {
        let header = RouteHeader {
            name: "Host".to_owned(),
            values: Some(vec![value.to_owned()]),
            mode,
            is_case_sensitive: false,
        };
        (rank, header)
    })
}

/// The condition in words.
fn said(header: &RouteHeader) -> String {
    let value = header.values.as_deref().unwrap_or_default().join(", ");
    match header.mode {
        HeaderMatchMode::Contains => format!("whose host contains `{value}`"),
        HeaderMatchMode::HeaderPrefix => format!("whose host begins with `{value}`"),
        _ => format!("for `{value}`"),
    }
}
