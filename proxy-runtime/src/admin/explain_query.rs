//! `explain` as a query.

use http::StatusCode;
use http::request::Parts;

use super::Inner;
use super::query::Query;
use super::respond::Answer;
use super::shown_url::shown_url;
use crate::connection::ConnectionInfo;
use crate::explain::ForwardedRequest;
use crate::status::secret::{REDACTED, sounds_secret};

pub(super) fn answer(admin: &Inner, query: &Query) -> Answer {
    match request(query) {
        Ok((parts, connection)) => {
            let mut explanation = admin.proxy.explain(&parts, connection);
            if let Some(forwarded) = &mut explanation.forwarded {
                hide_secrets(forwarded, &parts);
            }
            Answer::json(&explanation)
        }
        Err(message) => Answer::error(StatusCode::BAD_REQUEST, &message),
    }
}

/// Hides what the configuration adds to a request and may be a secret. What the asker has sent is known to the asker.
fn hide_secrets(forwarded: &mut ForwardedRequest, asked: &Parts) {
    for (name, value) in &mut forwarded.headers {
        let mut sent = asked.headers.get_all(&*name).into_iter();
        if sounds_secret(name) && !sent.any(|sent| sent.as_bytes() == value.as_bytes()) {
            REDACTED.clone_into(value);
        }
    }
    forwarded.uri = shown_url(&forwarded.uri);
}

fn request(query: &Query) -> Result<(Parts, ConnectionInfo), String> {
    let method = query.get("method").unwrap_or("GET");
    let url = query
        .get("url")
        .ok_or("`url` is missing: http://host/path?query")?;
    crate::explain::request_from_text(method, url, query.all("header"))
}
