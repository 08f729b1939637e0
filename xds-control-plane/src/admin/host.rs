use std::net::IpAddr;

use http::{Request, StatusCode, header};

use super::answer::AdminResponse;

/// Rejects requests that another site's page made a browser send.
pub(super) fn check<B>(request: &Request<B>, allowed: &[String]) -> Result<(), AdminResponse> {
    let named = request.uri().host().map(str::to_owned).or_else(|| {
        let value = request.headers().get(header::HOST)?.to_str().ok()?;
        let authority: http::uri::Authority = value.parse().ok()?;
        Some(authority.host().to_owned())
    });
    // HTTP/1.0 without a Host is no browser's.
    let Some(host) = named else { return Ok(()) };
    let bare = host
        .trim_start_matches('[')
        .trim_end_matches(']')
        .to_ascii_lowercase();
    let is_allowed = bare.parse::<IpAddr>().is_ok()
        || bare == "localhost"
        || bare.ends_with(".localhost")
        || allowed.contains(&bare);
    if is_allowed {
        return Ok(());
    }
    Err(AdminResponse::error(
        StatusCode::MISDIRECTED_REQUEST,
        "ask by IP address or `localhost`; other names have to be allowed by the program",
    ))
}
