//! Authorization: who may use a route.

mod basic;
mod networks;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use http::{HeaderValue, StatusCode};

use self::basic::{Basic, PasswordCheck};
pub(crate) use self::basic::{MAX_COST, cost_of};
use self::networks::Networks;
pub(crate) use self::networks::parse_network;
use crate::config::AuthorizationConfig;
use crate::head::{Answer, Head};
use crate::named::Visit;

/// Authenticated properties of a client, by name.
pub(crate) type Claims = BTreeMap<String, String>;

/// A compiled policy.
pub(crate) struct Authorization {
    networks: Option<Networks>,
    basic: Option<Basic>,
    claim_headers: Arc<[(Box<str>, Box<str>)]>,
}

/// The decision about a request.
pub(crate) enum Judged {
    /// The client may use the route. The claims, if it was asked for any.
    Admitted(Option<Arc<Claims>>),
    /// The client is rejected by its network.
    Denied(Answer),
    /// The client has to say who it is.
    Unauthenticated(Answer),
    /// The decision is not possible now.
    Unavailable(Answer),
}

/// A decision that takes time.
pub(crate) struct Judging(PasswordCheck);

impl Judging {
    /// Waits for the decision.
    ///
    /// Cancel safe.
    pub(crate) async fn wait(self) -> Judged {
        self.0.wait().await
    }
}

impl Authorization {
    pub(crate) fn new(config: &AuthorizationConfig) -> Self {
        Self {
            networks: config.networks.as_ref().map(Networks::new),
            basic: config.basic.as_ref().map(Basic::new),
            claim_headers: config
                .claim_headers
                .iter()
                .map(|(header, claim)| (header.as_str().into(), claim.as_str().into()))
                .collect(),
        }
    }

    /// Returns true if a decision never takes time.
    pub(crate) fn is_immediate(&self) -> bool {
        self.basic.is_none()
    }

    /// Judges a request. `Ok`: that takes time.
    pub(crate) fn check(&self, head: &mut impl Head, visit: &Visit<'_>) -> Result<Judging, Judged> {
        // What only the proxy may say is taken out of the request first.
        for (header, _) in &*self.claim_headers {
            head.remove(header);
        }
        let may_come = self
            .networks
            .as_ref()
            .is_none_or(|networks| networks.admit(visit.connection.client_address()));
        if !may_come {
            return Err(Judged::Denied(
                Answer::new(StatusCode::FORBIDDEN).saying("Forbidden.\n"),
            ));
        }
        match &self.basic {
            None => Err(Judged::Admitted(None)),
            Some(basic) => basic.check(head.header("authorization")).map(Judging),
        }
    }

    /// Tells the destination what is certain of the client.
    pub(crate) fn tell(&self, claims: &Claims, head: &mut impl Head) {
        for (header, claim) in &*self.claim_headers {
            let value = claims.get(&**claim);
            if let Some(value) = value.and_then(|value| HeaderValue::from_str(value).ok()) {
                head.set(header, value);
            }
        }
    }
}

impl fmt::Debug for Authorization {
    /// Leaves out the settings, which may hold secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Authorization").finish_non_exhaustive()
    }
}
