//! Hints about the probable cause of an error and its correction.

use http::header::WWW_AUTHENTICATE;
use http::{HeaderMap, StatusCode};

use super::TransportErrorKind;

/// The usual cause of a failed exchange.
pub(super) fn of_transport(kind: TransportErrorKind, secure: bool) -> Option<&'static str> {
    match kind {
        TransportErrorKind::Interrupted if !secure => Some(
            "if the cluster is secured its gateway expects TLS: the endpoint then begins with `https://`",
        ),
        TransportErrorKind::NotTls => Some(
            "if the cluster is not secured its gateway does not speak TLS: the endpoint then begins with `http://`",
        ),
        TransportErrorKind::Untrusted => Some(
            "gateways often have self-signed certificates: trust its authority, its thumbprint or its common name",
        ),
        TransportErrorKind::CertificateRejected => Some(
            "the cluster requires a client certificate that it knows as an administrator's or a reader's",
        ),
        _ => None,
    }
}

/// The usual cause of a status.
pub(super) fn of_status(
    status: StatusCode,
    headers: &HeaderMap,
    context: Context,
) -> Option<&'static str> {
    match status {
        StatusCode::UNAUTHORIZED if asks_for_kerberos(headers) => Some(
            "the cluster requires Windows authentication (Kerberos), which is not supported: use a \
             client certificate or a token",
        ),
        StatusCode::UNAUTHORIZED if context.sent_token => {
            Some("the token has expired, or is for another cluster")
        }
        StatusCode::UNAUTHORIZED => Some("the cluster wants a bearer token"),
        StatusCode::FORBIDDEN if context.writes => Some(
            "reports need the client certificate, or the role, of an administrator; readers may only ask",
        ),
        StatusCode::FORBIDDEN => Some(
            "the client certificate is missing, or not one that the cluster knows as an administrator's or a reader's",
        ),
        StatusCode::NOT_FOUND if !context.own_words => Some(
            "a gateway names what it does not find: the endpoint may be that of another program, or have a wrong path",
        ),
        StatusCode::BAD_REQUEST if !context.own_words && !context.secure => {
            Some("if the port expects TLS the endpoint begins with `https://`")
        }
        _ => None,
    }
}

/// The facts about an exchange besides its status.
#[derive(Clone, Copy, Debug)]
pub(super) struct Context {
    pub(super) secure: bool,
    pub(super) sent_token: bool,
    pub(super) writes: bool,
    /// True if the body is an error of a gateway.
    pub(super) own_words: bool,
}

/// Returns true if only Windows authentication is offered.
pub(super) fn asks_for_kerberos(headers: &HeaderMap) -> bool {
    let mut schemes = headers
        .get_all(WWW_AUTHENTICATE)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .filter_map(|challenge| challenge.split_whitespace().next())
        .peekable();
    let is_windows = |scheme: &str| {
        ["negotiate", "kerberos", "ntlm"]
            .iter()
            .any(|name| scheme.eq_ignore_ascii_case(name))
    };
    schemes.peek().is_some_and(|first| is_windows(first))
}
