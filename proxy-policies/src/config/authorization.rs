//! Authorization policies.

use std::collections::BTreeMap;

use ipnet::IpNet;
use proxy_model::json::ObjectReader;
use proxy_model::{Problem, Problems, pointer_to};
use serde::{Deserialize, Serialize};

use super::missing;
use crate::authorization::{MAX_COST, cost_of, parse_network};

/// The settings of an authorization policy. A request must meet all parts.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct AuthorizationConfig {
    pub(crate) networks: Option<NetworksConfig>,
    pub(crate) basic: Option<BasicConfig>,
    /// Claims by the header of the request that gets their values.
    pub(crate) claim_headers: BTreeMap<String, String>,
}

/// The networks of clients.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct NetworksConfig {
    /// `None`: all that are not denied.
    pub(crate) allow: Option<Vec<IpNet>>,
    pub(crate) deny: Vec<IpNet>,
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
    let basic = policy.object("Basic", read_basic);
    let claim_headers = read_claim_headers(policy, basic.is_some());
    if networks.is_none() && basic.is_none() {
        missing(
            policy,
            "Networks` or `Basic",
            "say who may use the routes; for everybody, a route says `\"AuthorizationPolicy\": \"Anonymous\"`",
        );
    }
    Some(AuthorizationConfig {
        networks,
        basic,
        claim_headers,
    })
}

fn read_networks(networks: &mut ObjectReader<'_, '_>) -> NetworksConfig {
    let allow = networks.list("Allow", read_network);
    let deny = networks.list("Deny", read_network).unwrap_or_default();
    if allow.is_none() && deny.is_empty() {
        missing(
            networks,
            "Allow` or `Deny",
            "write `\"Allow\": [\"10.0.0.0/8\"]`",
        );
    }
    NetworksConfig { allow, deny }
}

fn read_network(
    node: &proxy_model::json::Node,
    pointer: &str,
    problems: &mut Problems,
) -> Option<IpNet> {
    let proxy_model::json::Node::Text(text) = node else {
        let message = "expected a network such as `10.0.0.0/8`";
        problems.push(Problem::error(pointer, "wrong_type", message));
        return None;
    };
    match parse_network(text) {
        Ok(network) => Some(network),
        Err((message, suggestion)) => {
            let problem = Problem::error(pointer, "invalid_network", message);
            problems.push(match suggestion {
                Some(suggestion) => problem.with_suggestion(suggestion),
                None => problem,
            });
            None
        }
    }
}

fn read_basic(basic: &mut ObjectReader<'_, '_>) -> BasicConfig {
    let realm = basic.text("Realm").unwrap_or_else(|| "proxy".to_owned());
    let is_plain = |c: char| (c.is_ascii_graphic() || c == ' ') && !matches!(c, '"' | '\\');
    if !realm.chars().all(is_plain) {
        let pointer = basic.pointer_to("Realm");
        let message = "the realm has a sign that is not of ASCII, a quote or a backslash";
        basic
            .problems()
            .push(Problem::error(pointer, "invalid_realm", message));
    }
    let pointer = basic.pointer_to("Users");
    let users = basic.text_map("Users");
    let is_written = users.is_some();
    let users: BTreeMap<String, String> = users.unwrap_or_default().into_iter().collect();
    if users.is_empty() {
        let suggestion = "write names with hashes that `htpasswd -nB NAME` prints";
        if is_written {
            let message = "there is no user, so nobody may use the routes";
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
            None => "the text is no hash of bcrypt".to_owned(),
        };
        basic.problems().push(
            Problem::error(pointer, "invalid_password_hash", message)
                .with_suggestion("write what `htpasswd -nB NAME` prints after the colon"),
        );
    }
    BasicConfig { realm, users }
}

/// Headers that a policy cannot set: those of the connection and of the framing.
const PROTECTED: [&str; 12] = [
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

fn read_claim_headers(
    policy: &mut ObjectReader<'_, '_>,
    has_claims: bool,
) -> BTreeMap<String, String> {
    let pointer = policy.pointer_to("ClaimHeaders");
    let written = policy.text_map("ClaimHeaders").unwrap_or_default();
    if !written.is_empty() && !has_claims {
        let message = "there are no claims without `Basic`";
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
        headers.insert(name, claim);
    }
    headers
}
