//! `Redirect` and `Respond` of a route.

use http::header::{
    CONNECTION, CONTENT_LENGTH, CONTENT_TYPE, TE, TRAILER, TRANSFER_ENCODING, UPGRADE,
};
use http::uri::Authority;
use http::{HeaderName, HeaderValue, StatusCode};

use crate::compiled::{FixedResponse, Redirect, RouteTarget, Scheme};
use crate::config::{RedirectConfig, RespondConfig, RouteConfig};
use crate::id::same_id;
use crate::matching::{PathTemplate, host_to_ascii};

use super::Scope;

const STATUSES: [u16; 5] = [301, 302, 303, 307, 308];
/// Fields of the connection and of the framing, which the server writes.
const PROTECTED: [HeaderName; 6] = [
    CONNECTION,
    CONTENT_LENGTH,
    TE,
    TRAILER,
    TRANSFER_ENCODING,
    UPGRADE,
];

/// Reports settings that have no effect in a route with a local reply.
pub(super) fn check(config: &RouteConfig, scope: &mut Scope<'_>) -> Option<()> {
    let key = match (&config.redirect, &config.respond) {
        (None, None) => return Some(()),
        (Some(_), _) => "Redirect",
        (None, Some(_)) => "Respond",
    };
    // A filter may be what protects the route, and it is called for requests to a cluster alone.
    let has_filters = config.filters.iter().flatten().any(|name| !name.is_empty());
    if has_filters {
        let message = format!("filters see no requests of a route with `{key}`");
        scope.error_with("Filters", "no_effect", message, "use a layer");
        return None;
    }
    Some(())
}

pub(super) fn redirect(
    config: &RedirectConfig,
    template: Option<&PathTemplate>,
    scope: &mut Scope<'_>,
) -> Option<RouteTarget> {
    let mut scope = scope.below("Redirect");
    let scope = &mut scope;
    let is_empty = config.scheme.is_none() && config.host.is_none() && config.path.is_none();
    if is_empty {
        scope.error_with(
            "Scheme",
            "missing_key",
            "the redirect leads nowhere else",
            "write `Scheme`, `Host` or `Path`",
        );
        return None;
    }
    let scheme = match config.scheme.as_deref() {
        None => Some(None),
        Some(text) if same_id(text, "https") => Some(Some(Scheme::Https)),
        Some(text) if same_id(text, "http") => Some(Some(Scheme::Http)),
        Some(_) => {
            let message = "the scheme of a redirect is `http` or `https`";
            scope.error("Scheme", "invalid_scheme", message);
            None
        }
    };
    let authority = match config.host.as_deref() {
        None => Some(None),
        Some(text) => authority(text, scope).map(Some),
    };
    let path = match config.path.as_deref() {
        None => Some(None),
        Some(text) => path(text, template, scope).map(Some),
    };
    let status = config.status.unwrap_or(307);
    if !STATUSES.contains(&status) {
        let message = format!("{status} is not the status of a redirect");
        scope.error_with(
            "Status",
            "invalid_status",
            message,
            "write 301, 302, 303, 307 or 308",
        );
        return None;
    }
    Some(RouteTarget::Redirect(Box::new(Redirect {
        scheme: scheme?,
        authority: authority?,
        path: path?,
        status: StatusCode::from_u16(status).ok()?,
    })))
}

fn authority(text: &str, scope: &mut Scope<'_>) -> Option<Box<str>> {
    let ascii = host_to_ascii(text);
    let parsed = ascii.as_deref().map(str::parse::<Authority>);
    match (ascii.as_deref(), parsed) {
        (Some(ascii), Some(Ok(parsed)))
            if !parsed.host().is_empty() && !ascii.contains(['@', '*']) =>
        {
            Some(ascii.into())
        }
        _ => {
            scope.error_with(
                "Host",
                "invalid_host",
                "the host is not a name or an address, with a port or without",
                "write `www.example.com` or `localhost:8443`",
            );
            None
        }
    }
}

fn path(text: &str, known: Option<&PathTemplate>, scope: &mut Scope<'_>) -> Option<PathTemplate> {
    let template = match PathTemplate::parse_with(text, scope.expressions) {
        Ok(template) => template,
        Err(error) => {
            let suggestion = error.suggestion().unwrap_or("write `/new/{**rest}`");
            let suggestion = suggestion.to_owned();
            scope.error_with("Path", "invalid_path", error.to_string(), suggestion);
            return None;
        }
    };
    let mut is_whole = true;
    for name in template.parameter_names() {
        let is_known = known.is_none_or(|known| {
            let mut names = known.parameter_names();
            names.any(|parameter| same_id(parameter, name))
        });
        if !is_known {
            let message = format!("the route's path has no parameter `{name}`");
            scope.error("Path", "unknown_route_parameter", message);
            is_whole = false;
        }
    }
    is_whole.then_some(template)
}

pub(super) fn respond(config: &RespondConfig, scope: &mut Scope<'_>) -> Option<RouteTarget> {
    let mut scope = scope.below("Respond");
    let scope = &mut scope;
    let status = config.status.unwrap_or(200);
    let valid = StatusCode::from_u16(status).ok();
    let valid = valid.filter(|_| (200..=599).contains(&status));
    if valid.is_none() {
        let message = format!("{status} is not the status of a response");
        scope.error_with(
            "Status",
            "invalid_status",
            message,
            "write one from 200 to 599",
        );
    }
    let body = config.body.as_deref().unwrap_or_default();
    if matches!(status, 204 | 205 | 304) && !body.is_empty() {
        let message = format!("a response with {status} has no body");
        scope.error("Body", "no_effect", message);
        return None;
    }
    let mut is_whole = true;
    let mut headers = Vec::new();
    for (name, value) in config.headers.iter().flatten() {
        match header(name, value) {
            Ok(header) => headers.push(header),
            Err(message) => {
                let place = crate::pointer_to("Headers", name);
                scope.error(&place, "invalid_header", message);
                is_whole = false;
            }
        }
    }
    let has_type = headers.iter().any(|(name, _)| name == CONTENT_TYPE);
    if !body.is_empty() && !has_type {
        let text = HeaderValue::from_static("text/plain; charset=utf-8");
        headers.push((CONTENT_TYPE, text));
    }
    let response = FixedResponse {
        status: valid?,
        headers: headers.into(),
        body: body.into(),
    };
    is_whole.then(|| RouteTarget::Respond(Box::new(response)))
}

fn header(name: &str, value: &str) -> Result<(HeaderName, HeaderValue), String> {
    let Ok(parsed) = HeaderName::from_bytes(name.as_bytes()) else {
        return Err("the name of a header has a sign that no name may have".to_owned());
    };
    if PROTECTED.contains(&parsed) {
        return Err(format!("`{parsed}` is written by the server"));
    }
    let Ok(value) = HeaderValue::from_str(value.trim()) else {
        return Err("the value has a sign that no header may have".to_owned());
    };
    Ok((parsed, value))
}
