//! Redirects and direct responses of routes.

use std::net::Ipv6Addr;

use indexmap::IndexMap;
use proxy_model::config::{RedirectConfig, RespondConfig};
use xds_types::pb::envoy::config::core::v3::DataSource;
use xds_types::pb::envoy::config::core::v3::data_source::Specifier;
use xds_types::pb::envoy::config::route::v3::redirect_action::{
    PathRewriteSpecifier, RedirectResponseCode, SchemeRewriteSpecifier,
};
use xds_types::pb::envoy::config::route::v3::route_match::PathSpecifier;
use xds_types::pb::envoy::config::route::v3::{DirectResponseAction, RedirectAction};

use super::Reading;
use super::matching::literal;

/// The type that Envoy gives the body of a direct response.
const TEXT: &str = "text/plain";

/// Reads a redirect of a route whose paths are `path`. A part that is not supported is rejected, which closes the
/// route.
pub(super) fn redirect(
    action: &RedirectAction,
    path: Option<&PathSpecifier>,
    reading: &mut Reading,
) -> RedirectConfig {
    let RedirectAction {
        host_redirect,
        port_redirect,
        response_code,
        strip_query,
        scheme_rewrite_specifier,
        path_rewrite_specifier,
    } = action;
    reading.reject_if(*strip_query, "strip_query");
    let scheme = match scheme_rewrite_specifier {
        Some(SchemeRewriteSpecifier::HttpsRedirect(true)) => Some("https"),
        Some(SchemeRewriteSpecifier::HttpsRedirect(false)) | None => None,
        Some(SchemeRewriteSpecifier::SchemeRedirect(scheme)) => match scheme.as_str() {
            "" => None,
            "https" => Some("https"),
            "http" => Some("http"),
            _ => {
                reading.reject("scheme_redirect", "only `http` and `https` can be honoured");
                None
            }
        },
    };
    if scheme.is_some() && host_redirect.is_empty() {
        reading.differs(
            "scheme_rewrite_specifier",
            "a port of the client's URL is left out, where Envoy keeps an unusual one",
        );
    }
    if let Some(PathRewriteSpecifier::PrefixRewrite(_)) = path_rewrite_specifier {
        reading.differs(
            "prefix_rewrite",
            "a `/` at the end of the path may be left out",
        );
    }
    let path = path_rewrite_specifier.as_ref().and_then(|wanted| {
        let read = self::path(wanted, path);
        if read.is_none() {
            reading.reject(
                "path_rewrite_specifier",
                "only plain paths and prefixes of whole segments can be honoured",
            );
        }
        read
    });
    let host = host(host_redirect, *port_redirect, reading);
    if scheme.is_none() && host.is_none() && path.is_none() {
        reading.reject("host_redirect", "the redirect leads nowhere else");
    }
    RedirectConfig {
        scheme: scheme.map(str::to_owned),
        host,
        path,
        status: Some(match RedirectResponseCode::try_from(*response_code) {
            Ok(RedirectResponseCode::MovedPermanently) => 301,
            Ok(RedirectResponseCode::Found) => 302,
            Ok(RedirectResponseCode::SeeOther) => 303,
            Ok(RedirectResponseCode::TemporaryRedirect) => 307,
            Ok(RedirectResponseCode::PermanentRedirect) => 308,
            Err(_) => {
                reading.reject("response_code", "the code is not known");
                307
            }
        }),
    }
}

/// Returns the host of a redirect with its port.
fn host(host: &str, port: u32, reading: &mut Reading) -> Option<String> {
    if host.is_empty() {
        reading.reject_if(port != 0, "port_redirect");
        return None;
    }
    let (name, own_port) = match host.rsplit_once(':') {
        Some((name, port)) if !host.ends_with(']') => (name, Some(port)),
        _ => (host, None),
    };
    let is_port = |port: &str| port.parse::<u16>().is_ok_and(|port| port > 0);
    if !is_host(name) || own_port.is_some_and(|port| !is_port(port)) {
        reading.reject("host_redirect", "it is not a host");
        return None;
    }
    match (port, own_port) {
        (0, _) => Some(host.to_owned()),
        (1..=65_535, None) => Some(format!("{host}:{port}")),
        _ => {
            reading.reject("port_redirect", "it is not the port of the host");
            None
        }
    }
}

fn is_host(name: &str) -> bool {
    let inner = name
        .strip_prefix('[')
        .and_then(|name| name.strip_suffix(']'));
    match inner {
        Some(address) => address.parse::<Ipv6Addr>().is_ok(),
        None => {
            let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
            !name.is_empty() && name.bytes().all(is_plain)
        }
    }
}

/// Returns the path of a redirect as a template with the parameters of the route's path.
fn path(wanted: &PathRewriteSpecifier, matched: Option<&PathSpecifier>) -> Option<String> {
    match (wanted, matched) {
        (PathRewriteSpecifier::PathRedirect(path), _)
        | (PathRewriteSpecifier::PrefixRewrite(path), Some(PathSpecifier::Path(_))) => {
            // Templates have no `/` at their end.
            let is_template = |path: &str| path == "/" || !path.ends_with('/');
            literal(path).filter(|path| path.starts_with('/') && is_template(path))
        }
        // The text of the prefix is replaced, whatever follows.
        (PathRewriteSpecifier::PrefixRewrite(by), Some(PathSpecifier::Prefix(prefix)))
            if prefix != "/" && prefix.ends_with('/') =>
        {
            let by = literal(by)?;
            by.strip_suffix('/').map(|by| format!("{by}/{{**rest}}"))
        }
        (PathRewriteSpecifier::PrefixRewrite(by), Some(PathSpecifier::PathSeparatedPrefix(_))) => {
            let by = literal(by)?;
            let is_plain = by.starts_with('/') && !by.ends_with('/');
            is_plain.then(|| format!("{by}/{{**rest}}"))
        }
        (
            PathRewriteSpecifier::RegexRewrite(rewrite),
            Some(PathSpecifier::PathSeparatedPrefix(prefix)),
        ) => {
            let pattern = &rewrite.pattern.as_ref()?.regex;
            if !keeps_rest(pattern, prefix) {
                return None;
            }
            let by = literal(rewrite.substitution.strip_suffix("\\1")?)?;
            let is_plain = by.starts_with('/') && !by.ends_with('/');
            is_plain.then(|| format!("{by}/{{**rest}}"))
        }
        _ => None,
    }
}

/// Returns true if an expression captures what follows a prefix, without a `/` at the end of the prefix alone: the form
/// in which `xds-control-plane` writes a path with `{**rest}`.
fn keeps_rest(pattern: &str, prefix: &str) -> bool {
    let pattern = pattern.strip_prefix("(?i)^");
    let Some(pattern) = pattern.and_then(|pattern| pattern.strip_suffix("(/.+)?/?$")) else {
        return false;
    };
    let mut text = String::new();
    let mut rest = pattern.chars();
    while let Some(c) = rest.next() {
        match c {
            // An escaped letter is a class.
            '\\' => match rest.next() {
                Some(c) if c.is_ascii_punctuation() => text.push(c),
                _ => return false,
            },
            '.' => return false,
            c => text.push(c),
        }
    }
    // The characters of plain texts mean themselves.
    text == prefix && literal(prefix).is_some()
}

/// Reads a direct response. A body from elsewhere is rejected, which closes the route.
pub(super) fn respond(answer: &DirectResponseAction, reading: &mut Reading) -> RespondConfig {
    let DirectResponseAction {
        status,
        body,
        body_format,
    } = answer;
    reading.reject_if(body_format.is_some(), "body_format");
    let status = u16::try_from(*status).ok();
    let status = status.filter(|status| (200..=599).contains(status));
    if status.is_none() {
        reading.reject("status", "only those from 200 to 599 can be honoured");
    }
    let body = body.as_ref().map_or(Some(String::new()), text);
    if body.is_none() {
        reading.reject("body", "only text in the configuration can be honoured");
    }
    let is_bodiless = matches!(status, Some(204 | 205 | 304));
    let body = body.filter(|body| !body.is_empty() && !is_bodiless);
    let headers = body
        .as_ref()
        .map(|_| IndexMap::from([("Content-Type".to_owned(), TEXT.to_owned())]));
    RespondConfig {
        status,
        body,
        headers,
    }
}

fn text(body: &DataSource) -> Option<String> {
    match &body.specifier {
        None => Some(String::new()),
        Some(Specifier::InlineString(text)) => Some(text.clone()),
        Some(Specifier::InlineBytes(bytes)) => String::from_utf8(bytes.clone()).ok(),
        Some(Specifier::Filename(_) | Specifier::EnvironmentVariable(_)) => None,
    }
}
