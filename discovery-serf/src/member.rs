//! Members of a cluster, as an agent lists them.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

/// One node of the cluster, as an agent lists it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Member {
    /// The node's name, unique in the cluster. Bytes that are not UTF-8 are replaced.
    pub name: Arc<str>,
    /// The gossip address of the node. An IPv4 address in IPv6 form is returned as IPv4. `None` if the
    /// agent sent neither 4 nor 16 bytes.
    pub address: Option<IpAddr>,
    /// The port of the gossip, not of a service.
    pub port: u16,
    /// The tags that the node has set.
    pub tags: Tags,
    /// The status of the node, as far as the agent knows.
    pub status: MemberStatus,
}

impl Member {
    /// Creates a member that is alive.
    pub fn new(name: impl Into<Arc<str>>, address: IpAddr, tags: Tags) -> Self {
        Self {
            name: name.into(),
            address: Some(address.to_canonical()),
            port: 7946,
            tags,
            status: MemberStatus::Alive,
        }
    }

    /// Returns the member with another status.
    #[must_use]
    pub fn with_status(mut self, status: MemberStatus) -> Self {
        self.status = status;
        self
    }
}

/// Returns the address in an agent's bytes. `None` unless there are 4 or 16 bytes.
pub(crate) fn address_of(bytes: &[u8]) -> Option<IpAddr> {
    if let Ok(four) = <[u8; 4]>::try_from(bytes) {
        return Some(Ipv4Addr::from(four).into());
    }
    let sixteen = <[u8; 16]>::try_from(bytes).ok()?;
    Some(IpAddr::from(Ipv6Addr::from(sixteen)).to_canonical())
}

/// The status of a member.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum MemberStatus {
    /// `alive`: the member takes part in the cluster.
    Alive,
    /// `leaving`: the member has announced that it leaves, and should get no new requests. About a second
    /// ahead of the event.
    Leaving,
    /// `left`: the member left voluntarily.
    Left,
    /// `failed`: the member does not respond.
    Failed,
    /// Any other status of an agent, which does not count as alive: `none`, or the addition of a later
    /// version.
    Other(Arc<str>),
}

impl MemberStatus {
    /// Returns the status for an agent's name, which is compared exactly.
    pub fn parse(status: &str) -> Self {
        match status {
            "alive" => Self::Alive,
            "leaving" => Self::Leaving,
            "left" => Self::Left,
            "failed" => Self::Failed,
            other => Self::Other(other.into()),
        }
    }

    /// The agent's name for it.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Alive => "alive",
            Self::Leaving => "leaving",
            Self::Left => "left",
            Self::Failed => "failed",
            Self::Other(other) => other,
        }
    }

    /// Returns true if the member may get requests.
    pub fn is_alive(&self) -> bool {
        *self == Self::Alive
    }
}

impl fmt::Display for MemberStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The tags of a node: values by key, both arbitrary bytes, in the order of the keys.
///
/// Any node in the gossip may set them, and a value that is not UTF-8 is transmitted unchanged.
#[derive(Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tags(BTreeMap<Vec<u8>, Vec<u8>>);

impl Tags {
    /// Creates empty tags.
    pub fn new() -> Self {
        Self::default()
    }

    /// The bytes of a value.
    pub fn bytes(&self, key: &str) -> Option<&[u8]> {
        self.0.get(key.as_bytes()).map(Vec::as_slice)
    }

    /// A value, with bytes that are not UTF-8 replaced.
    pub fn text(&self, key: &str) -> Option<Cow<'_, str>> {
        self.bytes(key).map(String::from_utf8_lossy)
    }

    /// Sets a value. Returns the previous one.
    pub fn insert(
        &mut self,
        key: impl Into<Vec<u8>>,
        value: impl Into<Vec<u8>>,
    ) -> Option<Vec<u8>> {
        self.0.insert(key.into(), value.into())
    }

    /// Removes a value and returns it.
    pub fn remove(&mut self, key: &str) -> Option<Vec<u8>> {
        self.0.remove(key.as_bytes())
    }

    /// Keys and values.
    pub fn iter(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        self.0
            .iter()
            .map(|(key, value)| (key.as_slice(), value.as_slice()))
    }

    /// Number of tags.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns true if there are no tags.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl<K: Into<Vec<u8>>, V: Into<Vec<u8>>> FromIterator<(K, V)> for Tags {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(tags: I) -> Self {
        let tags = tags.into_iter();
        Self(
            tags.map(|(key, value)| (key.into(), value.into()))
                .collect(),
        )
    }
}

impl<K: Into<Vec<u8>>, V: Into<Vec<u8>>, const N: usize> From<[(K, V); N]> for Tags {
    fn from(tags: [(K, V); N]) -> Self {
        tags.into_iter().collect()
    }
}

impl fmt::Debug for Tags {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lossy = self
            .iter()
            .map(|(key, value)| (String::from_utf8_lossy(key), String::from_utf8_lossy(value)));
        f.debug_map().entries(lossy).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_have_4_or_16_bytes() {
        let mapped = Ipv4Addr::new(10, 0, 0, 7).to_ipv6_mapped().octets();
        for (bytes, expected) in [
            (&[127, 0, 0, 1][..], Some("127.0.0.1")),
            (&mapped, Some("10.0.0.7")),
            (&Ipv6Addr::LOCALHOST.octets(), Some("::1")),
            (&[], None),
            (&[1, 2, 3, 4, 5], None),
        ] {
            let expected = expected.map(|text| text.parse().unwrap());
            assert_eq!(address_of(bytes), expected, "{bytes:?}");
        }
    }

    #[test]
    fn only_alive_is_alive() {
        for status in [
            "alive", "leaving", "left", "failed", "none", "", "ALIVE", "suspect",
        ] {
            let parsed = MemberStatus::parse(status);
            assert_eq!(parsed.is_alive(), status == "alive");
            assert_eq!(parsed.to_string(), status);
        }
    }

    #[test]
    fn tags_may_be_any_bytes() {
        let tags = Tags::from([(&b"region"[..], &[0xff, 0xfe][..]), (b"service", b"web")]);
        assert_eq!(tags.bytes("region"), Some(&[0xff, 0xfe][..]));
        assert_eq!(tags.text("region").unwrap(), "\u{fffd}\u{fffd}");
        assert_eq!(tags.text("service").unwrap(), "web");
        assert_eq!(tags.text("Service"), None);
        assert_eq!(
            format!("{tags:?}"),
            "{\"region\": \"\u{fffd}\u{fffd}\", \"service\": \"web\"}"
        );
    }
}
