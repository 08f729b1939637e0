//! Authorization: who may use a route.

mod basic;
mod certificate;
mod forward;
mod jwt;
mod keys;
mod networks;
mod service;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use discovery_http::Transport;
use http::{HeaderName, HeaderValue, StatusCode};

use self::basic::{Basic, PasswordCheck};
pub(crate) use self::basic::{MAX_COST, cost_of};
use self::certificate::Certificates;
use self::forward::{Asking, ForwardAuth};
use self::jwt::{Fetching, Jwt};
use self::networks::Networks;
#[cfg(feature = "redis")]
pub(crate) use self::service::{Service, ServiceKind};
use crate::config::AuthorizationConfig;
use crate::head::{Answer, Head};
use crate::named::Visit;

/// Authenticated properties of a client, by name.
pub(crate) type Claims = BTreeMap<String, String>;

/// A compiled policy.
pub(crate) struct Authorization {
    networks: Option<Networks>,
    certificates: Option<Certificates>,
    way: Option<Way>,
    claim_headers: Arc<[(Box<str>, Box<str>)]>,
}

/// The way to know who the client is.
enum Way {
    Basic(Basic),
    Jwt(Jwt),
    Forward(ForwardAuth),
}

/// The decision about a request.
pub(crate) enum Judged {
    /// The client may use the route. The claims, if the policy requires any.
    Admitted(Option<Arc<Claims>>),
    /// The client may use the route; the headers are for the destination.
    Told(Arc<Claims>, Vec<(HeaderName, HeaderValue)>),
    /// The client is rejected by its network or its claims.
    Denied(Answer),
    /// The client must authenticate.
    Unauthenticated(Answer),
    /// The decision is not possible now.
    Unavailable(Answer),
}

/// A decision that takes time.
pub(crate) enum Judging {
    Password(PasswordCheck),
    Keys(Fetching),
    Service(Box<Asking>),
}

impl Judging {
    /// Waits for the decision.
    ///
    /// Cancel safe.
    pub(crate) async fn wait(self) -> Judged {
        match self {
            Self::Password(check) => check.wait().await,
            Self::Keys(fetching) => fetching.wait().await,
            Self::Service(asking) => asking.wait().await,
        }
    }
}

impl Authorization {
    /// # Errors
    ///
    /// The settings are none that were read, or the program has no client of HTTP for them.
    pub(crate) fn new(
        name: &Arc<str>,
        config: &AuthorizationConfig,
        transport: Option<&Arc<dyn Transport>>,
    ) -> Result<Self, String> {
        let transport = || {
            let transport = transport.ok_or("the program gives policies no client of HTTP")?;
            Ok::<_, String>(Arc::clone(transport))
        };
        let way = match (&config.basic, &config.jwt, &config.forward) {
            (Some(basic), _, _) => Some(Way::Basic(Basic::new(basic))),
            (None, Some(jwt), _) => Some(Way::Jwt(Jwt::new(name, jwt, transport()?)?)),
            (None, None, Some(forward)) => {
                Some(Way::Forward(ForwardAuth::new(name, forward, transport()?)?))
            }
            (None, None, None) => None,
        };
        Ok(Self {
            networks: config.networks.as_ref().map(Networks::new),
            certificates: config.certificate.as_ref().map(Certificates::new),
            way,
            claim_headers: config
                .claim_headers
                .iter()
                .map(|(header, claim)| (header.as_str().into(), claim.as_str().into()))
                .collect(),
        })
    }

    /// Judges a request. `Ok`: that takes time.
    pub(crate) fn check(&self, head: &mut impl Head, visit: &Visit<'_>) -> Result<Judging, Judged> {
        // What only the proxy may say is taken out of the request first.
        for (header, _) in &*self.claim_headers {
            head.remove(header);
        }
        if let Some(Way::Forward(forward)) = &self.way {
            forward.clean(head);
        }
        let may_come = self
            .networks
            .as_ref()
            .is_none_or(|networks| networks.admit(visit.connection.client_address()));
        if !may_come {
            return Err(Judged::Denied(
                Answer::new(StatusCode::FORBIDDEN).saying("Forbidden."),
            ));
        }
        let mut claims = None;
        if let Some(certificates) = &self.certificates {
            let presented = visit.connection.client_certificate();
            claims = Some(certificates.admit(presented.as_ref())?);
        }
        // Of two the destination might believe the one that was not looked at.
        let is_repeated = head.is_repeated("authorization");
        let field = head.header("authorization").filter(|_| !is_repeated);
        match &self.way {
            None => Err(Judged::Admitted(claims)),
            Some(Way::Basic(basic)) => basic.check(field).map(Judging::Password),
            Some(Way::Jwt(jwt)) => jwt.check(field).map(Judging::Keys),
            Some(Way::Forward(forward)) => {
                let asking = forward.ask(head, visit)?;
                Ok(Judging::Service(Box::new(asking)))
            }
        }
    }

    /// The service that is needed and does not answer, with its error.
    pub(crate) fn failing(&self) -> Option<String> {
        match self.way.as_ref()? {
            Way::Basic(_) => None,
            Way::Jwt(jwt) => jwt.failing(),
            Way::Forward(forward) => forward.failing(),
        }
    }

    /// Sets the headers by which the destination learns the verified claims of the client.
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
