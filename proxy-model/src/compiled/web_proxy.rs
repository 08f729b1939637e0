//! Forward proxies between the program and destinations.

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

use super::destination::DestinationAddress;

/// A forward proxy between the program and the destinations of a cluster.
#[derive(Clone, PartialEq, Eq)]
pub struct WebProxy {
    pub(crate) host: Arc<str>,
    pub(crate) port: u16,
    pub(crate) credentials: Option<Arc<str>>,
    pub(crate) bypasses_local: bool,
    pub(crate) bypassed: Vec<BypassPattern>,
}

/// Hosts that are reached without a forward proxy: a text without its `*`, in lower case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct BypassPattern {
    pub(crate) text: String,
    /// True if any text may precede it.
    pub(crate) has_any_before: bool,
    /// True if any text may follow it.
    pub(crate) has_any_behind: bool,
}

impl WebProxy {
    /// Name or IP address of the forward proxy, without the brackets of IPv6.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// The port.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Returns user and password with a colon in between, if the forward proxy requires them.
    pub fn credentials(&self) -> Option<&str> {
        self.credentials.as_deref()
    }

    /// Returns true if the destination at this address is reached directly.
    pub fn bypasses(&self, address: &DestinationAddress) -> bool {
        let host = address.host();
        (self.bypasses_local && is_local(host))
            || self.bypassed.iter().any(|pattern| pattern.matches(host))
    }
}

impl BypassPattern {
    fn matches(&self, host: &str) -> bool {
        let host = host.to_ascii_lowercase();
        let text = self.text.as_str();
        match (self.has_any_before, self.has_any_behind) {
            (false, false) => host == text,
            (true, false) => host.ends_with(text),
            (false, true) => host.starts_with(text),
            (true, true) => host.contains(text),
        }
    }
}

/// Returns true for loopback addresses and names without a dot, as in .NET. Other addresses of the machine
/// do not count here.
fn is_local(host: &str) -> bool {
    match host.parse::<IpAddr>() {
        Ok(ip) => ip.to_canonical().is_loopback(),
        Err(_) => !host.contains('.'),
    }
}

/// Host and port.
impl fmt::Display for WebProxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.host.contains(':') {
            true => write!(f, "[{}]:{}", self.host, self.port),
            false => write!(f, "{}:{}", self.host, self.port),
        }
    }
}

/// The settings without the credentials.
impl fmt::Debug for WebProxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WebProxy")
            .field("address", &format_args!("{self}"))
            .field("has_credentials", &self.credentials.is_some())
            .field("bypasses_local", &self.bypasses_local)
            .field("bypassed", &self.bypassed)
            .finish()
    }
}
