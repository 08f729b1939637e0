//! The session affinity of one cluster.

use std::fmt;
use std::sync::Arc;
use std::time::SystemTime;

use http::{HeaderMap, HeaderValue, StatusCode};
use proxy_model::compiled::{
    AffinityFailure, AffinityKey, Cluster, DestinationIndex, SessionAffinity,
};
use proxy_model::{Problem, RequestHead};

#[cfg(feature = "affinity-keys")]
use super::KeyRing;
use super::cookie::{KeyText, find_cookie, set_cookie};
use super::hash::{self, Hash, SHORT, padded, parse_hex, push_hex};
use super::{Affinities, AffinityFailurePolicy, AffinityPolicy, KeyFailure, RequestKey};
use crate::head::HeaderMutations;
#[cfg(feature = "server")]
use crate::http1::FieldOperation;

/// Separates the cluster from the destination in a key that names both.
const SEPARATOR: u8 = b'.';

/// The session affinity of one cluster in one generation.
pub(crate) struct ClusterAffinity {
    kind: AffinityKind,
    failure: FailureAction,
    /// The hash of the cluster's id.
    cluster: [u8; SHORT],
    /// The hash of each destination's id with its position, in the order of the hashes.
    destinations: Box<[(Hash, DestinationIndex)]>,
}

enum AffinityKind {
    /// A hash of 8 bytes.
    Short,
    /// A hash of 32 bytes.
    Long,
    #[cfg(feature = "affinity-keys")]
    Sealed {
        keys: KeyRing,
        /// The header in lower case; `None` for a cookie.
        header: Option<Box<str>>,
        purpose: Box<[u8]>,
    },
    Custom(Arc<dyn AffinityPolicy>),
}

enum FailureAction {
    Redistribute,
    Reject,
    Custom(Arc<dyn AffinityFailurePolicy>),
}

/// The cluster and the destination that a key names.
struct Named {
    /// True if the key names this cluster, false if another one. `None` if it names no cluster.
    is_here: Option<bool>,
    destination: Hash,
}

/// The header that gives a client a new key. Boxed: most responses have none, and all have room for one.
#[derive(Debug)]
pub(crate) struct NewKey(Box<HeaderMutations>);

impl ClusterAffinity {
    /// The session affinity of a cluster, if it has any that this build supports.
    ///
    /// # Errors
    ///
    /// The cluster names a policy that is not registered.
    pub(crate) fn of(
        cluster: &Cluster,
        registered: &Affinities,
        #[cfg(feature = "affinity-keys")] keys: &KeyRing,
    ) -> Result<Option<Self>, Problem> {
        let Some(affinity) = cluster.affinity() else {
            return Ok(None);
        };
        let kind = match affinity.key() {
            AffinityKey::HashCookie => AffinityKind::Short,
            AffinityKey::ArrCookie => AffinityKind::Long,
            #[cfg(feature = "affinity-keys")]
            AffinityKey::Cookie | AffinityKey::CustomHeader => AffinityKind::sealed(affinity, keys),
            #[cfg(not(feature = "affinity-keys"))]
            AffinityKey::Cookie | AffinityKey::CustomHeader => return Ok(None),
            AffinityKey::Custom(name) => AffinityKind::Custom(registered.policy(cluster, name)?),
        };
        let failure = match affinity.failure() {
            AffinityFailure::Redistribute => FailureAction::Redistribute,
            AffinityFailure::Return503Error => FailureAction::Reject,
            AffinityFailure::Custom(name) => {
                FailureAction::Custom(registered.failure(cluster, name)?)
            }
        };
        let destinations = match &kind {
            // A policy of the program finds its destinations itself.
            AffinityKind::Custom(_) => Box::default(),
            kind => hashes(cluster, kind),
        };
        Ok(Some(Self {
            kind,
            failure,
            cluster: hash::short(cluster.id().as_str()),
            destinations,
        }))
    }

    /// The destination that the key of a request names.
    pub(crate) fn read(&self, cluster: &Cluster, head: &dyn RequestHead) -> RequestKey {
        if let AffinityKind::Custom(policy) = &self.kind {
            return policy.read(head, cluster);
        }
        match self.named(cluster, head) {
            // A key without a cluster may belong to this one: keys that YARP wrote name the destination only.
            Ok(Some(named)) if named.is_here != Some(false) => self
                .find(&named.destination)
                .map_or(RequestKey::NotFound, RequestKey::Destination),
            Ok(Some(_)) => RequestKey::NotFound,
            Ok(None) => RequestKey::NotSet,
            Err(failure) => failure,
        }
    }

    /// Returns true if the key of a request belongs to this cluster: it names the cluster, or it names no cluster
    /// and one of this cluster's destinations.
    pub(crate) fn is_named(&self, cluster: &Cluster, head: &dyn RequestHead) -> bool {
        if let AffinityKind::Custom(policy) = &self.kind {
            return matches!(policy.read(head, cluster), RequestKey::Destination(_));
        }
        let Ok(Some(named)) = self.named(cluster, head) else {
            return false;
        };
        // A key that names no cluster belongs to the one that has its destination.
        named
            .is_here
            .unwrap_or_else(|| self.find(&named.destination).is_some())
    }

    /// Returns the status that rejects a request with such a key. `None` if the request may use any destination.
    pub(crate) fn reject(&self, failure: KeyFailure, cluster: &Cluster) -> Option<StatusCode> {
        match &self.failure {
            FailureAction::Redistribute => None,
            FailureAction::Reject => Some(StatusCode::SERVICE_UNAVAILABLE),
            FailureAction::Custom(policy) => policy.reject(failure, cluster),
        }
    }

    /// Returns the header that gives a client the key of a destination. `names_cluster`: with that of the cluster.
    #[cold]
    pub(crate) fn give(
        &self,
        cluster: &Cluster,
        index: DestinationIndex,
        names_cluster: bool,
        is_https: bool,
    ) -> Option<NewKey> {
        let destination = cluster.destinations().get(index.0 as usize)?;
        let affinity = cluster.affinity()?;
        let id = destination.id().as_str();
        let mut text = String::new();
        match &self.kind {
            AffinityKind::Custom(policy) => {
                let (name, value) = policy.give(destination, cluster)?;
                return NewKey::of(name.as_str(), value);
            }
            // In a split, clusters may have destinations of the same id, so the key must name the cluster as well.
            AffinityKind::Short | AffinityKind::Long if names_cluster => {
                push_hex(&self.cluster, false, &mut text);
                text.push(char::from(SEPARATOR));
            }
            _ => {}
        }
        match &self.kind {
            AffinityKind::Short => push_hex(&hash::short(id), false, &mut text),
            AffinityKind::Long => push_hex(&hash::long(id), true, &mut text),
            #[cfg(feature = "affinity-keys")]
            AffinityKind::Sealed { keys, purpose, .. } => {
                let mut content = [0; 2 * SHORT];
                content[..SHORT].copy_from_slice(&self.cluster);
                content[SHORT..].copy_from_slice(&hash::short(id));
                // The content has a fixed length, so that the value reveals not even the length of an id.
                text = keys.load().seal(content, purpose)?;
            }
            AffinityKind::Custom(_) => return None,
        }
        let name = affinity.key_name();
        if *affinity.key() == AffinityKey::CustomHeader {
            return NewKey::of(name, HeaderValue::from_str(&text).ok()?);
        }
        let cookie = set_cookie(name, &text, affinity.cookie(), is_https, SystemTime::now());
        NewKey::of("Set-Cookie", HeaderValue::from_str(&cookie).ok()?)
    }

    /// The cluster and the destination that the key of a request names, if it has one.
    #[inline]
    fn named(
        &self,
        cluster: &Cluster,
        head: &dyn RequestHead,
    ) -> Result<Option<Named>, RequestKey> {
        let Some(affinity) = cluster.affinity() else {
            return Ok(None);
        };
        let mut text = KeyText::default();
        if !self.find_text(affinity, head, &mut text)? {
            return Ok(None);
        }
        let named = match &self.kind {
            AffinityKind::Short => self
                .hashed(&text, SHORT, false)
                .ok_or(RequestKey::NotFound)?,
            AffinityKind::Long => self
                .hashed(&text, hash::MOST, true)
                .ok_or(RequestKey::NotFound)?,
            #[cfg(feature = "affinity-keys")]
            AffinityKind::Sealed { keys, purpose, .. } => {
                let opened = text.get().and_then(|text| keys.load().open(text, purpose));
                let content = opened.ok_or(RequestKey::Unreadable)?;
                // The content begins with the hash of the cluster.
                let (here, there) = content.split_at(SHORT);
                Named {
                    is_here: Some(here == self.cluster),
                    destination: padded(there.try_into().unwrap_or_default()),
                }
            }
            AffinityKind::Custom(_) => return Ok(None),
        };
        Ok(Some(named))
    }

    /// Finds the text of a request's key. Returns false if it has none.
    #[inline]
    fn find_text(
        &self,
        affinity: &SessionAffinity,
        head: &dyn RequestHead,
        text: &mut KeyText,
    ) -> Result<bool, RequestKey> {
        match self.kind.header() {
            None => Ok(find_cookie(head, affinity.key_name(), text)),
            Some(name) => find_header(head, name, text),
        }
    }

    /// The part of [`read`](Self::read) that needs no keys. `None`: the request has a key, which may name anything.
    pub(crate) fn read_unopened(
        &self,
        cluster: &Cluster,
        head: &dyn RequestHead,
    ) -> Option<RequestKey> {
        match self.find_text(cluster.affinity()?, head, &mut KeyText::default()) {
            Ok(true) => None,
            Ok(false) => Some(RequestKey::NotSet),
            Err(failure) => Some(failure),
        }
    }

    /// The cluster and the destination that a hash names.
    fn hashed(&self, text: &KeyText, length: usize, is_upper: bool) -> Option<Named> {
        let text = text.get()?;
        // A key may name the cluster as well, in front of the destination.
        let separator = text.iter().position(|byte| *byte == SEPARATOR);
        let (is_here, destination) = match separator {
            None => (None, text),
            Some(at) => {
                let here = parse_hex(&text[..at], SHORT, false)?;
                (Some(here[..SHORT] == self.cluster), &text[at + 1..])
            }
        };
        Some(Named {
            is_here,
            destination: parse_hex(destination, length, is_upper)?,
        })
    }

    /// The destination with this hash: the first one, should there be several.
    #[inline]
    fn find(&self, hash: &Hash) -> Option<DestinationIndex> {
        let at = self.destinations.partition_point(|(known, _)| known < hash);
        let (found, index) = self.destinations.get(at)?;
        (found == hash).then_some(*index)
    }
}

impl AffinityKind {
    #[cfg(feature = "affinity-keys")]
    fn sealed(affinity: &SessionAffinity, keys: &KeyRing) -> Self {
        let is_header = *affinity.key() == AffinityKey::CustomHeader;
        let name = affinity.key_name().to_ascii_lowercase();
        // A value is of no use in the place of another key.
        let purpose = format!("affinity {} {name}", affinity.key().name());
        Self::Sealed {
            keys: keys.clone(),
            header: is_header.then(|| name.into()),
            purpose: purpose.into_bytes().into(),
        }
    }

    fn header(&self) -> Option<&str> {
        match self {
            #[cfg(feature = "affinity-keys")]
            Self::Sealed { header, .. } => header.as_deref(),
            _ => None,
        }
    }
}

/// The hashes of a cluster's destinations, in order.
fn hashes(cluster: &Cluster, kind: &AffinityKind) -> Box<[(Hash, DestinationIndex)]> {
    let indices = (0..).map(DestinationIndex);
    let destinations = cluster.destinations().iter().zip(indices);
    let mut hashes: Vec<_> = destinations
        .map(|(destination, index)| {
            let id = destination.id().as_str();
            let hash = match kind {
                AffinityKind::Long => hash::long(id),
                _ => padded(hash::short(id)),
            };
            (hash, index)
        })
        .collect();
    // Equal hashes stay in the order of the configuration, of which the first counts.
    hashes.sort_unstable();
    hashes.into()
}

/// The value of a header that is there once; an empty one is none.
///
/// # Errors
///
/// The header has several values, which is ambiguous.
fn find_header(head: &dyn RequestHead, name: &str, text: &mut KeyText) -> Result<bool, RequestKey> {
    let mut count = 0_u32;
    let mut is_set = false;
    head.for_each_header(name, &mut |value| {
        count += 1;
        is_set = !value.is_empty();
        text.set(value.iter().copied());
        // A second value is enough to know that the key is ambiguous.
        count < 2
    });
    match count {
        0 | 1 => Ok(is_set),
        _ => Err(RequestKey::Unreadable),
    }
}

impl NewKey {
    /// `None` if no response may have the header.
    fn of(name: &str, value: HeaderValue) -> Option<Self> {
        let mut edits = Box::<HeaderMutations>::default();
        edits.append(name, value).ok()?;
        Some(Self(edits))
    }

    /// Adds the header to a response.
    pub(crate) fn apply_to(&self, headers: &mut HeaderMap) {
        self.0.apply_to(headers);
    }

    /// The header, for a response that is written from its bytes.
    #[cfg(feature = "server")]
    pub(crate) fn operations(&self) -> impl Iterator<Item = FieldOperation<'_>> {
        self.0.operations()
    }
}

impl fmt::Debug for ClusterAffinity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClusterAffinity").finish_non_exhaustive()
    }
}
