//! `explain` as a query.

use http::StatusCode;
use http::request::Parts;

use super::Inner;
use super::query::Query;
use super::respond::Answer;
use crate::connection::ConnectionInfo;

pub(super) fn answer(admin: &Inner, query: &Query) -> Answer {
    match request(query) {
        Ok((parts, connection)) => {
            let explanation = admin.proxy.explain(&parts, connection);
            Answer::json(&explanation.without_secrets(&parts))
        }
        Err(message) => Answer::error(StatusCode::BAD_REQUEST, &message),
    }
}

fn request(query: &Query) -> Result<(Parts, ConnectionInfo), String> {
    let method = query.get("method").unwrap_or("GET");
    let url = query
        .get("url")
        .ok_or("`url` is missing: http://host/path?query")?;
    crate::explain::request_from_text(method, url, query.all("header"))
}
