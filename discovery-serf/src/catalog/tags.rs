//! The values of tags: one function for each tag.
//!
//! White space around a value is ignored, and a value without other characters counts as absent, except for
//! the port. The same functions check the members that an agent lists and the tags of a new registration.

use std::borrow::Cow;
use std::fmt;

use discovery_core::text::without_root;
use proxy_model::matching::{HostPattern, PathTemplate};
use thiserror::Error;

use super::shown::{is_hidden, shown};

/// The service's name. A node without it belongs to no service.
pub(crate) const SERVICE: &str = "service";
/// The port that the service listens at. Required.
pub(crate) const HTTP_PORT: &str = "http-port";
/// `http` or `https`.
pub(crate) const SCHEME: &str = "scheme";
/// The host that requests for the service name.
pub(crate) const HOST: &str = "host";
/// The paths of requests for the service.
pub(crate) const ROUTE_PATH: &str = "route-path";
/// The path of health probes.
pub(crate) const HEALTH_PATH: &str = "health-path";
/// The share of requests.
pub(crate) const WEIGHT: &str = "weight";
/// The version that is running.
pub(crate) const VERSION: &str = "version";
/// The region in which it is running.
pub(crate) const REGION: &str = "region";
/// A stable name for the destination.
pub(crate) const INSTANCE: &str = "instance";

/// Maximum length of a value, in bytes. All tags of a node together are shorter in the gossip.
pub(crate) const MAX_VALUE: usize = 512;

/// The largest weight.
pub(crate) const MAX_WEIGHT: u32 = 1_000;

/// The weight of an instance that names none.
pub(crate) const DEFAULT_WEIGHT: u32 = 1;

/// The reason why the value of a tag cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("`{tag}` is `{value}`: {reason}")]
pub struct TagError {
    tag: &'static str,
    /// Fit for a message.
    value: String,
    reason: String,
    suggestion: Option<String>,
}

impl TagError {
    fn new(tag: &'static str, value: &[u8], reason: impl Into<String>) -> Self {
        Self {
            tag,
            value: shown(value),
            reason: reason.into(),
            suggestion: None,
        }
    }

    fn with_suggestion(mut self, suggestion: Option<String>) -> Self {
        self.suggestion = suggestion;
        self
    }

    /// The tag's key.
    pub fn tag(&self) -> &'static str {
        self.tag
    }

    /// The beginning of the value, with what cannot be shown as escapes.
    pub fn value(&self) -> &str {
        &self.value
    }

    /// The problem and the expected value.
    pub fn reason(&self) -> &str {
        &self.reason
    }

    /// The correction, if one is known.
    pub fn suggestion(&self) -> Option<&str> {
        self.suggestion.as_deref()
    }

    /// The problem's code.
    pub(super) fn code(&self) -> &'static str {
        match self.tag {
            SERVICE => "invalid_service",
            HTTP_PORT => "invalid_http_port",
            SCHEME => "invalid_scheme",
            HOST => "invalid_host",
            ROUTE_PATH => "invalid_route_path",
            HEALTH_PATH => "invalid_health_path",
            WEIGHT => "invalid_weight",
            INSTANCE => "invalid_instance",
            _ => "invalid_tag",
        }
    }
}

/// The scheme of an instance's URL.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Scheme {
    /// Unencrypted.
    #[default]
    Http,
    /// Over TLS.
    Https,
}

impl Scheme {
    /// The scheme in a URL.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Https => "https",
        }
    }
}

impl fmt::Display for Scheme {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Returns true if a value consists only of white space. Bytes that are not UTF-8 do not.
pub(crate) fn is_blank(value: &[u8]) -> bool {
    str::from_utf8(value).is_ok_and(|text| text.trim().is_empty())
}

/// Returns the name of a service. `None` if it is blank.
///
/// # Errors
///
/// Returns an error if the value is not UTF-8, is too long, or contains invisible characters.
pub(crate) fn service(value: &[u8]) -> Result<Option<&str>, TagError> {
    name(SERVICE, value)
}

/// Returns the name of a destination. `None` if it is blank.
///
/// # Errors
///
/// The errors of [`service`].
pub(crate) fn instance(value: &[u8]) -> Result<Option<&str>, TagError> {
    name(INSTANCE, value)
}

/// The port of a service: digits, from 1 to 65535.
///
/// # Errors
///
/// Returns an error for any other value, even a blank one.
pub(crate) fn http_port(value: &[u8]) -> Result<u16, TagError> {
    let expected = || {
        let reason = "expected a port from 1 to 65535, in digits";
        TagError::new(HTTP_PORT, value, reason)
    };
    let text = text(HTTP_PORT, value)?;
    // `parse` also takes a sign.
    if text.is_empty() || !text.bytes().all(|b| b.is_ascii_digit()) {
        return Err(expected());
    }
    match text.parse() {
        Ok(port) if port != 0 => Ok(port),
        _ => Err(expected()),
    }
}

/// Returns the scheme. A blank value is `http`.
///
/// # Errors
///
/// Returns an error if the value is neither `http` nor `https`, ignoring case. A guess could make requests
/// unencrypted that should be encrypted.
pub(crate) fn scheme(value: &[u8]) -> Result<Scheme, TagError> {
    let text = text(SCHEME, value)?;
    if text.is_empty() || text.eq_ignore_ascii_case("http") {
        return Ok(Scheme::Http);
    }
    if text.eq_ignore_ascii_case("https") {
        return Ok(Scheme::Https);
    }
    let reason = "expected `http` or `https`";
    Err(TagError::new(SCHEME, value, reason))
}

/// Returns the host pattern of a service's requests, without the dot with which DNS may end a name. `None`
/// if it is blank.
///
/// # Errors
///
/// Returns an error if the value is not a valid [`HostPattern`].
pub(crate) fn host(value: &[u8]) -> Result<Option<Cow<'_, str>>, TagError> {
    let text = text(HOST, value)?;
    if text.is_empty() {
        return Ok(None);
    }
    let host = without_root(text);
    match HostPattern::parse(&host) {
        Ok(_) => Ok(Some(host)),
        Err(error) => {
            let reason = format!("{error}; expected a host such as `orders.example`");
            Err(TagError::new(HOST, value, reason).with_suggestion(error.suggestion()))
        }
    }
}

/// Returns the path template of a service's requests, with its `/`. `None` if it is blank.
///
/// # Errors
///
/// Returns an error if the value is not a valid [`PathTemplate`], has characters that paths cannot contain,
/// or contains a `regex`. The memory for all expressions of a configuration is limited, so any node in the
/// gossip could use up the share of others.
pub(crate) fn route_path(value: &[u8]) -> Result<Option<String>, TagError> {
    let Some(path) = path(ROUTE_PATH, value)? else {
        return Ok(None);
    };
    if path.to_ascii_lowercase().contains(":regex(") {
        let reason = "expected a route template without `regex`, which tags cannot have";
        return Err(TagError::new(ROUTE_PATH, value, reason));
    }
    match PathTemplate::parse(&path) {
        Ok(_) => Ok(Some(path)),
        Err(error) => {
            let reason = format!("{error}; expected a route template such as `/orders/{{**rest}}`");
            let suggestion = error.suggestion().map(str::to_owned);
            Err(TagError::new(ROUTE_PATH, value, reason).with_suggestion(suggestion))
        }
    }
}

/// Returns the path of health probes, with its `/`. `None` if it is blank.
///
/// # Errors
///
/// Returns an error if the value has characters that paths cannot contain, or a query.
pub(crate) fn health_path(value: &[u8]) -> Result<Option<String>, TagError> {
    let path = path(HEALTH_PATH, value)?;
    let is_none = |path: &String| path.contains(['?', '#']) || path.contains("://");
    if path.as_ref().is_some_and(is_none) {
        let reason = "expected a path such as `/health`, without scheme, query and fragment";
        return Err(TagError::new(HEALTH_PATH, value, reason));
    }
    Ok(path)
}

/// The weight of an instance: digits, from 0 to 1,000; blank is 1.
///
/// # Errors
///
/// Returns an error for any other value.
pub(crate) fn weight(value: &[u8]) -> Result<u32, TagError> {
    match lenient_weight(value) {
        (weight, None) => Ok(weight),
        (_, Some(error)) => Err(error),
    }
}

/// The weight to use for a value, and why it is not the one that is written: an instance is not lost for its weight.
pub(super) fn lenient_weight(value: &[u8]) -> (u32, Option<TagError>) {
    let reason = "expected a whole number from 0 to 1000, in digits";
    let (instead, error) = match text(WEIGHT, value) {
        Ok("") => return (DEFAULT_WEIGHT, None),
        Ok(text) => {
            let digits = text.bytes().all(|b| b.is_ascii_digit());
            let number = text.parse::<u64>().ok().filter(|_| digits);
            match number.map(|number| u32::try_from(number).unwrap_or(u32::MAX)) {
                Some(number) if number <= MAX_WEIGHT => return (number, None),
                Some(_) => (MAX_WEIGHT, TagError::new(WEIGHT, value, reason)),
                None => (DEFAULT_WEIGHT, TagError::new(WEIGHT, value, reason)),
            }
        }
        Err(error) => (DEFAULT_WEIGHT, error),
    };
    (instead, Some(error))
}

/// Returns a version or region. `None` if it is blank. Characters that cannot be shown are replaced, and a
/// long value is cut: an instance is not rejected for a value that is only informational.
pub(crate) fn label(value: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(value);
    let text = text.trim();
    let mut end = text.len().min(MAX_VALUE);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    let visible = |c| match is_hidden(c) {
        true => char::REPLACEMENT_CHARACTER,
        false => c,
    };
    (!text.is_empty()).then(|| text[..end].chars().map(visible).collect())
}

/// Returns true if a header of a request, and ids of routes and clusters, can contain a [`label`]: at most
/// 64 letters, digits and `.`, `_`, `~`, `+` or `-`, all ASCII.
pub(crate) fn can_be_asked_for(label: &str) -> bool {
    let fits = |b: u8| b.is_ascii_alphanumeric() || b"._~+-".contains(&b);
    (1..=64).contains(&label.len()) && label.bytes().all(fits)
}

fn text<'v>(tag: &'static str, value: &'v [u8]) -> Result<&'v str, TagError> {
    if value.len() > MAX_VALUE {
        let reason = format!("expected at most {MAX_VALUE} bytes");
        return Err(TagError::new(tag, value, reason));
    }
    match str::from_utf8(value) {
        Ok(text) => Ok(text.trim()),
        Err(_) => Err(TagError::new(tag, value, "expected text in UTF-8")),
    }
}

fn name<'v>(tag: &'static str, value: &'v [u8]) -> Result<Option<&'v str>, TagError> {
    let text = text(tag, value)?;
    if text.contains(is_hidden) {
        let reason = "expected a name without control characters";
        return Err(TagError::new(tag, value, reason));
    }
    Ok((!text.is_empty()).then_some(text))
}

fn path(tag: &'static str, value: &[u8]) -> Result<Option<String>, TagError> {
    let text = text(tag, value)?;
    if text.contains(|c: char| c.is_whitespace() || is_hidden(c)) {
        let reason = "expected a path without spaces and control characters";
        return Err(TagError::new(tag, value, reason));
    }
    Ok(match text {
        "" => None,
        path if path.starts_with('/') => Some(path.to_owned()),
        path => Some(format!("/{path}")),
    })
}
