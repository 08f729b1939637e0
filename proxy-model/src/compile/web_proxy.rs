//! Forward proxies between the program and destinations.

use percent_encoding::percent_decode_str;
use url::{Host, Url};

use super::{Scope, filled};
use crate::compiled::{BypassPattern, WebProxy};
use crate::config::WebProxyConfig;
use crate::suggest::shortened;

/// The outer `None`: there is an error.
#[expect(clippy::option_option, reason = "both are told apart by the caller")]
pub(super) fn compile(config: &WebProxyConfig, scope: &mut Scope<'_>) -> Option<Option<WebProxy>> {
    let bypassed = patterns(config.bypass_list.as_deref().unwrap_or_default(), scope);
    let Some(address) = filled(config.address.as_ref()) else {
        scope.warning(
            "Address",
            "no_effect",
            "there is no `Address`, so that destinations are reached directly",
        );
        return Some(None);
    };
    let (host, port, credentials) = match parse(address) {
        Ok(parsed) => parsed,
        Err((message, suggestion)) => {
            // The address is not shown: it may hold a password.
            scope.error_with("Address", "invalid_address", message, suggestion);
            return None;
        }
    };
    Some(Some(WebProxy {
        host: host.into(),
        port,
        credentials: credentials.map(Into::into),
        bypasses_local: config.bypass_on_local.unwrap_or(false),
        bypassed: bypassed?,
    }))
}

type ProxyFault = (&'static str, &'static str);

fn parse(address: &str) -> Result<(String, u16, Option<String>), ProxyFault> {
    const NO_URL: ProxyFault = (
        "the forward proxy's address is not a URL with a host",
        "write `http://host:port/`",
    );
    let url = Url::parse(address).map_err(|_| NO_URL)?;
    match url.scheme() {
        "http" => {}
        "https" => {
            return Err((
                "connections to the forward proxy itself are not TLS",
                "write `http://host:port/`",
            ));
        }
        "socks4" | "socks4a" | "socks5" => {
            return Err((
                "SOCKS is not spoken with forward proxies",
                "write the `http://host:port/` at which it speaks HTTP",
            ));
        }
        _ => return Err(NO_URL),
    }
    let host = match url.host() {
        Some(Host::Domain(name)) if !name.is_empty() => name.to_owned(),
        Some(Host::Ipv4(ip)) => ip.to_string(),
        Some(Host::Ipv6(ip)) => ip.to_string(),
        Some(Host::Domain(_)) | None => return Err(NO_URL),
    };
    let port = url.port_or_known_default().filter(|port| *port != 0);
    Ok((host, port.ok_or(NO_URL)?, credentials(&url)?))
}

/// User and password, without their percent-encoding.
fn credentials(url: &Url) -> Result<Option<String>, ProxyFault> {
    const UNUSABLE: ProxyFault = (
        "the forward proxy's user or password cannot be sent (RFC 7617)",
        "leave out control characters, and colons of the user",
    );
    if url.username().is_empty() && url.password().is_none() {
        return Ok(None);
    }
    let decoded = |text| percent_decode_str(text).decode_utf8().map_err(|_| UNUSABLE);
    let user = decoded(url.username())?;
    let password = decoded(url.password().unwrap_or_default())?;
    if user.contains(':') || format!("{user}{password}").chars().any(char::is_control) {
        return Err(UNUSABLE);
    }
    Ok(Some(format!("{user}:{password}")))
}

fn patterns(written: &[String], scope: &mut Scope<'_>) -> Option<Vec<BypassPattern>> {
    let mut patterns = Some(Vec::with_capacity(written.len()));
    for (i, text) in written.iter().enumerate() {
        match (pattern(text), &mut patterns) {
            (Some(pattern), Some(patterns)) => patterns.push(pattern),
            (Some(_), None) => {}
            (None, _) => {
                patterns = None;
                scope.error_with(
                    &format!("BypassList/{i}"),
                    "invalid_host",
                    format!("`{}` is not a host", shortened(text)),
                    "write a name or an address, with `*` at its beginning or end for any text: `*.internal`, `10.0.*`",
                );
            }
        }
    }
    patterns
}

fn pattern(written: &str) -> Option<BypassPattern> {
    let text = written.to_ascii_lowercase();
    let (has_any_before, text) = match text.strip_prefix('*') {
        Some(rest) => (true, rest.to_owned()),
        None => (false, text),
    };
    let (has_any_behind, text) = match text.strip_suffix('*') {
        Some(rest) => (true, rest.to_owned()),
        None => (false, text),
    };
    // `*` alone would switch the proxy off.
    let is_host = |c: char| c.is_ascii_alphanumeric() || ".-_:".contains(c);
    (!text.is_empty() && text.chars().all(is_host)).then_some(BypassPattern {
        text,
        has_any_before,
        has_any_behind,
    })
}
