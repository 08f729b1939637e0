//! `/api/v1/explain`: the explanation of a request given by query parameters.

use std::net::{IpAddr, SocketAddr};

use http::StatusCode;

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

fn asked(admin: &AdminState, query: &Query) -> Result<ParsedRequest, String> {
    let method = query.get("method").unwrap_or("GET");
    let url = query
        .get("url")
        .ok_or("`url` is missing: http://host/path?query")?;
    let rules = admin.listeners.rules(query.get("listener"))?;
    let remote = query.get("remote").map(client).transpose()?;
    let headers = query.all("header");
    request_from_text(method, url, headers, &admin.limits, rules, remote)
}
