//! The endpoints of a replica: the addresses on which it listens, and the usable ones among them.

use std::cmp::Ordering;

use proxy_model::nearest;
use serde_json::Value;
use thiserror::Error;
use url::Url;

/// Maximum length of a replica's address, in bytes. A property of the naming service is smaller, and
/// addresses travel the same way.
const MAX_ADDRESS: usize = 64 * 1024;

/// The longest URL of one endpoint, in bytes.
const MAX_URL: usize = 2048;

/// Maximum number of listeners of a replica.
const MAX_LISTENERS: usize = 256;

/// Maximum number of known names in an error. They are collected again for every listener that a replica
/// lacks.
const MAX_KNOWN: usize = 16;

/// Maximum number of names in a message.
const MAX_LISTED: usize = 4;

/// The allowed schemes of endpoints.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Schemes {
    /// `https`.
    #[default]
    Secure,
    /// `https` and `http`.
    All,
}

/// The endpoints that a replica publishes, by the name of their listener.
///
/// ```
/// use discovery_servicefabric::labels::{Endpoints, Schemes};
///
/// let address = r#"{"Endpoints":{"web":"https://10.0.0.1:443","admin":"http://10.0.0.1:8081/admin"}}"#;
/// let endpoints = Endpoints::parse(address)?;
/// let chosen = endpoints.choose(None, Schemes::Secure)?;
/// assert_eq!((chosen.listener, &*chosen.url), ("web", "https://10.0.0.1/"));
///
/// let rejected = endpoints.choose(Some("admin"), Schemes::Secure).unwrap_err();
/// assert!(rejected.to_string().contains("DiscoverInsecureHttpDestinations"));
/// # Ok::<(), discovery_servicefabric::labels::EndpointError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Endpoints {
    /// Names with addresses, in the ordinal order of .NET: by UTF-16 code units.
    listeners: Vec<(String, String)>,
}

/// An endpoint that can be used.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Endpoint<'a> {
    /// Name of its listener.
    pub listener: &'a str,
    /// The URL: normalised, without the default port of its scheme, with a path.
    pub url: String,
}

/// The reason why a replica has no usable endpoint.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum EndpointError {
    /// No address: the replica has not opened.
    #[error("it has not published an address yet")]
    NotOpen,
    /// An address that is too long.
    #[error("its address is longer than {MAX_ADDRESS} bytes")]
    TooLong,
    /// An address that begins like a list of endpoints, but cannot be read as one.
    #[error("its address is not a list of endpoints: {0}")]
    Unreadable(String),
    /// An empty list of endpoints.
    #[error("it has published no endpoints")]
    Empty,
    /// Too many endpoints.
    #[error("it has more than {MAX_LISTENERS} endpoints")]
    TooMany,
    /// No listener of the requested name.
    #[error("it has no listener `{listener}`, only {}", listed(known))]
    UnknownListener {
        /// The requested name.
        listener: String,
        /// Some of the existing listeners.
        known: Vec<String>,
    },
    /// No endpoint that was considered can be used.
    #[error("{}", reasons(.0))]
    Unusable(Vec<(String, Rejection)>),
}

/// The reason why an endpoint cannot be used. Addresses are not repeated: they may contain passwords, and
/// reasons are reported to others.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Rejection {
    /// An unencrypted endpoint, which is not allowed.
    #[error(
        "has the scheme `http`, which the option `DiscoverInsecureHttpDestinations` would allow"
    )]
    Insecure,
    /// A scheme other than `http` and `https`.
    #[error("has the scheme `{0}`, which is not spoken; no option allows it")]
    Scheme(String),
    /// An address that is not a URL.
    #[error("is not an absolute URL")]
    NotUrl,
    /// A URL that cannot be a destination.
    #[error("is a URL {0}")]
    Unsuitable(&'static str),
}

impl Endpoints {
    /// Reads the address of a replica: a JSON text with endpoints, or else the address of a listener without a name.
    ///
    /// # Errors
    ///
    /// Returns an error if the replica has not opened yet, or if its address is unreadable.
    pub fn parse(address: &str) -> Result<Self, EndpointError> {
        let address = address.trim();
        if address.is_empty() {
            return Err(EndpointError::NotOpen);
        }
        if address.len() > MAX_ADDRESS {
            return Err(EndpointError::TooLong);
        }
        if !address.starts_with('{') {
            return Ok(Self {
                listeners: vec![(String::new(), address.to_owned())],
            });
        }
        let document: Value = serde_json::from_str(address)
            .map_err(|error| EndpointError::Unreadable(error.to_string()))?;
        let Some(Value::Object(endpoints)) = document.get("Endpoints") else {
            let reason = "it has no object `Endpoints`".to_owned();
            return Err(EndpointError::Unreadable(reason));
        };
        if endpoints.is_empty() {
            return Err(EndpointError::Empty);
        }
        if endpoints.len() > MAX_LISTENERS {
            return Err(EndpointError::TooMany);
        }
        // A value that is not text is kept as an address that no URL has, so that the reason for its
        // rejection is reported.
        let mut listeners: Vec<(String, String)> = endpoints
            .iter()
            .map(|(name, value)| (name.clone(), value.as_str().unwrap_or_default().to_owned()))
            .collect();
        listeners.sort_by(|(a, _), (b, _)| ordinal(a, b));
        Ok(Self { listeners })
    }

    /// The names of the listeners, in ordinal order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.listeners.iter().map(|(name, _)| name.as_str())
    }

    /// The names of the listeners whose endpoints can be used.
    pub fn usable_names(&self, schemes: Schemes) -> impl Iterator<Item = &str> {
        let mut listeners = self.listeners.iter();
        std::iter::from_fn(move || {
            let (name, _) = listeners.find(|(_, address)| usable(address, schemes).is_ok())?;
            Some(name.as_str())
        })
    }

    /// The listener of this name, or nothing.
    fn called(&self, name: &str) -> &[(String, String)] {
        match self
            .listeners
            .binary_search_by(|(own, _)| ordinal(own, name))
        {
            Ok(position) => &self.listeners[position..=position],
            Err(_) => &[],
        }
    }

    /// Returns true if there is a listener of this name, usable or not.
    pub(super) fn has(&self, name: &str) -> bool {
        !self.called(name).is_empty()
    }

    /// Returns the endpoint of the listener with exactly that name. Without a name, it is the first usable
    /// one in ordinal order.
    ///
    /// # Errors
    ///
    /// Returns an error if no endpoint is usable, with the reason for each that was considered.
    pub fn choose(
        &self,
        listener: Option<&str>,
        schemes: Schemes,
    ) -> Result<Endpoint<'_>, EndpointError> {
        let mut rejected = Vec::new();
        let considered = match listener {
            None => self.listeners.as_slice(),
            Some(listener) => self.called(listener),
        };
        for (name, address) in considered {
            match usable(address, schemes) {
                Ok(url) => {
                    return Ok(Endpoint {
                        listener: name,
                        url,
                    });
                }
                Err(reason) => rejected.push((shortened(name), reason)),
            }
        }
        match listener {
            Some(listener) if rejected.is_empty() => Err(EndpointError::UnknownListener {
                listener: shortened(listener),
                known: self.names().take(MAX_KNOWN).map(shortened).collect(),
            }),
            _ => Err(EndpointError::Unusable(rejected)),
        }
    }
}

impl EndpointError {
    /// Returns the correction, if one is known.
    pub fn suggestion(&self) -> Option<String> {
        match self {
            Self::UnknownListener { listener, known } => {
                let near = nearest(listener, known.iter().map(String::as_str))?;
                Some(format!("did you mean `{near}`?"))
            }
            Self::Unusable(rejected) => rejected
                .iter()
                .any(|(_, reason)| *reason == Rejection::Insecure)
                .then(|| {
                    "listen with https, or set `DiscoverInsecureHttpDestinations` to `true`"
                        .to_owned()
                }),
            _ => None,
        }
    }
}

/// The ordinal order of .NET.
fn ordinal(a: &str, b: &str) -> Ordering {
    a.encode_utf16().cmp(b.encode_utf16())
}

/// The normalised form of an address that a destination may have.
fn usable(address: &str, schemes: Schemes) -> Result<String, Rejection> {
    let unsuitable = |reason| Err(Rejection::Unsuitable(reason));
    if address.len() > MAX_URL {
        return unsuitable("that is too long");
    }
    // The parser would drop or change these without a word.
    if address
        .chars()
        .any(|c| c.is_whitespace() || c.is_control() || c == '\\')
    {
        return Err(Rejection::NotUrl);
    }
    let url = Url::parse(address).map_err(|_| Rejection::NotUrl)?;
    match (url.scheme(), schemes) {
        ("https", _) | ("http", Schemes::All) => {}
        ("http", Schemes::Secure) => return Err(Rejection::Insecure),
        (scheme, _) => return Err(Rejection::Scheme(shortened(scheme))),
    }
    let rest = address.get(url.scheme().len()..).unwrap_or_default();
    let host = rest.strip_prefix("://").unwrap_or_default();
    if host.is_empty() || host.starts_with('/') || url.host_str().is_none_or(str::is_empty) {
        return Err(Rejection::NotUrl);
    }
    if matches!(url.host_str(), Some("+" | "*" | "0.0.0.0" | "[::]")) {
        return unsuitable(
            "of all addresses of its node; it has to be published with the address of the node",
        );
    }
    if !url.username().is_empty() || url.password().is_some() {
        return unsuitable("with a user name or password");
    }
    if url.query().is_some() || url.fragment().is_some() {
        return unsuitable("with a query or fragment, to which no path can be appended");
    }
    if url.port() == Some(0) {
        return unsuitable("with the port 0, where nothing listens");
    }
    let url = String::from(url);
    // What is not ASCII has become longer.
    if url.len() > MAX_URL {
        return unsuitable("that is too long");
    }
    // The parser lets characters into a host with which no request can be sent.
    if url.parse::<http::Uri>().is_err() {
        return Err(Rejection::NotUrl);
    }
    Ok(url)
}

/// Returns an untrusted name, shortened and escaped for a message.
pub(super) fn shortened(name: &str) -> String {
    const MOST: usize = 64;
    let mut text = String::new();
    for c in name.chars().take(MOST) {
        match c.is_control() {
            true => text.extend(c.escape_default()),
            false => text.push(c),
        }
    }
    if name.chars().nth(MOST).is_some() {
        text.push('…');
    }
    text
}

/// `a`, `b`, …
fn listed(names: &[String]) -> String {
    let mut text: Vec<String> = names
        .iter()
        .take(MAX_LISTED)
        .map(|name| format!("`{name}`"))
        .collect();
    if names.len() > MAX_LISTED {
        text.push("…".to_owned());
    }
    text.join(", ")
}

fn reasons(rejected: &[(String, Rejection)]) -> String {
    let mut text: Vec<String> = rejected
        .iter()
        .take(MAX_LISTED)
        .map(|(listener, reason)| format!("its listener `{listener}` {reason}"))
        .collect();
    if rejected.len() > MAX_LISTED {
        text.push(format!(
            "{} more cannot be used",
            rejected.len() - MAX_LISTED
        ));
    }
    text.join("; ")
}
