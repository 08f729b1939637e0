//! Names for configurations.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::config::{PolicyConfigs, PolicyKind, ProxyConfig, RouteConfig};
use crate::matching::{HostPattern, PathTemplate};

/// A hash of a configuration's content: 128 bits of the SHA-256 of its canonical JSON, shown in
/// hexadecimal.
///
/// Two processes that have the same configuration have the same revision, so replicas agree and restarts
/// change nothing. The order of routes, clusters, destinations and metadata makes no difference, since
/// sources return it by chance. There is one exception: if several routes with equal
/// [precedence](crate::matching::Precedence) match a request, the first gets it. The order therefore counts
/// among routes with the same `Order`, path, host, and number of conditions on headers and on query
/// parameters, if all of them name methods or none does. Names and constraints of parameters in the path
/// are ignored. All other content counts as written, including the case of ids.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Revision([u8; 16]);

/// A text is not a [`Revision`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a revision has 32 hexadecimal digits")]
pub struct ParseRevisionError;

impl Revision {
    /// Returns the revision of `config`.
    pub fn of(config: &ProxyConfig) -> Self {
        let mut hash = Sha256::new();
        let clusters = config.clusters.iter();
        hash_entries(
            "Clusters",
            clusters.map(|(id, c)| (id.as_str(), c)),
            &mut hash,
        );
        let routes = config.routes.iter();
        hash_entries("Routes", routes.map(|(id, r)| (id.as_str(), r)), &mut hash);
        hash_policies(&config.policies, &mut hash);
        for ids in ties(config) {
            hash.update(Value::from(ids).to_string());
        }
        let digest: [u8; 32] = hash.finalize().into();
        let (half, _) = digest.split_at(16);
        Self(half.try_into().expect("16 bytes of 32 were taken"))
    }

    /// The 16 bytes.
    pub const fn as_bytes(&self) -> &[u8; 16] {
        &self.0
    }
}

/// Returns the ids of routes among which the order decides, in their order, in groups of several.
///
/// These are routes that a request can find equal in every part of
/// [`Precedence`](crate::matching::Precedence). They are compared in their written form, so that routes
/// with errors count too.
fn ties(config: &ProxyConfig) -> Vec<Vec<&str>> {
    let mut by_rank: HashMap<Rank, Vec<&str>> = HashMap::new();
    for (id, route) in &config.routes {
        for rank in ranks(route) {
            by_rank.entry(rank).or_default().push(id.as_str());
        }
    }
    let mut ties: Vec<_> = by_rank.into_values().filter(|ids| ids.len() > 1).collect();
    ties.sort_unstable();
    ties.dedup();
    ties
}

/// The properties that are equal for two routes that one request can match with the same precedence.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Rank {
    order: i32,
    /// The path template. `None` if it is not a valid template.
    path: Option<String>,
    has_methods: bool,
    host: Host,
    headers: usize,
    query: usize,
}

/// Patterns that are equally specific and match the same host are the same pattern.
#[derive(Clone, PartialEq, Eq, Hash)]
enum Host {
    All,
    Pattern(String),
    Invalid,
}

/// The ranks that a route has: one for each host, as the route is as specific as the pattern that matches.
fn ranks(route: &RouteConfig) -> HashSet<Rank> {
    let criteria = &route.r#match;
    let path = criteria.path.as_deref().filter(|path| !path.is_empty());
    let rank = Rank {
        order: route.order.unwrap_or_default(),
        path: PathTemplate::outline(path.unwrap_or("/{**catchall}")),
        has_methods: criteria.methods.iter().flatten().next().is_some(),
        host: Host::All,
        headers: criteria.headers.as_ref().map_or(0, Vec::len),
        query: criteria.query_parameters.as_ref().map_or(0, Vec::len),
    };
    let hosts = criteria.hosts.as_deref().unwrap_or_default();
    if hosts.is_empty() {
        return HashSet::from([rank]);
    }
    let hosts = hosts.iter().map(|host| match HostPattern::parse(host) {
        Ok(pattern) => Host::Pattern(pattern.signature()),
        Err(_) => Host::Invalid,
    });
    hosts
        .map(|host| Rank {
            host,
            ..rank.clone()
        })
        .collect()
}

fn hash_entries<'a, T: Serialize + 'a>(
    name: &str,
    entries: impl Iterator<Item = (&'a str, &'a T)>,
    hash: &mut Sha256,
) {
    let mut entries: Vec<_> = entries.collect();
    entries.sort_unstable_by_key(|(id, _)| *id);
    hash.update(name);
    for (id, value) in entries {
        // Both are JSON, so no two sequences of entries have the same text.
        hash.update(Value::from(id).to_string());
        hash.update(canonical(value));
    }
}

/// Adds the policies to the hash. A configuration without policies keeps the revision of earlier versions.
fn hash_policies(policies: &PolicyConfigs, hash: &mut Sha256) {
    for kind in PolicyKind::ALL {
        let mut of_kind: Vec<_> = policies.of(kind).collect();
        if of_kind.is_empty() {
            continue;
        }
        of_kind.sort_unstable_by_key(|policy| &policy.name);
        hash.update(kind.section());
        for policy in of_kind {
            hash.update(Value::from(&*policy.name).to_string());
            hash.update(canonical(&policy.settings));
        }
    }
}

/// JSON without white space, with the keys of objects in the order of their bytes.
fn canonical(value: &impl Serialize) -> String {
    let value = serde_json::to_value(value).expect("keys are text and no number is infinite");
    let mut out = String::new();
    write(&value, &mut out);
    out
}

fn write(value: &Value, out: &mut String) {
    match value {
        Value::Array(values) => {
            out.push('[');
            for (i, value) in values.iter().enumerate() {
                if i > 0 {
                    out.push(',');
                }
                write(value, out);
            }
            out.push(']');
        }
        Value::Object(map) => {
            let mut entries: Vec<_> = map.iter().collect();
            entries.sort_unstable_by_key(|(key, _)| *key);
            out.push('{');
            for (i, (key, value)) in entries.into_iter().enumerate() {
                if i > 0 {
                    out.push(',');
                }
                out.push_str(&Value::from(key.as_str()).to_string());
                out.push(':');
                write(value, out);
            }
            out.push('}');
        }
        scalar => out.push_str(&scalar.to_string()),
    }
}

impl fmt::Display for Revision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Revision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Revision({self})")
    }
}

impl FromStr for Revision {
    type Err = ParseRevisionError;

    fn from_str(text: &str) -> Result<Self, ParseRevisionError> {
        let digits = text.as_bytes();
        if digits.len() != 32 {
            return Err(ParseRevisionError);
        }
        let mut bytes = [0; 16];
        for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
            let value = pair.iter().try_fold(0, |value, digit| {
                Some(value * 16 + char::from(*digit).to_digit(16)?)
            });
            *byte = value
                .and_then(|value| u8::try_from(value).ok())
                .ok_or(ParseRevisionError)?;
        }
        Ok(Self(bytes))
    }
}

impl Serialize for Revision {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Revision {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(de::Error::custom)
    }
}
