//! Authorization policies.

use std::collections::BTreeMap;

use proxy_model::json::{Node, ObjectReader};
use proxy_model::{Problem, Problems, pointer_to};
use proxy_runtime::{Network, NetworkError};
use serde::{Deserialize, Serialize};

use super::certificate::{self, CERTIFICATE_CLAIMS, CertificateConfig};
use super::missing;
use super::remote::{ForwardConfig, JwtConfig, read_forward, read_jwt};
use crate::authorization::{MAX_COST, cost_of};

/// The settings of an authorization policy. A request must meet all parts.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct AuthorizationConfig {
    pub(crate) networks: Option<NetworksConfig>,
    pub(crate) certificate: Option<CertificateConfig>,
    pub(crate) basic: Option<BasicConfig>,
    pub(crate) jwt: Option<JwtConfig>,
    pub(crate) forward: Option<ForwardConfig>,
    /// Claims by the header of the request that gets their values.
    pub(crate) claim_headers: BTreeMap<String, String>,
}

/// A network, as text where a configuration carries it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub(crate) struct NetworkSetting(pub(crate) Network);

impl TryFrom<String> for NetworkSetting {
    type Error = NetworkError;

    fn try_from(text: String) -> Result<Self, NetworkError> {
        text.parse().map(Self)
    }
}

impl From<NetworkSetting> for String {
    fn from(setting: NetworkSetting) -> Self {
        setting.0.to_string()
    }
}

/// The networks of clients.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct NetworksConfig {
    /// `None`: all that are not denied.
    pub(crate) allow: Option<Vec<NetworkSetting>>,
    pub(crate) deny: Vec<NetworkSetting>,
}

/// Names and passwords.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct BasicConfig {
    pub(crate) realm: String,
    /// Hashes of passwords by the name of the user.
    pub(crate) users: BTreeMap<String, String>,
}

pub(super) fn read(policy: &mut ObjectReader<'_, '_>) -> Option<AuthorizationConfig> {
    let networks = policy.object("Networks", read_networks);
    let certificate = policy.object("ClientCertificate", certificate::read);
    let basic = policy.object("Basic", read_basic);
    let jwt = policy.object("Jwt", read_jwt);
    let forward = policy.object("ForwardAuth", read_forward);
    let ways = [
        ("Basic", basic.is_some()),
        ("Jwt", jwt.is_some()),
        ("ForwardAuth", forward.is_some()),
    ];
    let mut ways = ways.iter().filter(|(_, is_there)| *is_there);
    let way = ways.next();
    if let (Some((first, _)), Some((second, _))) = (way, ways.next()) {
        let pointer = policy.pointer_to(second);
        let message = format!("`{first}` says who the client is already");
        policy.problems().push(
            Problem::error(pointer, "contradiction", message).with_suggestion("keep one of them"),
        );
    }
    let known = KnownClaims {
        // Those of the way take their place.
        certificate: certificate.is_some() && way.is_none(),
        basic: basic.is_some(),
        token: jwt.is_some(),
    };
    let claim_headers = read_claim_headers(policy, known);
    if networks.is_none() && certificate.is_none() && way.is_none() {
        missing(
            policy,
            "Networks`, `ClientCertificate`, `Basic`, `Jwt` or `ForwardAuth",
            "say who may use the routes; for everybody, a route says `\"AuthorizationPolicy\": \"Anonymous\"`",
        );
    }
    Some(AuthorizationConfig {
        networks,
        certificate,
        basic,
        jwt: jwt.flatten(),
        forward: forward.flatten(),
        claim_headers,
    })
}

fn read_networks(networks: &mut ObjectReader<'_, '_>) -> NetworksConfig {
    let settings = |networks: Vec<Network>| -> Vec<NetworkSetting> {
        networks.into_iter().map(NetworkSetting).collect()
    };
    let is_empty = matches!(networks.peek("Allow"), Some(Node::List(list)) if list.is_empty());
    let allow = networks.list("Allow", read_network).map(settings);
    if is_empty {
        let pointer = networks.pointer_to("Allow");
        let message = "no network is allowed, so every request is rejected";
        networks.problems().push(
            Problem::error(pointer, "missing_key", message).with_suggestion(
                "name a network, or remove `Allow` to allow all that are not denied",
            ),
        );
    }
    let deny = networks.list("Deny", read_network);
    let deny = deny.map(settings).unwrap_or_default();
    if allow.is_none() && deny.is_empty() {
        missing(
            networks,
            "Allow` or `Deny",
            "write `\"Allow\": [\"10.0.0.0/8\"]`",
        );
    }
    NetworksConfig { allow, deny }
}

/// Reads a network such as `10.0.0.0/8` of a configuration. A mistake is added to `problems`.
pub fn read_network(node: &Node, pointer: &str, problems: &mut Problems) -> Option<Network> {
    let Node::Text(text) = node else {
        let message = "expected a network such as `10.0.0.0/8`";
        problems.push(Problem::error(pointer, "wrong_type", message));
        return None;
    };
    match text.parse::<Network>() {
        Ok(network) => Some(network),
        Err(error) => {
            let problem = Problem::error(pointer, "invalid_network", error.to_string());
            problems.push(match error.suggestion() {
                Some(suggestion) => problem.with_suggestion(suggestion),
                None => problem,
            });
            None
        }
    }
}

/// Reads the realm, the name of the protected area that clients see.
pub(super) fn read_realm(reader: &mut ObjectReader<'_, '_>) -> String {
    let realm = reader.text("Realm").unwrap_or_else(|| "proxy".to_owned());
    let is_plain = |c: char| (c.is_ascii_graphic() || c == ' ') && !matches!(c, '"' | '\\');
    if !realm.chars().all(is_plain) {
        let pointer = reader.pointer_to("Realm");
        let message = "the realm has a sign that is not of ASCII, a quote or a backslash";
        reader
            .problems()
            .push(Problem::error(pointer, "invalid_realm", message));
    }
    realm
}

fn read_basic(basic: &mut ObjectReader<'_, '_>) -> BasicConfig {
    let realm = read_realm(basic);
    let pointer = basic.pointer_to("Users");
    let users = basic.text_map("Users");
    let is_written = users.is_some();
    let users: BTreeMap<String, String> = users.unwrap_or_default().into_iter().collect();
    if users.is_empty() {
        let suggestion = "write names with hashes that `htpasswd -nB NAME` prints";
        if is_written {
            let message = "there is no user, so every request is rejected";
            basic.problems().push(
                Problem::error(pointer.clone(), "missing_key", message).with_suggestion(suggestion),
            );
        } else {
            missing(basic, "Users", suggestion);
        }
    }
    for (name, hash) in &users {
        let pointer = pointer_to(&pointer, name);
        if name.is_empty() || name.contains(':') || name.chars().any(char::is_control) {
            let message = "the name of a user is not empty, and has no colon";
            basic
                .problems()
                .push(Problem::error(pointer.clone(), "invalid_user", message));
        }
        let message = match cost_of(hash) {
            Some(cost) if cost <= MAX_COST => continue,
            Some(cost) => {
                format!(
                    "the hash has the cost {cost}; each check would take seconds, so {MAX_COST} is the most"
                )
            }
            // The text itself may be a password.
            None => "the text is not a bcrypt hash".to_owned(),
        };
        basic.problems().push(
            Problem::error(pointer, "invalid_password_hash", message)
                .with_suggestion("write what `htpasswd -nB NAME` prints after the colon"),
        );
    }
    BasicConfig { realm, users }
}

/// Headers that a policy cannot set: those of the connection and of the framing.
pub(super) const PROTECTED: [&str; 12] = [
    "connection",
    "content-length",
    "expect",
    "host",
    "keep-alive",
    "proxy-authenticate",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// The claim of `Basic`: the name of the user.
pub(crate) const BASIC_CLAIM: &str = "name";

/// The parts of a policy that have claims.
#[derive(Clone, Copy)]
struct KnownClaims {
    certificate: bool,
    basic: bool,
    token: bool,
}

impl KnownClaims {
    /// The names of the claims. `None` if any may be there.
    fn names(self) -> Option<&'static [&'static str]> {
        match self {
            Self { token: true, .. } => None,
            Self { basic: true, .. } => Some(&[BASIC_CLAIM]),
            _ => Some(&CERTIFICATE_CLAIMS),
        }
    }
}

fn read_claim_headers(
    policy: &mut ObjectReader<'_, '_>,
    known: KnownClaims,
) -> BTreeMap<String, String> {
    let pointer = policy.pointer_to("ClaimHeaders");
    let written = policy.text_map("ClaimHeaders").unwrap_or_default();
    let has_claims = known.certificate || known.basic || known.token;
    if !written.is_empty() && !has_claims {
        let message = "there are no claims without `Basic`, `Jwt` or `ClientCertificate`";
        policy
            .problems()
            .push(Problem::error(pointer.clone(), "no_effect", message));
    }
    let mut headers = BTreeMap::new();
    for (header, claim) in written {
        let name = header.to_ascii_lowercase();
        let is_name = http::HeaderName::from_bytes(name.as_bytes()).is_ok();
        if !is_name || PROTECTED.contains(&&*name) {
            let pointer = pointer_to(&pointer, &header);
            let message = format!("`{header}` is not a header that can be set");
            policy
                .problems()
                .push(Problem::error(pointer, "invalid_header_name", message));
        }
        let names = known.names().filter(|_| has_claims).unwrap_or_default();
        if !names.is_empty() && !names.contains(&&*claim) {
            let pointer = pointer_to(&pointer, &header);
            let message = format!("the policy has no claim `{claim}`");
            policy.problems().push(
                Problem::error(pointer, "no_effect", message)
                    .with_suggestion(format!("write `{}`", names.join("` or `"))),
            );
        }
        headers.insert(name, claim);
    }
    headers
}
