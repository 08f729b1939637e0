//! Hosts: the patterns of routes and the hosts of requests.

mod error;
mod request;
#[cfg(test)]
mod tests;

use std::cmp::Reverse;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::net::Ipv6Addr;
use std::str::FromStr;

use idna::AsciiDenyList;
use idna::uts46::{DnsLength, Hyphens, Uts46};

pub use self::error::HostError;
pub use self::request::RequestHost;

/// The longest name that DNS knows is 253 bytes long; this leaves room for a `.` at the end.
const MAX_NAME: usize = 255;

/// Maximum length of a pattern. A character of a name takes at most 4 bytes in Unicode, and at least one in
/// ASCII form, unless IDNA ignores it.
const MAX_TEXT: usize = 4 * MAX_NAME;

/// A pattern for the host and port that a request names.
///
/// | pattern | matches |
/// |---|---|
/// | `example.com` | that name, ignoring case, on any port |
/// | `example.com:8443` | that name on that port |
/// | `*.example.com` | any name that ends with `.example.com`, whatever the number of labels, but not `example.com` |
/// | `[::1]`, `[::1]:8080` | that IPv6 address, however it is written |
/// | `*:8080` | any name on that port |
/// | `*` | everything |
///
/// A request that names no port has the port 443 with TLS and 80 without.
///
/// Names beyond ASCII are written in Unicode (`bücher.example`) or in ASCII form (`xn--bcher-kva.example`, punycode).
/// Both are the same pattern, and equal.
#[derive(Clone, Debug)]
pub struct HostPattern {
    text: Box<str>,
    name: Name,
    port: Option<u16>,
}

impl PartialEq for HostPattern {
    fn eq(&self, other: &Self) -> bool {
        (&self.name, self.port) == (&other.name, other.port)
    }
}

impl Eq for HostPattern {}

impl Hash for HostPattern {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (&self.name, self.port).hash(state);
    }
}

/// Lower case, in ASCII form.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Name {
    Exact(Box<str>),
    /// The text behind `*.`.
    Suffix(Box<str>),
    Any,
}

/// The specificity of a host pattern; smaller ranks are tried first.
///
/// The order is: a name with a port, a name, a wildcard with a port, a wildcard, any name on a port,
/// anything, no pattern at all. Of two wildcards, the longer one is smaller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HostRank {
    class: HostClass,
    suffix: Reverse<usize>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum HostClass {
    NameAndPort,
    Name,
    WildcardAndPort,
    Wildcard,
    Port,
    Any,
    NoPattern,
}

impl HostRank {
    /// The rank of a route that has no pattern.
    pub const NO_PATTERN: Self = Self {
        class: HostClass::NoPattern,
        suffix: Reverse(0),
    };
}

impl HostPattern {
    /// Parses a pattern.
    ///
    /// # Errors
    ///
    /// Returns the problem and, if it can be guessed, the correction.
    pub fn parse(text: &str) -> Result<Self, HostError> {
        if text.is_empty() {
            return Err(HostError::Empty);
        }
        if text.len() > MAX_TEXT + ":65535".len() {
            return Err(HostError::TooLong);
        }
        if text.contains("://") {
            return Err(HostError::Url { text: text.into() });
        }
        let (name, port) = split_port(text)?;
        Ok(Self {
            text: text.into(),
            name: parse_name(name)?,
            port,
        })
    }

    /// The pattern as it was written.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The port that a request must have.
    pub fn port(&self) -> Option<u16> {
        self.port
    }

    /// The specificity of the pattern.
    pub fn rank(&self) -> HostRank {
        let (class, suffix) = match (&self.name, self.port) {
            (Name::Exact(_), Some(_)) => (HostClass::NameAndPort, 0),
            (Name::Exact(_), None) => (HostClass::Name, 0),
            (Name::Suffix(suffix), Some(_)) => (HostClass::WildcardAndPort, suffix.len()),
            (Name::Suffix(suffix), None) => (HostClass::Wildcard, suffix.len()),
            (Name::Any, Some(_)) => (HostClass::Port, 0),
            (Name::Any, None) => (HostClass::Any, 0),
        };
        HostRank {
            class,
            suffix: Reverse(suffix),
        }
    }

    /// Returns true if a request's host matches.
    pub fn matches(&self, host: &RequestHost<'_>) -> bool {
        (self.port.is_none() || self.port == host.port())
            && match &self.name {
                Name::Exact(name) => host.name().eq_ignore_ascii_case(name),
                Name::Suffix(suffix) => host.is_under(suffix),
                Name::Any => true,
            }
    }

    pub(super) fn name(&self) -> &Name {
        &self.name
    }

    /// The pattern in ASCII form and lower case, with an IPv6 address in its shortest form and without
    /// `:*`. Patterns that match the same hosts have the same form.
    pub fn to_ascii(&self) -> String {
        self.signature()
    }

    /// Like [`to_ascii`](Self::to_ascii), but with names in Unicode.
    pub fn to_unicode(&self) -> String {
        let ascii = self.signature();
        if !ascii.contains("xn--") {
            return ascii;
        }
        match ascii.split_once(':') {
            Some((name, port)) => format!("{}:{port}", idna::domain_to_unicode(name).0),
            None => idna::domain_to_unicode(&ascii).0,
        }
    }

    /// Text that is the same for patterns that the same hosts match.
    pub(crate) fn signature(&self) -> String {
        let port = self
            .port
            .map_or_else(String::new, |port| format!(":{port}"));
        self.signature_of_name() + &port
    }

    /// The signature without the port.
    pub(crate) fn signature_of_name(&self) -> String {
        match &self.name {
            Name::Exact(name) => name.to_string(),
            Name::Suffix(suffix) => format!("*.{suffix}"),
            Name::Any => "*".to_owned(),
        }
    }
}

/// Converts the host of a request, perhaps with a port: a name in Unicode becomes its ASCII form (`xn--…`).
/// `None` if it is not a name.
pub fn host_to_ascii(text: &str) -> Option<String> {
    if text.is_ascii() {
        return Some(text.to_owned());
    }
    let (name, port) = match text.rsplit_once(':') {
        Some((name, port)) => (name, Some(port)),
        None => (text, None),
    };
    let name = idna::domain_to_ascii(name).ok()?;
    Some(match port {
        Some(port) => format!("{name}:{port}"),
        None => name,
    })
}

/// Takes the port off, which may also be `*`.
fn split_port(text: &str) -> Result<(&str, Option<u16>), HostError> {
    let colon = match text.strip_prefix('[') {
        Some(_) => match text.find(']') {
            Some(end) if end + 1 == text.len() => None,
            Some(end) if text[end + 1..].starts_with(':') => Some(end + 1),
            _ => return Err(HostError::Ipv6 { text: text.into() }),
        },
        None if text.matches(':').count() > 1 => {
            return Err(HostError::Ipv6 { text: text.into() });
        }
        None => text.find(':'),
    };
    let Some(colon) = colon else {
        return Ok((text, None));
    };
    let (name, port) = (&text[..colon], &text[colon + 1..]);
    if port == "*" {
        return Ok((name, None));
    }
    let is_number = !port.is_empty() && port.bytes().all(|b| b.is_ascii_digit());
    match port.parse() {
        Ok(number) if is_number && number != 0 => Ok((name, Some(number))),
        _ => Err(HostError::Port {
            name: name.into(),
            port: port.into(),
        }),
    }
}

fn parse_name(text: &str) -> Result<Name, HostError> {
    if text == "*" {
        return Ok(Name::Any);
    }
    if let Some(address) = text.strip_prefix('[') {
        let address: Option<Ipv6Addr> =
            (address.strip_suffix(']')).and_then(|address| address.parse().ok());
        return match address {
            Some(address) => Ok(Name::Exact(format!("[{address}]").into())),
            None => Err(HostError::Ipv6 { text: text.into() }),
        };
    }
    if text.is_empty() {
        return Err(HostError::NoName);
    }
    match text.strip_prefix("*.") {
        Some(suffix) => Ok(Name::Suffix(parse_labels(suffix, text)?)),
        None => Ok(Name::Exact(parse_labels(text, text)?)),
    }
}

/// Checks `labels`, which are `text` or what follows its `*.`, and brings them into ASCII form.
fn parse_labels(labels: &str, text: &str) -> Result<Box<str>, HostError> {
    if labels.contains('*') {
        return Err(HostError::Wildcard { text: text.into() });
    }
    if let Some(character) = labels.chars().find(|c| is_forbidden(*c)) {
        return Err(HostError::Character {
            text: text.into(),
            character,
        });
    }
    let ascii = to_ascii(labels).filter(|ascii| is_ascii_form(ascii));
    let ascii = ascii.ok_or_else(|| HostError::Idna { text: text.into() })?;
    // One `.` may stand at the end, as it does in names that DNS calls absolute.
    let absolute = ascii.strip_suffix('.').unwrap_or(&ascii);
    if absolute.split('.').any(str::is_empty) {
        return Err(HostError::EmptyLabel { text: text.into() });
    }
    if ascii.len() > MAX_NAME {
        return Err(HostError::TooLong);
    }
    Ok(ascii.into())
}

/// Returns true if each label in punycode is the ASCII form of a name. Another one (`xn--a`) is a mistake: no client
/// sends it for any name.
fn is_ascii_form(ascii: &str) -> bool {
    if !ascii.contains("xn--") {
        return true;
    }
    let (unicode, decoded) = idna::domain_to_unicode(ascii);
    decoded.is_ok() && to_ascii(&unicode).as_deref() == Some(ascii)
}

/// Returns true if a host cannot contain the character (RFC 3986 section 3.2.2), because it ends a host or
/// is not printable.
fn is_forbidden(c: char) -> bool {
    c.is_ascii_control() || c.is_whitespace() || "\"#%/:<>?@[\\]^`{|}".contains(c)
}

/// The lower-case ASCII form of a name (UTS 46), if it has one.
fn to_ascii(name: &str) -> Option<String> {
    if name.is_ascii() {
        return Some(name.to_ascii_lowercase());
    }
    Uts46::new()
        .to_ascii(
            name.as_bytes(),
            AsciiDenyList::URL,
            Hyphens::Allow,
            DnsLength::Ignore,
        )
        .ok()
        .map(|name| name.to_ascii_lowercase())
}

impl FromStr for HostPattern {
    type Err = HostError;

    fn from_str(text: &str) -> Result<Self, HostError> {
        Self::parse(text)
    }
}

impl fmt::Display for HostPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}
