use std::net::IpAddr;

use http::header::{HOST, ORIGIN};
use http::request::Parts;
use http::uri::Authority;
use http::{Method, StatusCode};

use crate::cluster::ErrorCode;
use crate::gateway::wire::ApiError;

/// Rejects changes by pages of other origins: on a developer's machine every web page can send requests to
/// `127.0.0.1`, and the emulator's own API has no authentication.
///
/// Only browsers send `Origin`. It must be that of the gateway itself (RFC 6454, section 7), given as an
/// address or as `localhost`: the owner of any other name may have pointed it here ("DNS rebinding").
///
/// # Errors
///
/// 403 for any other origin.
pub(crate) fn check_origin(head: &Parts) -> Result<(), ApiError> {
    if head.method == Method::GET || head.method == Method::HEAD {
        return Ok(());
    }
    let Some(origin) = head.headers.get(ORIGIN) else {
        return Ok(());
    };
    let host = head.headers.get(HOST).and_then(|host| host.to_str().ok());
    let own = origin
        .to_str()
        .ok()
        .and_then(|origin| origin.split_once("://"))
        .is_some_and(|(_, authority)| {
            host.is_some_and(|host| host.eq_ignore_ascii_case(authority) && is_local(host))
        });
    if own {
        return Ok(());
    }
    Err(ApiError {
        status: StatusCode::FORBIDDEN,
        ..ApiError::new(
            ErrorCode::InvalidArgument,
            "a page of another origin may not change anything below /emulator",
        )
    })
}

fn is_local(host: &str) -> bool {
    let Ok(authority) = host.parse::<Authority>() else {
        return false;
    };
    let name = authority.host();
    name.eq_ignore_ascii_case("localhost")
        || name
            .trim_start_matches('[')
            .trim_end_matches(']')
            .parse::<IpAddr>()
            .is_ok()
}
