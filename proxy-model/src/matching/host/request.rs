//! The host that a request names.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::net::Ipv6Addr;

use super::{MAX_NAME, to_ascii};

/// The host and the port that a request names.
///
/// Made without allocating, unless the name is not ASCII or an IPv6 address in an unusual form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestHost<'a> {
    pub(super) name: Cow<'a, str>,
    port: Option<u16>,
}

impl<'a> RequestHost<'a> {
    /// Splits the authority of a request: `example.com:8443`.
    ///
    /// Without a port it is 443 if the request came over TLS, otherwise 80. A port that is not a number
    /// counts as no port, so that no pattern with a port matches.
    #[inline]
    pub fn parse(authority: &'a str, https: bool) -> Self {
        let mut bytes = authority.bytes();
        // Most are a plain name alone.
        if bytes.all(|b| b.is_ascii() && b != b'[' && b != b':') {
            return Self {
                name: Cow::Borrowed(authority),
                port: Some(default_port(https)),
            };
        }
        Self::parse_parts(authority, https)
    }

    fn parse_parts(authority: &'a str, https: bool) -> Self {
        let (name, port) = split(authority);
        let port = match port {
            None | Some("") => Some(default_port(https)),
            Some(port) if port.bytes().all(|b| b.is_ascii_digit()) => port.parse().ok(),
            Some(_) => None,
        };
        let mut bytes = name.bytes();
        let name = match bytes.all(|b| b.is_ascii() && b != b'[' && b != b':') {
            true => Cow::Borrowed(name),
            false => normalized(name),
        };
        Self { name, port }
    }

    /// The name in ASCII form and in the case in which it was sent, or the IPv6 address in brackets. Empty
    /// if the request named no host. A name without an ASCII form is as it was sent.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The port, named or by default.
    pub fn port(&self) -> Option<u16> {
        self.port
    }

    /// Returns true if wildcards may match: no label is empty, except possibly the last one.
    fn has_labels(&self) -> bool {
        let name = self.name.as_bytes();
        name.len() <= MAX_NAME
            && !matches!(name, [b'.' | b'[', ..])
            && !name.windows(2).any(|pair| pair == b"..")
    }

    /// Returns true if the name ends with `.` and `suffix`.
    pub(super) fn is_under(&self, suffix: &str) -> bool {
        let name = self.name.as_bytes();
        name.len() > suffix.len() + 1
            && name[name.len() - suffix.len() - 1] == b'.'
            && name[name.len() - suffix.len()..].eq_ignore_ascii_case(suffix.as_bytes())
            && self.has_labels()
    }

    /// Every suffix that a wildcard could have to match this name, the shortest first, with the number of its labels.
    pub(in crate::matching) fn suffixes(&self) -> impl Iterator<Item = (usize, &str)> {
        let name = if self.has_labels() { &*self.name } else { "" };
        name.rmatch_indices('.')
            .filter(|(dot, _)| *dot > 0)
            .enumerate()
            .map(|(dots, (dot, _))| (dots + 1, &name[dot + 1..]))
    }

    /// Returns true if the name is short enough to be in a pattern, and not empty.
    pub(in crate::matching) fn may_be_known(&self) -> bool {
        !self.name.is_empty() && self.name.len() <= MAX_NAME
    }
}

fn default_port(https: bool) -> u16 {
    if https { 443 } else { 80 }
}

/// The name and the port, if there is a colon before one.
fn split(authority: &str) -> (&str, Option<&str>) {
    if authority.starts_with('[') {
        return match authority.find(']') {
            Some(end) => {
                let (name, rest) = authority.split_at(end + 1);
                (name, rest.strip_prefix(':'))
            }
            None => (authority, None),
        };
    }
    match authority.split_once(':') {
        // An IPv6 address whose brackets are missing.
        Some((_, rest)) if rest.contains(':') => (authority, None),
        Some((name, port)) => (name, Some(port)),
        None => (authority, None),
    }
}

/// The usual form of an IPv6 address, or the ASCII form of a name.
fn normalized(name: &str) -> Cow<'_, str> {
    let address = match name.strip_prefix('[') {
        Some(rest) => rest.strip_suffix(']'),
        None => name.contains(':').then_some(name),
    };
    if let Some(address) = address {
        return match address.parse::<Ipv6Addr>() {
            Ok(address) if is_written(name, address) => Cow::Borrowed(name),
            Ok(address) => Cow::Owned(format!("[{address}]")),
            Err(_) => Cow::Borrowed(name),
        };
    }
    if name.is_ascii() || name.len() > 4 * MAX_NAME {
        return Cow::Borrowed(name);
    }
    to_ascii(name).map_or(Cow::Borrowed(name), Cow::Owned)
}

/// Returns true if `name` is the canonical form of an address in brackets, ignoring case.
fn is_written(name: &str, address: Ipv6Addr) -> bool {
    struct Compare<'a>(&'a str);
    impl std::fmt::Write for Compare<'_> {
        fn write_str(&mut self, text: &str) -> std::fmt::Result {
            match self.0.get(..text.len()) {
                Some(start) if start.eq_ignore_ascii_case(text) => {
                    self.0 = &self.0[text.len()..];
                    Ok(())
                }
                _ => Err(std::fmt::Error),
            }
        }
    }
    let mut compare = Compare(name);
    write!(compare, "[{address}]").is_ok() && compare.0.is_empty()
}
