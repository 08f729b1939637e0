//! `/api/v1/explain`: the explanation of a request given by query parameters.

use std::net::{IpAddr, SocketAddr};

use http::StatusCode;
use serde_json::Value;

use super::query::Query;
use super::respond::AdminResponse;
use super::state::AdminState;
use crate::explain::{ParsedRequest, request_from_text};

pub(super) fn answer(admin: &AdminState, query: &Query) -> AdminResponse {
    match asked(admin, query) {
        Ok(asked) => {
            let decide = |parts: &_, connection| admin.proxy.explain(parts, connection);
            AdminResponse::json(&asked.explain(decide))
        }
        Err(message) => AdminResponse::error(StatusCode::BAD_REQUEST, &message),
    }
}

/// Reads the address of a client, with or without a port.
fn client(text: &str) -> Result<SocketAddr, String> {
    let with_port = || text.parse().map(|address: IpAddr| (address, 0).into());
    text.parse().or_else(|_| with_port()).map_err(|_| {
        format!(
            "`{}` is no address of a client; write `192.0.2.7` or `192.0.2.7:4711`",
            text.escape_debug()
        )
    })
}

/// Reads the request: from its parts, or by the number of one of the past.
fn asked(admin: &AdminState, query: &Query) -> Result<ParsedRequest, String> {
    let past = query.get("request").map(|number| past(admin, number));
    let past = past.transpose()?;
    let of_past = |name: &str| past.as_ref()?.get(name)?.as_str();
    // A parameter takes precedence over the kept request.
    let method = query.get("method").or_else(|| of_past("method"));
    let url = match (query.get("url"), &past) {
        (Some(url), _) => url.to_owned(),
        (None, Some(_)) => {
            let part = |name| of_past(name).ok_or("the server could not read this request");
            format!("{}://{}{}", part("scheme")?, part("host")?, part("path")?)
        }
        (None, None) => return Err("`url` is missing: http://host/path?query".to_owned()),
    };
    let rules = admin.listeners.rules(query.get("listener"))?;
    let remote = query.get("remote").or_else(|| of_past("remote"));
    let remote = remote.map(client).transpose()?;
    let headers = query.all("header");
    let method = method.unwrap_or("GET");
    request_from_text(method, &url, headers, &admin.limits, rules, remote)
}

/// Returns the fields of a request that is kept.
fn past(admin: &AdminState, number: &str) -> Result<Value, String> {
    let shown = number.escape_debug();
    let tail = admin.requests.as_deref();
    let tail = tail.ok_or("no requests are kept: `Telemetry.LiveRequests` switches it on")?;
    let number = number
        .parse()
        .map_err(|_| format!("`{shown}` is no number of a request"))?;
    let line = tail.find(number);
    let line = line.ok_or_else(|| format!("request {shown} is not kept, or not any more"))?;
    serde_json::from_str(&line).map_err(|error| error.to_string())
}
