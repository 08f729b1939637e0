//! The names of all resources and parts of a service.
//!
//! All names of a service begin with its *prefix*, which is derived from its UID. A name belongs to the
//! service if it equals the prefix, or continues with a hyphen after it, ignoring case. Since a prefix has no
//! hyphen, no name belongs to two services.

use md5::{Digest, Md5};
use sha2::Sha256;

use crate::service::ServiceKey;

/// The maximum number of characters of a resource name.
pub const LONGEST_NAME: usize = 80;

/// The maximum number of characters of a resource group's name.
const LONGEST_GROUP: usize = 90;

/// The maximum number of characters of a shortened name. The rest is for suffixes that other providers
/// append.
const LONGEST_CUT: usize = 75;

/// The number of characters of a prefix made from a real UID.
const PREFIX_LENGTH: usize = 32;

/// The suffix of the name of an internal load balancer.
pub const INTERNAL_SUFFIX: &str = "-internal";

/// Returns the UID of a service without one: the same for the same key in the same cluster, and in the form
/// of a UUID.
pub fn uid_of(key: &ServiceKey, cluster: &str) -> String {
    // No cluster has a slash in its name, so no two pairs have the same text.
    let hash = hex(&Sha256::digest(format!("{cluster}/{key}").as_bytes()));
    let part = |from: usize, to: usize| hash.get(from..to).unwrap_or_default();
    format!(
        "{}-{}-{}-{}-{}",
        part(0, 8),
        part(8, 12),
        part(12, 16),
        part(16, 20),
        part(20, 32)
    )
}

/// Returns the prefix of all names of the service with this UID: `a` and the UID without hyphens, at most 32
/// characters.
///
/// Characters that are invalid in resource names are omitted.
pub fn prefix(uid: &str) -> String {
    let letters = uid.chars().filter(char::is_ascii_alphanumeric);
    std::iter::once('a')
        .chain(letters)
        .take(PREFIX_LENGTH)
        .collect()
}

/// Returns the prefix of a name, in lower case: the name up to its first hyphen.
pub fn owner_of(name: &str) -> String {
    name.split('-')
        .next()
        .unwrap_or_default()
        .to_ascii_lowercase()
}

/// Returns true if a text looks like the [`prefix`] of a UUID, so that hardly anything but this crate has
/// written it.
pub fn is_prefix_of_uuid(text: &str) -> bool {
    text.len() == PREFIX_LENGTH
        && text.starts_with(['a', 'A'])
        && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Checks that a UID is a UUID or empty.
pub(crate) fn check_uid(uid: &str) -> Result<(), String> {
    if uid.is_empty() || is_prefix_of_uuid(&prefix(uid)) {
        return Ok(());
    }
    Err(format!(
        "metadata.uid: {uid:?} is no UUID, so the owner of its resources would be unknown after its \
         deletion; leave it out, and one is derived from the names of the cluster and the service"
    ))
}

/// Returns true if the name is that of an internal load balancer.
pub fn is_internal(load_balancer: &str) -> bool {
    load_balancer
        .len()
        .checked_sub(INTERNAL_SUFFIX.len())
        .and_then(|at| load_balancer.get(at..))
        .is_some_and(|end| end.eq_ignore_ascii_case(INTERNAL_SUFFIX))
}

/// Returns the name of the load balancer of a set of machines. That of the primary set, and every standard
/// one, has the cluster's name.
pub fn load_balancer(cluster: &str, vm_set: Option<&str>, internal: bool) -> String {
    let base = shortened(
        vm_set.unwrap_or(cluster),
        LONGEST_NAME - INTERNAL_SUFFIX.len(),
    );
    if internal {
        format!("{base}{INTERNAL_SUFFIX}")
    } else {
        base
    }
}

/// Returns the name of a service's frontend. That of an internal service includes the subnet, if the service
/// names one.
pub fn frontend(prefix: &str, subnet: Option<&str>) -> String {
    match subnet {
        Some(subnet) => cut(format!("{prefix}-{subnet}"), LONGEST_CUT),
        None => prefix.to_owned(),
    }
}

/// Returns the name of the rule, and of the probe, of a port.
pub fn rule(prefix: &str, subnet: Option<&str>, protocol: &str, port: u16) -> String {
    // The end is never cut, since it distinguishes the rules of a service.
    let end = format!("-{protocol}-{port}");
    match subnet {
        Some(subnet) => cut(format!("{prefix}-{subnet}"), LONGEST_CUT - end.len()) + &end,
        None => format!("{prefix}{end}"),
    }
}

/// Returns the name of the generated public address of a service. The prefix is never shortened, whatever the
/// length of the cluster's name.
pub fn public_ip(cluster: &str, prefix: &str) -> String {
    let cluster = shortened(cluster, LONGEST_CUT.saturating_sub(prefix.len() + 1));
    format!("{cluster}-{prefix}")
}

/// Returns the prefix at the end of a name from [`public_ip`] for a real UID.
pub(crate) fn owner_of_public_ip(name: &str) -> Option<&str> {
    let (_, prefix) = name.rsplit_once('-')?;
    is_prefix_of_uuid(prefix).then_some(prefix)
}

/// Returns the name of a node's entry in a pool of addresses. Kubernetes allows longer node names.
pub fn backend_address(node: &str) -> String {
    shortened(node, LONGEST_NAME)
}

/// Returns the name of the security rule of a port and a source. Shared rules have `shared` in place of the
/// prefix.
pub fn security_rule(prefix: &str, protocol: &str, port: u16, source: &str) -> String {
    // The names of resources have neither slashes nor colons.
    let source = source.replace('/', "_").replace(':', ".");
    shortened(
        &format!("{prefix}-{protocol}-{port}-{source}"),
        LONGEST_NAME,
    )
}

/// The first part of the names of shared security rules.
pub const SHARED: &str = "shared";

/// The IP version of an aggregated security rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// IPv4.
    V4,
    /// IPv6.
    V6,
}

impl Family {
    fn as_str(self) -> &'static str {
        match self {
            Self::V4 => "IPv4",
            Self::V6 => "IPv6",
        }
    }
}

/// The first part of the names of aggregated security rules.
pub const AGGREGATED: &str = "k8s-azure-lb_";

/// Returns the name of the security rule for all services with this protocol, these sources and these ports.
/// Both lists must be sorted as texts.
pub fn aggregated_rule(
    family: Family,
    protocol: &str,
    sources: &[String],
    ports: &[String],
) -> String {
    let key = format!("{protocol}_{}_{}", sources.join(","), ports.join(","));
    format!(
        "{AGGREGATED}allow_{}_{}",
        family.as_str(),
        hex(&Md5::digest(key.as_bytes()))
    )
}

/// Returns the name of the security rule that denies everything that no other rule allows.
pub fn deny_rule(family: Family) -> String {
    format!("{AGGREGATED}deny-all_{}", family.as_str())
}

/// Checks that the names of load balancers can begin with the cluster's name.
pub(crate) fn check_cluster_name(name: &str) -> Result<(), String> {
    let longest = LONGEST_NAME - INTERNAL_SUFFIX.len();
    if name.len() > longest {
        return Err(format!("{name:?} has more than {longest} characters"));
    }
    let begins = name.starts_with(|c: char| c.is_ascii_alphanumeric());
    let ends = name.ends_with(|c: char| c.is_ascii_alphanumeric() || c == '_');
    if !begins
        || !ends
        || !name
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b"._-".contains(&b))
    {
        return Err(format!(
            "{name:?} cannot be part of a name: letters, digits, '.', '_' and '-', beginning with a letter or digit and ending with one or '_'"
        ));
    }
    if is_internal(name) {
        return Err(format!(
            "{name:?} ends with {INTERNAL_SUFFIX}, which marks internal load balancers"
        ));
    }
    Ok(())
}

/// Checks that a text is a valid name of a resource of the network provider. An invalid one could lead
/// elsewhere within an id.
pub(crate) fn check_resource_name(name: &str) -> Result<(), String> {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let fits = name.len() <= LONGEST_NAME
        && name.starts_with(is_word)
        && name.ends_with(is_word)
        && name.chars().all(|c| is_word(c) || matches!(c, '.' | '-'));
    fits.then_some(()).ok_or_else(|| {
        format!(
            "{name:?} is no name of a resource: up to {LONGEST_NAME} letters, digits, '_', '.' and '-', beginning and ending with a letter, a digit or '_'"
        )
    })
}

/// Checks that a text is a valid name of a resource group.
pub(crate) fn check_resource_group(name: &str) -> Result<(), String> {
    let fits = (1..=LONGEST_GROUP).contains(&name.chars().count())
        && !name.ends_with('.')
        && name
            .chars()
            .all(|c| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '(' | ')'));
    fits.then_some(()).ok_or_else(|| {
        format!(
            "{name:?} is no name of a resource group: up to {LONGEST_GROUP} letters, digits, '_', '-', '.', '(' and ')', not ending with '.'"
        )
    })
}

/// Cuts a name to `longest` characters. If it then ends in neither a letter nor `_`, the end becomes `_`,
/// since a name may not end in a hyphen.
fn cut(name: String, longest: usize) -> String {
    if name.chars().count() <= longest {
        return name;
    }
    let mut cut: String = name.chars().take(longest).collect();
    if !cut.ends_with(|c: char| c.is_ascii_alphabetic() || c == '_') {
        cut.pop();
        cut.push('_');
    }
    cut
}

/// Shortens a name to `longest` characters. A hash of the whole name replaces the cut part, so that different
/// names stay different.
fn shortened(name: &str, longest: usize) -> String {
    if name.chars().count() <= longest {
        return name.to_owned();
    }
    let hash = hex(&Sha256::digest(name.as_bytes()));
    let kept: String = name.chars().take(longest.saturating_sub(9)).collect();
    format!("{kept}-{}", hash.get(..8).unwrap_or_default())
}

fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write;
    bytes
        .iter()
        .fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
            // Writing to a string cannot fail.
            let _ = write!(text, "{byte:02x}");
            text
        })
}

#[cfg(test)]
mod tests;
