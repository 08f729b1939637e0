//! The parameters of a call, and the headers of its response.

use std::sync::Arc;
use std::time::Duration;

use http::HeaderMap;
use http::header::AGE;

/// The server that responds, and the consistency of its response.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Consistency {
    /// The leader responds. It may lag behind briefly while another one is elected.
    #[default]
    Default,
    /// Any server responds, even without a leader. [`Meta::last_contact`] shows how far it may lag behind.
    Stale,
    /// The leader responds after it has confirmed that it is the leader.
    Consistent,
    /// The agent responds from its cache, and keeps the cached data while no server can be reached.
    Cached,
}

impl Consistency {
    pub(super) fn parameter(self) -> Option<&'static str> {
        match self {
            Self::Default => None,
            Self::Stale => Some("stale"),
            Self::Consistent => Some("consistent"),
            Self::Cached => Some("cached"),
        }
    }
}

/// The parameters of a blocking query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Blocking {
    /// The last known index. Above 0.
    pub(crate) index: u64,
    /// The time to wait for another one.
    pub(crate) wait: Duration,
}

/// The parameters of a reading call.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Query {
    /// The datacenter to query. `None` for the agent's own. Default: `None`.
    pub datacenter: Option<Arc<str>>,
    /// The server that responds.
    pub consistency: Consistency,
    /// An expression that the servers filter by. Old versions ignore it for lists of services.
    pub filter: Option<String>,
    pub(crate) blocking: Option<Blocking>,
}

impl Query {
    /// Creates a query of the agent's own datacenter, to the leader, without waiting.
    pub fn new() -> Self {
        Self::default()
    }

    /// Queries another datacenter, through the agent.
    #[must_use]
    pub fn in_datacenter(mut self, datacenter: impl Into<Arc<str>>) -> Self {
        self.datacenter = Some(datacenter.into());
        self
    }

    /// Sets the server that responds.
    #[must_use]
    pub fn with_consistency(mut self, consistency: Consistency) -> Self {
        self.consistency = consistency;
        self
    }

    /// Sets the expression that the servers filter by.
    #[must_use]
    pub fn with_filter(mut self, filter: impl Into<String>) -> Self {
        self.filter = Some(filter.into());
        self
    }

    /// Waits until there is something newer than `index`, up to `wait`. With an index of 0 it does not
    /// wait. The wait is limited to 10 minutes, as in servers.
    ///
    /// The choice of the index has pitfalls: use a [`Follower`](super::Follower) or a
    /// [`BlockingIndex`](super::BlockingIndex).
    #[must_use]
    pub fn blocking(mut self, index: u64, wait: Duration) -> Self {
        const LONGEST: Duration = Duration::from_secs(600);
        let wait = wait.clamp(Duration::from_millis(1), LONGEST);
        self.blocking = (index > 0).then_some(Blocking { index, wait });
        self
    }
}

/// The headers of a response.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Meta {
    /// The index to block on for newer data, from `X-Consul-Index`. `None` if the query cannot block.
    pub index: Option<u64>,
    /// True if the server knows a leader, from `X-Consul-KnownLeader`.
    pub known_leader: Option<bool>,
    /// The time since the responding server last had contact with its leader, from `X-Consul-LastContact`.
    pub last_contact: Option<Duration>,
    /// True if the token hides a part, from `X-Consul-Results-Filtered-By-ACLs`. `None` from old versions.
    pub is_filtered_by_acls: Option<bool>,
    /// The backend of the query, `streaming` or `blocking-query`, from `X-Consul-Query-Backend`. `None`
    /// from old versions.
    pub query_backend: Option<String>,
    /// True if the response came from the agent's cache, from `X-Cache`. Set only with [`Consistency::Cached`].
    pub is_cache_hit: Option<bool>,
    /// The age of a cached response, from `Age`.
    pub age: Option<Duration>,
}

impl Meta {
    pub(super) fn of(headers: &HeaderMap) -> Self {
        let text = |name: &str| headers.get(name)?.to_str().ok().map(str::trim);
        let number = |name: &str| text(name)?.parse::<u64>().ok();
        let boolean = |name: &str| text(name)?.parse::<bool>().ok();
        Self {
            index: number("x-consul-index"),
            known_leader: boolean("x-consul-knownleader"),
            last_contact: number("x-consul-lastcontact").map(Duration::from_millis),
            is_filtered_by_acls: boolean("x-consul-results-filtered-by-acls"),
            query_backend: text("x-consul-query-backend").map(str::to_owned),
            is_cache_hit: text("x-cache").map(|said| said.eq_ignore_ascii_case("hit")),
            age: number(AGE.as_str()).map(Duration::from_secs),
        }
    }
}

/// A response with its headers.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Answer<T> {
    /// The requested data.
    pub value: T,
    /// The headers of the response.
    pub meta: Meta,
}

impl<T> Answer<T> {
    pub(crate) fn new(value: T, meta: Meta) -> Self {
        Self { value, meta }
    }

    /// Replaces the value by the result of `make`; the metadata stay.
    pub(crate) fn map<U>(self, make: impl FnOnce(T) -> U) -> Answer<U> {
        Answer::new(make(self.value), self.meta)
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    #[test]
    fn headers_are_understood_and_nonsense_is_unset() {
        let mut headers = HeaderMap::new();
        for (name, value) in [
            ("x-consul-index", "42"),
            ("x-consul-knownleader", "true"),
            ("x-consul-lastcontact", "17"),
            ("x-cache", "HIT"),
            ("age", "3"),
            ("x-consul-query-backend", "streaming"),
            ("x-consul-results-filtered-by-acls", "yes"),
        ] {
            headers.insert(name, HeaderValue::from_static(value));
        }
        let meta = Meta {
            index: Some(42),
            known_leader: Some(true),
            last_contact: Some(Duration::from_millis(17)),
            is_filtered_by_acls: None,
            query_backend: Some("streaming".to_owned()),
            is_cache_hit: Some(true),
            age: Some(Duration::from_secs(3)),
        };
        assert_eq!(Meta::of(&headers), meta);
        headers.insert("x-consul-index", HeaderValue::from_static("-1"));
        assert_eq!(Meta::of(&headers).index, None);
    }

    #[test]
    fn index_0_waits_for_nothing() {
        let wait = Duration::from_secs(30);
        assert_eq!(Query::new().blocking(0, wait), Query::new());
        let blocking = Query::new().blocking(1, wait * 1000).blocking.unwrap();
        assert_eq!(blocking.wait, Duration::from_secs(600));
    }
}
