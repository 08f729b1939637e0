//! Destinations' URLs and `Host` headers.

use http::HeaderValue;
use http::uri::Authority;
use url::{Host, Url};

use super::Scope;
use crate::compiled::{DestinationAddress, Scheme};
use crate::matching::host_to_ascii;
use crate::suggest::shortened;

/// Parses the URL at `key`, or reports its problems.
pub(super) fn parse(text: &str, key: &str, scope: &mut Scope<'_>) -> Option<DestinationAddress> {
    match address(text) {
        Ok(address) => Some(address),
        Err(Fault {
            message,
            mut suggestion,
        }) => {
            if text.contains("${") || text.starts_with(['$', '%']) || text.contains("{{") {
                suggestion = Some(by_variable(&scope.place(key)));
            }
            match suggestion {
                Some(suggestion) => scope.error_with(key, "invalid_address", message, suggestion),
                None => scope.error(key, "invalid_address", message),
            }
            None
        }
    }
}

/// The correction for a variable in a value.
fn by_variable(pointer: &str) -> String {
    let path = pointer
        .find("/Clusters/")
        .map_or(pointer, |at| &pointer[at..]);
    let name = shortened(&path.replace('/', "__"));
    format!("values have no variables; set the whole value with the variable `ReverseProxy{name}`")
}

struct Fault {
    message: String,
    suggestion: Option<String>,
}

impl Fault {
    fn new(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            suggestion: None,
        }
    }
}

fn address(text: &str) -> Result<DestinationAddress, Fault> {
    let scheme = scheme(text)?;
    // The parser of the WHATWG drops these without a word.
    if text.chars().any(|c| c.is_whitespace() || c.is_control()) {
        return Err(Fault::new(
            "a URL may hold neither white space nor control characters",
        ));
    }
    // It also takes `\` for `/`, and any number of them before the host.
    let after_scheme = text.split_once("://").map_or("", |(_, rest)| rest);
    if text.contains('\\') || after_scheme.starts_with('/') {
        return Err(Fault::new("the URL's host does not follow `://`"));
    }
    let url = Url::parse(text).map_err(|error| Fault::new(format!("not a URL: {error}")))?;
    if !url.username().is_empty() || url.password().is_some() {
        // It is not repeated here, since problems are logged.
        return Err(Fault::new(
            "a destination's URL may not hold a user name or password",
        ));
    }
    for (part, name) in [(url.query(), "query"), (url.fragment(), "fragment")] {
        if part.is_some() {
            return Err(Fault::new(format!(
                "a destination's URL may not have a {name}: paths are appended to it"
            )));
        }
    }
    let (host, is_v6) = match url.host() {
        Some(Host::Domain(name)) if !name.is_empty() => (name.to_owned(), false),
        Some(Host::Ipv4(ip)) => (ip.to_string(), false),
        Some(Host::Ipv6(ip)) => (ip.to_string(), true),
        Some(Host::Domain(_)) | None => return Err(Fault::new("the URL has no host")),
    };
    let port = url.port().unwrap_or_else(|| scheme.default_port());
    if port == 0 {
        return Err(Fault::new("nothing listens at port 0"));
    }
    let mut authority = if is_v6 {
        format!("[{host}]")
    } else {
        host.clone()
    };
    if port != scheme.default_port() {
        authority.push(':');
        authority.push_str(&port.to_string());
    }
    // The parser of the WHATWG lets quotes and braces into a host, with which no request can be made.
    let authority = Some(authority)
        .filter(|authority| authority.parse::<Authority>().is_ok())
        .and_then(|authority| HeaderValue::try_from(authority).ok())
        .ok_or_else(|| Fault::new("the URL's host has characters that no host has"))?;
    Ok(DestinationAddress {
        scheme,
        server_name: host.as_str().into(),
        host: host.into(),
        port,
        authority,
        path: url.path().into(),
    })
}

fn scheme(text: &str) -> Result<Scheme, Fault> {
    let has = |prefix: &str| {
        text.get(..prefix.len())
            .is_some_and(|start| start.eq_ignore_ascii_case(prefix))
    };
    if has("http://") {
        return Ok(Scheme::Http);
    }
    if has("https://") {
        return Ok(Scheme::Https);
    }
    let shown = shortened(text);
    let mut fault = Fault::new(format!(
        "`{shown}` does not begin with `http://` or `https://`"
    ));
    if text.contains('@') {
        // Perhaps a password.
        fault.message = "the URL does not begin with `http://` or `https://`".to_owned();
    } else if let Some(rest) = without_slashes(text, "http:") {
        fault.suggestion = Some(format!("write `http://{}`", shortened(rest)));
    } else if let Some(rest) = without_slashes(text, "https:") {
        fault.suggestion = Some(format!("write `https://{}`", shortened(rest)));
    } else if !text.contains(":/") && !text.starts_with('/') && !text.ends_with(':') {
        fault.suggestion = Some(format!("write `http://{shown}`"));
    }
    Err(fault)
}

/// Returns the text behind a scheme that lacks some of its slashes. `None` if the rest is empty or a port,
/// since `http` can be a host.
fn without_slashes<'t>(text: &'t str, scheme: &str) -> Option<&'t str> {
    let start = text.get(..scheme.len())?;
    let rest = text.get(scheme.len()..)?.trim_start_matches('/');
    let is_port = rest.starts_with(|c: char| c.is_ascii_digit()) && !rest.contains('.');
    (start.eq_ignore_ascii_case(scheme) && !rest.is_empty() && !is_port).then_some(rest)
}

/// Checks a value for the header `Host`: a name or IP address, with an optional port. Unicode becomes Punycode.
pub(super) fn host_header(text: &str, key: &str, scope: &mut Scope<'_>) -> Option<HeaderValue> {
    let value = host_value(text);
    if value.is_none() {
        scope.error_with(
            key,
            "invalid_host",
            format!("`{}` is not a host with or without a port", shortened(text)),
            "write `name`, `name:port` or `[IPv6]:port`",
        );
    }
    value
}

fn host_value(text: &str) -> Option<HeaderValue> {
    let ascii = host_to_ascii(text)?;
    let authority: Authority = ascii.parse().ok()?;
    let port = ascii.strip_prefix(authority.host())?;
    let port_is_valid = match port.strip_prefix(':') {
        Some(digits) => digits.parse::<u16>().is_ok() && !digits.starts_with('+'),
        None => port.is_empty(),
    };
    if authority.host().is_empty() || ascii.contains('@') || !port_is_valid {
        return None;
    }
    HeaderValue::try_from(ascii).ok()
}
