//! Compiled session affinity.

use std::sync::Arc;
use std::time::Duration;

/// Keeps the requests of one client at one destination.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionAffinity {
    pub(crate) key: AffinityKey,
    pub(crate) failure: AffinityFailure,
    pub(crate) key_name: Arc<str>,
    pub(crate) cookie: AffinityCookie,
    pub(crate) drain: Option<Duration>,
}

impl SessionAffinity {
    /// The policy that reads and writes the key.
    pub fn key(&self) -> &AffinityKey {
        &self.key
    }

    /// The policy for a key without an available destination.
    pub fn failure(&self) -> &AffinityFailure {
        &self.failure
    }

    /// The name of the cookie or header that carries the key.
    pub fn key_name(&self) -> &str {
        &self.key_name
    }

    /// The attributes of the cookie.
    pub fn cookie(&self) -> &AffinityCookie {
        &self.cookie
    }

    /// The time for which a destination whose weight has become 0 keeps its clients. `None`: without end.
    pub fn drain(&self) -> Option<Duration> {
        self.drain
    }
}

/// A policy that reads the key of a request, and gives clients without one a key.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub enum AffinityKey {
    /// A cookie with the XXH64 of the destination's id.
    #[default]
    HashCookie,
    /// A cookie with the SHA-256 of the destination's id, as Application Request Routing has it.
    ArrCookie,
    /// A cookie with the destination's id, encrypted.
    Cookie,
    /// A header with the destination's id, encrypted.
    CustomHeader,
    /// A policy that the program registered, by its name.
    Custom(Arc<str>),
}

impl AffinityKey {
    /// The name in the configuration.
    pub fn name(&self) -> &str {
        match self {
            Self::HashCookie => "HashCookie",
            Self::ArrCookie => "ArrCookie",
            Self::Cookie => "Cookie",
            Self::CustomHeader => "CustomHeader",
            Self::Custom(name) => name,
        }
    }

    /// Returns true if the key is encrypted with keys of the proxy.
    pub fn is_sealed(&self) -> bool {
        matches!(self, Self::Cookie | Self::CustomHeader)
    }
}

/// A policy for requests whose key is unreadable, or names no available destination.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub enum AffinityFailure {
    /// The request goes to any destination, for which the client gets a new key.
    #[default]
    Redistribute,
    /// The response is 503.
    Return503Error,
    /// A policy that the program registered, by its name.
    Custom(Arc<str>),
}

impl AffinityFailure {
    /// The name in the configuration.
    pub fn name(&self) -> &str {
        match self {
            Self::Redistribute => "Redistribute",
            Self::Return503Error => "Return503Error",
            Self::Custom(name) => name,
        }
    }
}

/// The attributes of a cookie with an affinity key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AffinityCookie {
    pub(crate) path: Arc<str>,
    pub(crate) domain: Option<Arc<str>>,
    pub(crate) http_only: bool,
    pub(crate) secure: CookieSecure,
    pub(crate) same_site: CookieSameSite,
    pub(crate) expiration: Option<Duration>,
    pub(crate) max_age: Option<Duration>,
}

impl Default for AffinityCookie {
    fn default() -> Self {
        Self {
            path: Arc::from("/"),
            domain: None,
            http_only: true,
            secure: CookieSecure::default(),
            same_site: CookieSameSite::default(),
            expiration: None,
            max_age: None,
        }
    }
}

impl AffinityCookie {
    /// The attribute `Path`.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// The attribute `Domain`.
    pub fn domain(&self) -> Option<&str> {
        self.domain.as_deref()
    }

    /// Returns true if scripts may not read the cookie.
    pub fn is_http_only(&self) -> bool {
        self.http_only
    }

    /// Returns true if the cookie may be sent over TLS alone, when it is given over TLS or not.
    pub fn is_secure(&self, is_https: bool) -> bool {
        match self.secure {
            CookieSecure::None => false,
            CookieSecure::Always => true,
            CookieSecure::SameAsRequest => is_https,
        }
    }

    /// The attribute `SameSite`.
    pub fn same_site(&self) -> CookieSameSite {
        self.same_site
    }

    /// The time until `Expires`.
    pub fn expiration(&self) -> Option<Duration> {
        self.expiration
    }

    /// The attribute `Max-Age`.
    pub fn max_age(&self) -> Option<Duration> {
        self.max_age
    }
}

/// The use of a cookie's attribute `Secure`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) enum CookieSecure {
    #[default]
    None,
    Always,
    SameAsRequest,
}

/// A cookie's attribute `SameSite`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum CookieSameSite {
    /// The attribute is left out.
    #[default]
    Unspecified,
    /// The cookie is sent with all requests.
    None,
    /// The cookie is sent with requests of the same site, and when another site links to it.
    Lax,
    /// The cookie is sent with requests of the same site.
    Strict,
}
