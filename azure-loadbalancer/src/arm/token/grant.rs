//! The response of a token endpoint (RFC 6749, section 5).

use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use serde::Deserialize;
use serde_json::Value;

use super::{AccessToken, TokenError};
use crate::arm::Transport;

/// The maximum size of a response, in bytes. Real ones are much smaller.
const MAX_BODY: usize = 256 * 1024;
/// The maximum lifetime of a token. Azure's live for little more than a day.
const LONGEST: Duration = Duration::from_secs(48 * 3_600);
/// The maximum length of an explanation from the authority, in characters.
const LONGEST_TEXT: usize = 500;
/// The errors of a status of 400 that are about credentials (RFC 6749, section 5.2).
const OF_CREDENTIALS: [&str; 4] = [
    "access_denied",
    "invalid_client",
    "invalid_grant",
    "unauthorized_client",
];
/// The description with which the metadata service rejects a machine without the requested identity, with a
/// status of 400 and the error `invalid_request`.
const NO_IDENTITY: &str = "identity not found";

#[derive(Deserialize)]
struct Granted {
    access_token: String,
    expires_in: Value,
}

#[derive(Default, Deserialize)]
struct Rejected {
    #[serde(default)]
    error: String,
    #[serde(default)]
    error_description: String,
}

/// Requests a token. `passing` are the statuses after which a retry is worthwhile, besides 408, 429 and those
/// of 500 or above.
pub(super) async fn ask(
    transport: &dyn Transport,
    whom: &str,
    request: Request<Bytes>,
    passing: &[u16],
) -> Result<AccessToken, TokenError> {
    let sent = transport.send(request, MAX_BODY).await;
    let response = sent.map_err(|error| {
        let silent = TokenError::new(format!("{whom} does not answer"));
        silent.with_source(error).transient()
    })?;
    let status = response.status().as_u16();
    read(whom, &response).map_err(|error| {
        match matches!(status, 408 | 429 | 500..=599) || passing.contains(&status) {
            true => error.transient(),
            false => error,
        }
    })
}

fn is_about_credentials(rejected: &Rejected) -> bool {
    let description = rejected.error_description.to_ascii_lowercase();
    OF_CREDENTIALS.contains(&rejected.error.as_str()) || description.contains(NO_IDENTITY)
}

fn read(whom: &str, response: &Response<Bytes>) -> Result<AccessToken, TokenError> {
    if !response.status().is_success() {
        let rejected: Rejected = serde_json::from_slice(response.body()).unwrap_or_default();
        let status = response.status().as_u16();
        let is_rejected =
            matches!(status, 401 | 403) || status == 400 && is_about_credentials(&rejected);
        let said = format!("{} {}", rejected.error, rejected.error_description);
        let said: String = said
            .chars()
            .map(|c| if c.is_control() { ' ' } else { c })
            .take(LONGEST_TEXT)
            .collect();
        let error = TokenError::new(format!(
            "{whom} gives no token: {} {}",
            response.status(),
            said.trim()
        ));
        return Err(match is_rejected {
            true => error.rejected(),
            false => error,
        });
    }
    // The cause is omitted: it may show a part of the token.
    let malformed = || TokenError::new(format!("{whom} answers something that is not a token"));
    let granted: Granted = serde_json::from_slice(response.body()).map_err(|_| malformed())?;
    // Managed identities write numbers as texts.
    let seconds = match &granted.expires_in {
        Value::String(text) => text.parse().ok(),
        other => other.as_u64(),
    };
    let lifetime = Duration::from_secs(seconds.ok_or_else(malformed)?).min(LONGEST);
    Ok(AccessToken::new(granted.access_token, lifetime))
}
