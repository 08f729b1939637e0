//! Addresses of agents.

use std::net::{Ipv6Addr, SocketAddrV6};

/// Default port of an agent's RPC.
pub const DEFAULT_PORT: u16 = 7373;

/// The longest name of a host (RFC 1035 section 2.3.4).
const LONGEST_NAME: usize = 253;

/// The reason why a text is not the address of an agent.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct AddressError {
    message: String,
    suggestion: String,
}

impl AddressError {
    fn new(message: impl Into<String>, suggestion: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            suggestion: suggestion.into(),
        }
    }

    /// The correction.
    pub fn suggestion(&self) -> &str {
        &self.suggestion
    }
}

/// Returns the address of an agent's RPC as `host:port`. An address of IPv6 is in brackets. Default port:
/// 7373.
///
/// # Errors
///
/// Returns an error if the text is not an address.
///
/// ```
/// use discovery_serf::options::agent_address;
///
/// assert_eq!(agent_address("serf.internal").unwrap(), "serf.internal:7373");
/// assert_eq!(agent_address("[::1]:17373").unwrap(), "[::1]:17373");
/// assert_eq!(agent_address("::1").unwrap_err().suggestion(), "write `[::1]:7373`");
/// ```
pub fn agent_address(text: &str) -> Result<String, AddressError> {
    let text = text.trim();
    if let Some((scheme, rest)) = text.split_once("://") {
        let message = format!("agents are reached over plain TCP, not by `{scheme}`");
        let host = rest.trim_end_matches('/');
        return Err(AddressError::new(message, format!("write `{host}`")));
    }
    if text.parse::<Ipv6Addr>().is_ok() {
        let message = format!("`{text}` is an address of IPv6 without brackets");
        let suggestion = format!("write `[{text}]:{DEFAULT_PORT}`");
        return Err(AddressError::new(message, suggestion));
    }
    let (host, port) = match text.strip_prefix('[') {
        Some(rest) => bracketed(rest).ok_or_else(|| neither(text))?,
        None => named(text).ok_or_else(|| neither(text))?,
    };
    let Some(port) = port else {
        return Ok(format!("{host}:{DEFAULT_PORT}"));
    };
    let digits = !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit());
    match port.parse::<u16>() {
        Ok(number) if digits && number > 0 => Ok(format!("{host}:{number}")),
        _ => {
            let message = format!("`{port}` is no port");
            let suggestion = format!("write `{host}:{DEFAULT_PORT}`");
            Err(AddressError::new(message, suggestion))
        }
    }
}

fn neither(text: &str) -> AddressError {
    let message = format!("`{text}` is not the address of an agent");
    AddressError::new(message, "write `host:7373` or `[::1]:7373`")
}

/// Host with brackets and port of what follows a first bracket.
fn bracketed(rest: &str) -> Option<(String, Option<&str>)> {
    let (inner, port) = rest.split_once(']')?;
    // With a scope: `fe80::1%2`.
    format!("[{inner}]:1").parse::<SocketAddrV6>().ok()?;
    let port = match port {
        "" => None,
        port => Some(port.strip_prefix(':')?),
    };
    Some((format!("[{inner}]"), port))
}

fn named(text: &str) -> Option<(String, Option<&str>)> {
    let (host, port) = match text.split_once(':') {
        Some((host, port)) => (host, Some(port)),
        None => (text, None),
    };
    let plain = |c: char| c.is_alphanumeric() || matches!(c, '.' | '-' | '_');
    let is_name = !host.is_empty() && host.len() <= LONGEST_NAME && host.chars().all(plain);
    is_name.then(|| (host.to_owned(), port))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_have_a_host_and_a_port() {
        for (text, expected) in [
            ("127.0.0.1:17373", "127.0.0.1:17373"),
            ("localhost", "localhost:7373"),
            (" serf_1.internal:7373 ", "serf_1.internal:7373"),
            ("[::1]", "[::1]:7373"),
            ("[fe80::1%2]:1", "[fe80::1%2]:1"),
            ("host:07373", "host:7373"),
        ] {
            assert_eq!(agent_address(text).as_deref(), Ok(expected), "{text}");
        }
    }

    #[test]
    fn what_is_no_address_says_what_to_write() {
        for (text, suggestion) in [
            ("", "write `host:7373` or `[::1]:7373`"),
            (":7373", "write `host:7373` or `[::1]:7373`"),
            ("a b:7373", "write `host:7373` or `[::1]:7373`"),
            ("a/b", "write `host:7373` or `[::1]:7373`"),
            ("[::1", "write `host:7373` or `[::1]:7373`"),
            ("[localhost]:1", "write `host:7373` or `[::1]:7373`"),
            ("[::1]7373", "write `host:7373` or `[::1]:7373`"),
            ("fd00::2", "write `[fd00::2]:7373`"),
            ("host:0", "write `host:7373`"),
            ("host:65536", "write `host:7373`"),
            ("host:+80", "write `host:7373`"),
            ("host:80:90", "write `host:7373`"),
            ("host:", "write `host:7373`"),
            ("http://host:7373/", "write `host:7373`"),
        ] {
            let error = agent_address(text).unwrap_err();
            assert_eq!(error.suggestion(), suggestion, "{text}: {error}");
        }
        let long = "a".repeat(254);
        assert!(agent_address(&long).is_err());
    }
}
