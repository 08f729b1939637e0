//! The address of an agent.

use discovery_core::text::shortened;
use url::Url;

use super::builder::BuildError;

/// The address of an agent's HTTP API.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Address {
    /// The base URL, without a slash at the end: `http://127.0.0.1:8500`.
    base: String,
    is_secure: bool,
}

impl Address {
    /// Reads a URL or `host:port`.
    pub(super) fn parse(text: &str) -> Result<Self, BuildError> {
        let text = text.trim();
        let wrong = |reason| BuildError::Address {
            // All before an `@` may be a user with a password.
            address: shortened(text.rsplit('@').next().unwrap_or_default(), 200),
            reason,
        };
        if text.starts_with("unix:") {
            return Err(wrong("a Unix socket needs a transport of your own"));
        }
        let url = match text.contains("://") {
            true => Url::parse(text),
            false => Url::parse(&format!("http://{text}")),
        };
        let url = url.map_err(|_| wrong("expected `host:port`, or a URL"))?;
        let is_secure = match url.scheme() {
            "http" => false,
            "https" => true,
            _ => return Err(wrong("expected `http` or `https`")),
        };
        if url.host_str().is_none_or(str::is_empty) {
            return Err(wrong("there is no host"));
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(wrong("a user does not belong there; set a token"));
        }
        if url.query().is_some() || url.fragment().is_some() {
            return Err(wrong("it has more than a host, a port and a path"));
        }
        let base = url.as_str().trim_end_matches('/').to_owned();
        Ok(Self { base, is_secure })
    }

    pub(super) fn base(&self) -> &str {
        &self.base
    }

    #[cfg(feature = "reqwest")]
    pub(super) fn is_secure(&self) -> bool {
        self.is_secure
    }
}

/// Checks the address of an agent without connecting to it.
pub(crate) fn check_address(text: &str) -> Result<(), BuildError> {
    Address::parse(text).map(|_| ())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_and_bare_hosts_are_addresses() {
        for (text, base, is_secure) in [
            ("127.0.0.1:8500", "http://127.0.0.1:8500", false),
            ("http://consul.example/", "http://consul.example", false),
            ("https://[::1]:8501", "https://[::1]:8501", true),
            (
                "https://gate.example/consul/",
                "https://gate.example/consul",
                true,
            ),
        ] {
            let address = Address::parse(text).unwrap();
            assert_eq!((address.base(), address.is_secure), (base, is_secure));
        }
    }

    #[test]
    fn anything_else_is_rejected_without_its_password() {
        for text in [
            "",
            "ftp://a.example",
            "unix:///run/consul.sock",
            "http://user:secret@a.example",
            "http://a.example?token=secret",
        ] {
            let error = Address::parse(text).unwrap_err().to_string();
            assert!(!error.contains("user:secret"), "{error}");
        }
    }
}
