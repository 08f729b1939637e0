//! Paging of lists.

use serde_json::{Value, json};

use super::answer::{Reply, RequestContext};
use super::rejection::Rejection;

/// Returns the requested page, with the URL of the next.
pub(super) fn reply(
    call: &RequestContext<'_>,
    items: Vec<Value>,
    size: usize,
) -> Result<Reply, Rejection> {
    let start: usize = match call.parameter("$skiptoken") {
        None => 0,
        Some(token) => token.parse().map_err(|_| {
            Rejection::bad(
                "InvalidSkipToken",
                format!("The skip token '{token}' is invalid."),
            )
        })?,
    };
    let total = items.len();
    let page: Vec<_> = items.into_iter().skip(start).take(size).collect();
    let next = start.saturating_add(page.len());
    let mut body = json!({ "value": page });
    if next < total {
        let mut query = url::form_urlencoded::Serializer::new(String::new());
        for (name, value) in call.query.iter().filter(|(name, _)| name != "$skiptoken") {
            query.append_pair(name, value);
        }
        query.append_pair("$skiptoken", &next.to_string());
        body["nextLink"] = json!(format!("{}{}?{}", call.origin, call.path, query.finish()));
    }
    Ok(Reply::ok(body))
}
