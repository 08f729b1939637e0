//! Ids of resources.

use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};

use serde::{Deserialize, Serialize};

/// An id such as `/subscriptions/{s}/resourceGroups/{g}/providers/Microsoft.Network/loadBalancers/{name}`.
///
/// Ids are compared, ordered and hashed ignoring the case of ASCII letters, because the resource manager may
/// return an id in another case. They are shown and written as received.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ArmId(String);

impl ArmId {
    /// Creates an id from this text. Any text is accepted, since the resource manager validates it.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// Creates the id of a resource of `Microsoft.Network`; `kind` is the segment of its type, such as
    /// `loadBalancers`.
    pub fn network(subscription: &str, resource_group: &str, kind: &str, name: &str) -> Self {
        Self::of_provider(
            subscription,
            resource_group,
            "Microsoft.Network",
            kind,
            name,
        )
    }

    /// Creates the id of a resource of any provider.
    pub fn of_provider(
        subscription: &str,
        resource_group: &str,
        provider: &str,
        kind: &str,
        name: &str,
    ) -> Self {
        Self(format!(
            "/subscriptions/{subscription}/resourceGroups/{resource_group}/providers/{provider}/{kind}/{name}"
        ))
    }

    /// Returns the id of a part of this resource, such as one of its `probes`.
    #[must_use]
    pub fn child(&self, kind: &str, name: &str) -> Self {
        Self(format!("{}/{kind}/{name}", self.0))
    }

    /// Returns the id as written.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the last segment.
    pub fn name(&self) -> &str {
        self.0.rsplit('/').next().unwrap_or_default()
    }

    /// Returns the segment after one that equals `kind`, ignoring case: `segment("resourceGroups")` is the
    /// resource group.
    pub fn segment(&self, kind: &str) -> Option<&str> {
        let mut segments = self.0.split('/');
        segments.find(|segment| segment.eq_ignore_ascii_case(kind))?;
        segments.next().filter(|segment| !segment.is_empty())
    }

    /// Returns the resource group.
    pub fn resource_group(&self) -> Option<&str> {
        self.segment("resourceGroups")
    }

    /// Returns the id without its last two segments: that of the parent resource.
    pub fn parent(&self) -> Option<Self> {
        let (rest, _) = self.0.rsplit_once('/')?;
        let (rest, _) = rest.rsplit_once('/')?;
        (!rest.is_empty()).then(|| Self(rest.to_owned()))
    }

    /// Returns true if the id is that of a part of `other`, at any depth.
    pub fn is_within(&self, other: &Self) -> bool {
        let (own, outer) = (self.0.as_bytes(), other.0.as_bytes());
        own.len() > outer.len()
            && own.get(outer.len()) == Some(&b'/')
            && own
                .iter()
                .zip(outer)
                .all(|(a, b)| a.eq_ignore_ascii_case(b))
    }
}

impl PartialEq for ArmId {
    fn eq(&self, other: &Self) -> bool {
        self.0.eq_ignore_ascii_case(&other.0)
    }
}

impl Eq for ArmId {}

impl PartialOrd for ArmId {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for ArmId {
    fn cmp(&self, other: &Self) -> Ordering {
        let lower = |id: &Self| {
            id.0.bytes()
                .map(|byte| byte.to_ascii_lowercase())
                .collect::<Vec<_>>()
        };
        if self == other {
            Ordering::Equal
        } else {
            lower(self).cmp(&lower(other))
        }
    }
}

impl Hash for ArmId {
    fn hash<H: Hasher>(&self, state: &mut H) {
        for byte in self.0.bytes() {
            state.write_u8(byte.to_ascii_lowercase());
        }
        state.write_u8(0xff);
    }
}

impl fmt::Display for ArmId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl From<&str> for ArmId {
    fn from(text: &str) -> Self {
        Self(text.to_owned())
    }
}
