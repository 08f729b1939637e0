//! Cookies: the value of one in a request, and the one that a response sets.

use std::time::SystemTime;

use percent_encoding::percent_decode;
use proxy_model::RequestHead;
use proxy_model::compiled::{AffinityCookie, CookieSameSite};

/// The longest value of a key, in bytes; each key of the built-in policies is shorter.
const MOST: usize = 160;

/// The text of a key in a request, of at most 160 bytes.
#[derive(Clone, Debug)]
pub struct KeyText {
    bytes: [u8; MOST],
    /// Beyond the bytes if the text is longer.
    length: usize,
}

impl Default for KeyText {
    fn default() -> Self {
        Self {
            bytes: [0; MOST],
            length: 0,
        }
    }
}

impl KeyText {
    /// The text. `None` if it is too long to be a key.
    pub fn get(&self) -> Option<&[u8]> {
        self.bytes.get(..self.length)
    }

    /// Takes the place of the text.
    pub(super) fn set(&mut self, text: impl Iterator<Item = u8>) {
        self.length = 0;
        for byte in text {
            let Some(place) = self.bytes.get_mut(self.length) else {
                // A text that is too long is no key. Its beginning must not become one.
                self.length = MOST + 1;
                return;
            };
            *place = byte;
            self.length += 1;
        }
    }
}

/// Finds the cookie `name` in a request, and returns whether it is there with a value.
///
/// Cookies are read as ASP.NET reads them: names are compared ignoring case, of several values the last one counts, and
/// empty ones do not; values are percent-decoded.
pub fn find_cookie(head: &dyn RequestHead, name: &str, text: &mut KeyText) -> bool {
    let mut is_found = false;
    head.for_each_header("cookie", &mut |line| {
        // ASP.NET separates cookies by commas as well.
        for cookie in line.split(|byte| matches!(byte, b';' | b',')) {
            if let Some(value) = value_of(cookie, name.as_bytes()) {
                is_found = true;
                text.set(percent_decode(value));
            }
        }
        true
    });
    is_found
}

/// The value of a cookie, if it has this name and a value.
#[inline]
fn value_of<'a>(cookie: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    let cookie = cookie.trim_ascii();
    let (written, rest) = cookie.split_at_checked(name.len())?;
    let value = rest.strip_prefix(b"=")?;
    (!value.is_empty() && written.eq_ignore_ascii_case(name)).then_some(value)
}

/// Returns the value of `Set-Cookie` for a cookie, as ASP.NET writes it.
pub(super) fn set_cookie(
    name: &str,
    value: &str,
    cookie: &AffinityCookie,
    is_https: bool,
    now: SystemTime,
) -> String {
    let mut text = format!("{name}={value}");
    let mut attribute = |name: &str, value: &str| {
        text.push_str("; ");
        text.push_str(name);
        if !value.is_empty() {
            text.push('=');
            text.push_str(value);
        }
    };
    if let Some(expiration) = cookie.expiration() {
        attribute("expires", &expires(now, expiration));
    }
    if let Some(age) = cookie.max_age() {
        attribute("max-age", &age.as_secs().to_string());
    }
    if let Some(domain) = cookie.domain() {
        attribute("domain", domain);
    }
    // Always written: without it, browsers use the directory of the request's path.
    attribute("path", cookie.path());
    if cookie.is_secure(is_https) {
        attribute("secure", "");
    }
    match cookie.same_site() {
        CookieSameSite::Unspecified => {}
        CookieSameSite::None => attribute("samesite", "none"),
        CookieSameSite::Lax => attribute("samesite", "lax"),
        CookieSameSite::Strict => attribute("samesite", "strict"),
    }
    if cookie.is_http_only() {
        attribute("httponly", "");
    }
    text
}

/// The date that many seconds from now, at most the last one with four digits of the year.
fn expires(now: SystemTime, after: std::time::Duration) -> String {
    const LAST: u64 = 253_402_300_799;
    let last = SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(LAST);
    let date = now.checked_add(after).unwrap_or(last).min(last);
    httpdate::fmt_http_date(date)
}
