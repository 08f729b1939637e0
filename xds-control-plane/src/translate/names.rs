//! Names of clusters, and domains.

use std::collections::HashSet;
use std::sync::Arc;

use proxy_model::matching::{HostError, HostPattern};

use super::TranslateOptions;

/// `<service>-<branch>-<provides>`, without the middle part for the service itself.
pub(super) fn cluster_name(service: &str, branch: Option<&str>, provides: &str) -> Arc<str> {
    match branch {
        Some(branch) => format!("{service}-{branch}-{provides}").into(),
        None => format!("{service}-{provides}").into(),
    }
}

/// Returns the domain of a registry service: `<cluster>.<domain suffix>`, in lower case.
pub(super) fn domain_of(cluster: &str, options: &TranslateOptions) -> String {
    format!("{cluster}.{}", options.domain_suffix).to_ascii_lowercase()
}

/// A domain, and the same with each port that clients may write. One with a port stays alone.
pub(super) fn with_ports<'d>(
    domain: &'d str,
    options: &'d TranslateOptions,
) -> impl Iterator<Item = String> + 'd {
    let ports = match domain.contains(':') {
        true => &[][..],
        false => &options.domain_ports[..],
    };
    let with_port = move |port: &u16| format!("{domain}:{port}");
    std::iter::once(domain.to_owned()).chain(ports.iter().map(with_port))
}

/// Returns the domains with and without ports, each once: a service may name `a.example` and `a.example:80`.
pub(super) fn all_with_ports(domains: &[String], options: &TranslateOptions) -> Vec<String> {
    let mut seen = HashSet::new();
    let all = domains
        .iter()
        .flat_map(|domain| with_ports(domain, options));
    all.filter(|domain| seen.insert(domain.clone())).collect()
}

/// The relation of a domain to those of the registry's services.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Reach {
    /// The domain is not one of the registry's services.
    Elsewhere,
    /// A domain that a service of the registry may have later.
    OneOfRegistry,
    /// A wildcard that takes the requests for all services of the registry that do not run.
    AllOfRegistry,
}

/// Returns the relation of a domain, in lower case, to those of the registry's services.
pub(super) fn reach(domain: &str, options: &TranslateOptions) -> Reach {
    let suffix = format!(".{}", options.domain_suffix).to_ascii_lowercase();
    let host = domain.split_once(':').map_or(domain, |(host, _)| host);
    match host.strip_prefix('*') {
        Some(rest) if rest.ends_with(&*suffix) || suffix.ends_with(rest) => Reach::AllOfRegistry,
        None if host.ends_with(&*suffix) => Reach::OneOfRegistry,
        _ => Reach::Elsewhere,
    }
}

/// Returns a configured domain in the form in which it is served, or the reason why it is not served.
///
/// `*` alone is rejected: it would take all requests that are not served otherwise.
///
/// Envoys compare names in ASCII form, as requests have them.
pub(super) fn usable_domain(domain: &str) -> Result<String, &'static str> {
    const LONGEST: usize = 255;
    let is_odd = |c: char| c.is_control() || c.is_whitespace();
    match domain {
        "" => Err("is empty"),
        "*" => Err("would take all requests that no other domain matches"),
        _ if domain.len() > LONGEST => Err("has more than 255 bytes"),
        _ if domain.contains(is_odd) => Err("has spaces or control characters"),
        _ if domain.is_ascii() => Ok(domain.to_ascii_lowercase()),
        _ => match HostPattern::parse(domain) {
            Ok(pattern) => Ok(pattern.to_ascii()),
            Err(_) => Err("is not ASCII and has no form in ASCII"),
        },
    }
}

/// Returns the error with which this project's gateways would reject a domain. The rule is that of
/// `discovery_xds::read`.
pub(super) fn not_for_gateways(domain: &str) -> Option<HostError> {
    HostPattern::parse(domain.strip_suffix(":*").unwrap_or(domain)).err()
}
