//! Authentication and authorisation: none, client certificates, bearer tokens.

#[cfg(not(feature = "tls"))]
#[path = "without_tls.rs"]
mod tls;
#[cfg(feature = "tls")]
mod tls;

#[cfg(test)]
mod tests;

use http::header::{AUTHORIZATION, HeaderValue};
use http::{HeaderMap, StatusCode};
use serde::{Deserialize, Serialize};

use super::server::Peer;
use super::wire::Answer;

pub(crate) use self::tls::Tls;
#[cfg(feature = "tls")]
pub use self::tls::{TlsError, TlsOptions};

/// The access of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    /// Queries, but no reports and no changes.
    Reader,
    /// All calls.
    Admin,
}

/// The response of `GetAadMetadata` to a client that needs a token. It is sent without authentication.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AadMetadata {
    /// The authority that issues tokens, `https://login.example/TENANT`.
    pub authority: String,
    /// The application id of the client.
    pub client: String,
    /// The application id of the cluster, which is the audience of tokens.
    pub cluster: String,
    /// The sign-in endpoint.
    pub login: String,
    /// The redirect URI of the sign-in page.
    pub redirect: String,
    /// The tenant.
    pub tenant: String,
}

/// The authentication settings of the gateway.
#[derive(Clone, Debug, Default)]
pub(crate) struct Security {
    /// True if a client certificate is required.
    pub(crate) certificates: bool,
    /// The valid tokens.
    pub(crate) tokens: Vec<(String, Role)>,
    /// The metadata for clients that need a token.
    pub(crate) metadata: AadMetadata,
}

/// The reason for denying access.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum AccessDenied {
    /// 403 with an empty body, as the gateway does; the reason is in the status line.
    Forbidden(&'static str),
    /// 401, with the challenge.
    Unauthorized(HeaderValue),
}

impl AccessDenied {
    /// Returns the response, and the reason phrase of its status line if it is not the standard one.
    pub(crate) fn answer(self) -> (Answer, Option<&'static str>) {
        match self {
            Self::Forbidden(reason) => (Answer::empty(StatusCode::FORBIDDEN), Some(reason)),
            Self::Unauthorized(challenge) => {
                let answer = Answer::empty(StatusCode::UNAUTHORIZED);
                (answer.challenge(challenge), None)
            }
        }
    }
}

impl Security {
    /// Checks the access of a client, or returns the reason for denying it.
    pub(crate) fn admit(
        &self,
        headers: &HeaderMap,
        peer: Peer,
        reads: bool,
        anonymous: bool,
    ) -> Result<(), AccessDenied> {
        if anonymous || (!self.certificates && self.tokens.is_empty()) {
            return Ok(());
        }
        let role = peer.role.or_else(|| self.token_role(headers));
        match role {
            Some(Role::Admin) => Ok(()),
            Some(Role::Reader) if reads => Ok(()),
            Some(Role::Reader) => Err(AccessDenied::Forbidden("Read-only client")),
            None if !self.tokens.is_empty() => Err(self.challenge()),
            None if peer.certificate => {
                Err(AccessDenied::Forbidden("Client certificate not trusted"))
            }
            None => Err(AccessDenied::Forbidden("Client certificate required")),
        }
    }

    /// Returns the role of a bearer token. The word `Bearer` is case-sensitive, as in the real gateway,
    /// although RFC 9110 11.1 makes it case-insensitive.
    fn token_role(&self, headers: &HeaderMap) -> Option<Role> {
        let value = headers.get(AUTHORIZATION)?.to_str().ok()?;
        let token = value.strip_prefix("Bearer ")?.trim();
        self.tokens
            .iter()
            .find(|(known, _)| known == token)
            .map(|(_, role)| *role)
    }

    fn challenge(&self) -> AccessDenied {
        let AadMetadata {
            authority, cluster, ..
        } = &self.metadata;
        let text = format!("Bearer authorization_uri=\"{authority}\", resource_id=\"{cluster}\"");
        let value =
            HeaderValue::from_str(&text).unwrap_or_else(|_| HeaderValue::from_static("Bearer"));
        AccessDenied::Unauthorized(value)
    }
}
