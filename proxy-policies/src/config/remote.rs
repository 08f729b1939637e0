//! Settings of policies that call other services: forward authentication and tokens.

use std::collections::BTreeMap;

use proxy_model::json::{Node, ObjectReader};
use proxy_model::{Problem, Problems, TimeSpan, pointer_to};
use serde::{Deserialize, Serialize};

use super::authorization::{PROTECTED, read_realm};
use super::{missing, positive};

/// A service that authorizes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct ForwardConfig {
    pub(crate) address: String,
    /// `None`: all.
    pub(crate) request_headers: Option<Vec<String>>,
    pub(crate) response_headers: Vec<String>,
    pub(crate) trusts_forwarded: bool,
    pub(crate) timeout: TimeSpan,
}

/// Tokens of an issuer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct JwtConfig {
    pub(crate) issuer: String,
    pub(crate) audiences: Vec<String>,
    pub(crate) jwks_uri: String,
    /// Accepted values by the name of the claim.
    pub(crate) required_claims: BTreeMap<String, Vec<String>>,
    pub(crate) clock_skew: TimeSpan,
    pub(crate) refresh: TimeSpan,
    pub(crate) realm: String,
}

/// The longest time for a decision of another service.
const LONGEST_TIMEOUT: TimeSpan = TimeSpan::from_secs(60);
/// The largest difference of clocks.
const LARGEST_SKEW: TimeSpan = TimeSpan::from_secs(600);

pub(super) fn read_forward(forward: &mut ObjectReader<'_, '_>) -> Option<ForwardConfig> {
    let address = address(forward, "Address", "http://127.0.0.1:9000/verify");
    let sent = names(forward, "RequestHeaders");
    let copied = names(forward, "ResponseHeaders").unwrap_or_default();
    let pointer = forward.pointer_to("ResponseHeaders");
    for (position, name) in copied.iter().enumerate() {
        if PROTECTED.contains(&&**name) {
            let pointer = pointer_to(&pointer, &position.to_string());
            let message = format!("`{name}` is not a header that can be set");
            let problem = Problem::error(pointer, "invalid_header_name", message);
            forward.problems().push(problem);
        }
    }
    let timeout = at_most(forward, "Timeout", LONGEST_TIMEOUT);
    Some(ForwardConfig {
        request_headers: sent,
        response_headers: copied,
        trusts_forwarded: forward.boolean("TrustForwardHeader").unwrap_or_default(),
        timeout: timeout.unwrap_or(TimeSpan::from_secs(5)),
        address: address?,
    })
}

pub(super) fn read_jwt(jwt: &mut ObjectReader<'_, '_>) -> Option<JwtConfig> {
    let issuer = jwt.text("Issuer").filter(|issuer| !issuer.is_empty());
    if issuer.is_none() {
        missing(
            jwt,
            "Issuer",
            "write the `iss` of its tokens: `https://login.example.com/`",
        );
    }
    let audiences = jwt.texts("Audiences").unwrap_or_default();
    if audiences.is_empty() {
        let suggestion =
            "write the `aud` of tokens for these routes; those for others are rejected";
        missing(jwt, "Audiences", suggestion);
    }
    let address = address(
        jwt,
        "JwksUri",
        "https://login.example.com/.well-known/jwks.json",
    );
    let required = jwt.entries("RequiredClaims", |_, node, pointer, problems| {
        accepted(node, pointer, problems)
    });
    let skew = jwt.time_span("ClockSkew");
    if skew.is_some_and(|skew| skew > LARGEST_SKEW) {
        let pointer = jwt.pointer_to("ClockSkew");
        let message = format!("`ClockSkew` is at most {LARGEST_SKEW}");
        jwt.problems()
            .push(Problem::error(pointer, "out_of_range", message));
    }
    let refresh = positive(jwt, "RefreshInterval");
    let realm = read_realm(jwt);
    Some(JwtConfig {
        issuer: issuer?,
        audiences,
        jwks_uri: address?,
        required_claims: required.unwrap_or_default().into_iter().collect(),
        clock_skew: skew.unwrap_or(TimeSpan::from_secs(30)),
        refresh: refresh.unwrap_or(TimeSpan::from_secs(600)),
        realm,
    })
}

/// Reads the accepted values of a claim.
fn accepted(node: &Node, pointer: &str, problems: &mut Problems) -> Option<Vec<String>> {
    let texts: Option<Vec<String>> = match node {
        Node::List(list) => list
            .iter()
            .map(|value| match value {
                Node::Text(text) => Some(text.clone()),
                _ => None,
            })
            .collect(),
        _ => None,
    };
    let texts = texts.filter(|texts| !texts.is_empty());
    if texts.is_none() {
        let message = "expected a list of texts, one of which the claim must have";
        problems.push(
            Problem::error(pointer, "wrong_type", message)
                .with_suggestion("write `[\"orders.read\"]`"),
        );
    }
    texts
}

/// Reads a URL without credentials.
fn address(reader: &mut ObjectReader<'_, '_>, key: &'static str, example: &str) -> Option<String> {
    let suggestion = format!("write `{example}`");
    let Some(text) = reader.text(key) else {
        if reader.peek(key).is_none() {
            missing(reader, key, &suggestion);
        }
        return None;
    };
    let parsed = text.parse::<http::Uri>().ok();
    let is_url = parsed.is_some_and(|uri| {
        let has_host = uri.authority().is_some_and(|authority| {
            !authority.host().is_empty() && !authority.as_str().contains('@')
        });
        has_host && matches!(uri.scheme_str(), Some("http" | "https"))
    });
    if !is_url {
        let pointer = reader.pointer_to(key);
        let message = format!("`{key}` is not a URL of `http` or `https` without credentials");
        let problem = Problem::error(pointer, "invalid_address", message);
        reader.problems().push(problem.with_suggestion(suggestion));
        return None;
    }
    Some(text)
}

/// Reads names of headers, in lower case.
fn names(reader: &mut ObjectReader<'_, '_>, key: &'static str) -> Option<Vec<String>> {
    let pointer = reader.pointer_to(key);
    let written = reader.texts(key)?;
    for (position, name) in written.iter().enumerate() {
        if http::HeaderName::from_bytes(name.as_bytes()).is_err() {
            let pointer = pointer_to(&pointer, &position.to_string());
            let message = format!("`{name}` is not the name of a header");
            let problem = Problem::error(pointer, "invalid_header_name", message);
            reader.problems().push(problem);
        }
    }
    Some(
        written
            .iter()
            .map(|name| name.to_ascii_lowercase())
            .collect(),
    )
}

fn at_most(
    reader: &mut ObjectReader<'_, '_>,
    key: &'static str,
    most: TimeSpan,
) -> Option<TimeSpan> {
    let span = positive(reader, key)?;
    if span > most {
        let pointer = reader.pointer_to(key);
        let message = format!("`{key}` is at most {most}");
        reader
            .problems()
            .push(Problem::error(pointer, "out_of_range", message));
    }
    Some(span)
}
