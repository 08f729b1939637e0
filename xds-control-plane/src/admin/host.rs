use discovery_core::address::is_safe_from_rebinding;
use http::{Request, StatusCode, header};

use super::answer::AdminResponse;

/// Rejects requests that another site's page made a browser send.
pub(super) fn check<B>(request: &Request<B>, allowed: &[String]) -> Result<(), AdminResponse> {
    let mut hosts = request.headers().get_all(header::HOST).iter();
    let (host, another) = (hosts.next(), hosts.next());
    if another.is_some() {
        let message = "the request has more than one host";
        return Err(AdminResponse::error(StatusCode::BAD_REQUEST, message));
    }
    let named = request.uri().host().map(str::to_owned).or_else(|| {
        let authority = http::uri::Authority::try_from(host?.as_bytes());
        // An empty or malformed host is never an allowed one.
        Some(authority.map_or_else(|_| String::new(), |named| named.host().to_owned()))
    });
    let Some(host) = named else {
        // Health checks may be of HTTP/1.0, and tell nothing that a page could use.
        return match request.uri().path() {
            "/healthz" | "/readyz" => Ok(()),
            _ => Err(AdminResponse::error(
                StatusCode::BAD_REQUEST,
                "the request has no host",
            )),
        };
    };
    let is_named = |name: &String| name.eq_ignore_ascii_case(&host);
    if is_safe_from_rebinding(&host) || allowed.iter().any(is_named) {
        return Ok(());
    }
    Err(AdminResponse::error(
        StatusCode::MISDIRECTED_REQUEST,
        "ask by IP address or `localhost`; other names have to be allowed by the program",
    ))
}
