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
    /// The node's name, unique in the cluster. Bytes that are no UTF-8 are replaced.
    pub name: Arc<str>,
    /// Where the node gossips; an IPv4 address that came in the form of IPv6 is IPv4. `None`: the agent sent neither 4 nor
    /// 16 bytes.
    pub address: Option<IpAddr>,
    /// The port of the gossip, not of a service.
    pub port: u16,
    /// What the node says about itself.
    pub tags: Tags,
    /// How the node is doing, as far as the agent knows.
    pub status: MemberStatus,
}

impl Member {
    /// A member that is alive.
    pub fn new(name: impl Into<Arc<str>>, address: IpAddr, tags: Tags) -> Self {
        Self {
            name: name.into(),
            address: Some(address.to_canonical()),
            port: 7946,
            tags,
            status: MemberStatus::Alive,
        }
    }

    /// The same with another status.
    #[must_use]
    pub fn with_status(mut self, status: MemberStatus) -> Self {
        self.status = status;
        self
    }
}

/// The address in the bytes of an agent: 4 or 16 of them.
pub(crate) fn address_of(bytes: &[u8]) -> Option<IpAddr> {
    if let Ok(four) = <[u8; 4]>::try_from(bytes) {
        return Some(Ipv4Addr::from(four).into());
    }
    let sixteen = <[u8; 16]>::try_from(bytes).ok()?;
    Some(IpAddr::from(Ipv6Addr::from(sixteen)).to_canonical())
}

/// How a member is doing.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum MemberStatus {
    /// `alive`: it takes part.
    Alive,
    /// `leaving`: it has said that it leaves, and should get nothing new. About a second ahead of the event.
    Leaving,
    /// `left`: it has left by its own will.
    Left,
    /// `failed`: it does not answer.
    Failed,
    /// Anything else that an agent says, which is not alive: `none`, or what later versions may invent.
    Other(Arc<str>),
}

impl MemberStatus {
    /// The status in the agent's word, which is compared exactly.
    pub fn parse(status: &str) -> Self {
        match status {
            "alive" => Self::Alive,
            "leaving" => Self::Leaving,
            "left" => Self::Left,
            "failed" => Self::Failed,
            other => Self::Other(other.into()),
        }
    }

    /// The agent's word for it.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Alive => "alive",
            Self::Leaving => "leaving",
            Self::Left => "left",
            Self::Failed => "failed",
            Self::Other(other) => other,
        }
    }

    /// Whether it may get requests.
    pub fn is_alive(&self) -> bool {
        *self == Self::Alive
    }
}

impl fmt::Display for MemberStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What a node says about itself: values by key, both any bytes, in the order of the keys.
///
/// Anybody in the gossip may set them, and a value that is no UTF-8 travels like any other.
#[derive(Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tags(BTreeMap<Vec<u8>, Vec<u8>>);

impl Tags {
    /// No tags.
    pub fn new() -> Self {
        Self::default()
    }

    /// The bytes of a value.
    pub fn bytes(&self, key: &str) -> Option<&[u8]> {
        self.0.get(key.as_bytes()).map(Vec::as_slice)
    }

    /// A value, with bytes that are no UTF-8 replaced.
    pub fn text(&self, key: &str) -> Option<Cow<'_, str>> {
        self.bytes(key).map(String::from_utf8_lossy)
    }

    /// Sets a value; returns the one that was there.
    pub fn insert(
        &mut self,
        key: impl Into<Vec<u8>>,
        value: impl Into<Vec<u8>>,
    ) -> Option<Vec<u8>> {
        self.0.insert(key.into(), value.into())
    }

    /// Takes a value out.
    pub fn remove(&mut self, key: &str) -> Option<Vec<u8>> {
        self.0.remove(key.as_bytes())
    }

    /// Keys and values.
    pub fn iter(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        self.0
            .iter()
            .map(|(key, value)| (key.as_slice(), value.as_slice()))
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are none.
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
