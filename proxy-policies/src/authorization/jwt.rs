//! JSON Web Tokens (RFC 7519) as bearer tokens (RFC 6750).
//!
//! A token is verified with a key of its issuer ([`Keys`]) and with the algorithm of that key: the `alg` field of
//! the token does not choose it. Algorithms with a shared secret, and `none`, are not supported.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use discovery_http::Transport;
use http::{HeaderValue, StatusCode};
use jsonwebtoken::{Algorithm, Header, Validation, decode, decode_header};
use parking_lot::Mutex;
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};
use tokio::time::Instant;

use super::keys::{Keys, Looked};
use super::service::unavailable;
use super::{Claims, Judged};
use crate::config::JwtConfig;
use crate::head::Answer;

/// The longest `Authorization` field that is looked at, in bytes.
const LONGEST_FIELD: usize = 8192;
/// The longest value of a claim that is passed on, in bytes.
const LONGEST_CLAIM: usize = 1024;
/// The most tokens that are known to be valid.
const MOST_KNOWN: usize = 2_000;

/// A compiled policy for tokens. Cheap to clone.
#[derive(Clone)]
pub(super) struct Jwt(Arc<Inner>);

struct Inner {
    keys: Keys,
    validation: Validation,
    required: BTreeMap<String, Vec<String>>,
    challenge: String,
    known: Mutex<HashMap<[u8; 32], Known>>,
}

/// A token that was valid.
struct Known {
    claims: Arc<Claims>,
    /// The keys by which it was.
    generation: u64,
    until: Instant,
}

/// A token whose key must be fetched.
pub(crate) struct Fetching {
    jwt: Jwt,
    token: String,
}

/// The reason why a token is not valid.
enum Invalid {
    /// The key may be there after the next fetch.
    NoKey,
    Token(&'static str),
    /// The token is valid, and does not have a required claim.
    Scope,
    /// No keys are available.
    Unavailable,
}

impl Jwt {
    /// # Errors
    ///
    /// The settings are none that were read.
    pub(super) fn new(
        policy: &Arc<str>,
        config: &JwtConfig,
        transport: Arc<dyn Transport>,
    ) -> Result<Self, String> {
        let keys = Keys::new(policy, config, transport)?;
        // The algorithms are replaced by those of the key.
        let mut validation = Validation::new(Algorithm::ES256);
        validation.leeway = config.clock_skew.duration().as_secs();
        validation.validate_nbf = true;
        validation.set_issuer(&[&config.issuer]);
        validation.set_audience(&config.audiences);
        validation.set_required_spec_claims(&["exp", "iss", "aud"]);
        Ok(Self(Arc::new(Inner {
            keys,
            validation,
            required: config.required_claims.clone(),
            challenge: format!("Bearer realm=\"{}\"", config.realm),
            known: Mutex::default(),
        })))
    }

    /// The place of the keys and the error, while they cannot be fetched.
    pub(super) fn failing(&self) -> Option<String> {
        self.0.keys.failing()
    }

    /// Checks the `Authorization` field of a request. `Ok`: a key must be fetched first.
    pub(super) fn check(&self, field: Option<&[u8]>) -> Result<Fetching, Judged> {
        let Some(token) = field.and_then(token_in) else {
            return Err(self.challenged(StatusCode::UNAUTHORIZED, ""));
        };
        match self.verify(token, false) {
            Ok(claims) => Err(Judged::Admitted(Some(claims))),
            Err(Invalid::NoKey | Invalid::Unavailable) if self.0.keys.may_fetch() => Ok(Fetching {
                jwt: self.clone(),
                token: token.to_owned(),
            }),
            Err(invalid) => Err(self.rejected(&invalid)),
        }
    }

    /// Returns the claims of a valid token.
    fn verify(&self, token: &str, is_last: bool) -> Result<Arc<Claims>, Invalid> {
        let inner = &*self.0;
        let header = decode_header(token).map_err(|_| Invalid::Token("it is not a token"))?;
        let looked = inner.keys.look(&header);
        let (key, generation) = match looked {
            Looked::Key(key, generation) => (key, generation),
            Looked::Unknown => return Err(Invalid::NoKey),
            Looked::Ambiguous => return Err(Invalid::Token("it does not name its key")),
            Looked::NotFetched => return Err(Invalid::Unavailable),
        };
        let digest: [u8; 32] = Sha256::digest(token).into();
        let now = Instant::now();
        if !is_last && let Some(claims) = inner.known(&digest, generation, now) {
            return Ok(claims);
        }
        reject_extensions(&header)?;
        let mut validation = inner.validation.clone();
        // The algorithms of the key, never those of the token.
        validation.algorithms = key.algorithms.clone();
        let decoded = decode::<Map<String, Value>>(token, &key.key, &validation);
        let decoded = decoded.map_err(|error| Invalid::Token(reason(error.kind())))?;
        if !inner.has_required(&decoded.claims) {
            return Err(Invalid::Scope);
        }
        let claims = Arc::new(told(&decoded.claims));
        let lifetime = lifetime(&decoded.claims, inner.validation.leeway);
        inner.note(
            digest,
            Known {
                claims: Arc::clone(&claims),
                generation,
                until: now + lifetime,
            },
        );
        Ok(claims)
    }

    fn rejected(&self, invalid: &Invalid) -> Judged {
        match invalid {
            Invalid::NoKey => self.invalid("its key is not known"),
            Invalid::Token(why) => self.invalid(why),
            Invalid::Scope => {
                self.challenged(StatusCode::FORBIDDEN, ", error=\"insufficient_scope\"")
            }
            Invalid::Unavailable => {
                let text = "The keys of the issuer are not available.";
                Judged::Unavailable(unavailable(text))
            }
        }
    }

    fn invalid(&self, why: &str) -> Judged {
        let more = format!(", error=\"invalid_token\", error_description=\"{why}\"");
        self.challenged(StatusCode::UNAUTHORIZED, &more)
    }

    fn challenged(&self, status: StatusCode, more: &str) -> Judged {
        let is_denied = status == StatusCode::FORBIDDEN;
        let text = if is_denied {
            "Forbidden."
        } else {
            "Unauthorized."
        };
        let mut answer = Answer::new(status).saying(text);
        let challenge = format!("{}{more}", self.0.challenge);
        // The realm was checked, and the reasons are ours.
        if let Ok(challenge) = HeaderValue::try_from(challenge) {
            answer.push("www-authenticate", challenge);
        }
        match is_denied {
            true => Judged::Denied(answer),
            false => Judged::Unauthenticated(answer),
        }
    }
}

impl Fetching {
    /// Waits for the keys, and judges.
    ///
    /// Cancel safe.
    pub(super) async fn wait(self) -> Judged {
        let Self { jwt, token } = self;
        jwt.0.keys.fetch().await;
        match jwt.verify(&token, true) {
            Ok(claims) => Judged::Admitted(Some(claims)),
            Err(invalid) => jwt.rejected(&invalid),
        }
    }
}

impl Inner {
    fn known(&self, digest: &[u8; 32], generation: u64, now: Instant) -> Option<Arc<Claims>> {
        let known = self.known.lock();
        let known = known.get(digest)?;
        let is_valid = known.generation == generation && now < known.until;
        is_valid.then(|| Arc::clone(&known.claims))
    }

    fn note(&self, digest: [u8; 32], valid: Known) {
        let mut known = self.known.lock();
        if known.len() >= MOST_KNOWN {
            let now = Instant::now();
            let generation = valid.generation;
            known.retain(|_, known| known.generation == generation && now < known.until);
        }
        // Without room a token is verified again, which is only slower.
        if known.len() < MOST_KNOWN {
            known.insert(digest, valid);
        }
    }

    /// Returns true if each required claim has one of its values.
    fn has_required(&self, claims: &Map<String, Value>) -> bool {
        self.required.iter().all(|(name, accepted)| {
            let is_accepted = |text: &str| accepted.iter().any(|value| value == text);
            match claims.get(name) {
                Some(Value::Array(values)) => {
                    values.iter().filter_map(Value::as_str).any(is_accepted)
                }
                // A list of scopes is one text (RFC 8693 section 4.2).
                Some(Value::String(text)) if name == "scope" => text.split(' ').any(is_accepted),
                Some(Value::String(text)) => is_accepted(text),
                Some(value @ (Value::Bool(_) | Value::Number(_))) => {
                    is_accepted(&value.to_string())
                }
                Some(Value::Object(_) | Value::Null) | None => false,
            }
        })
    }
}

/// The token in an `Authorization` field.
pub(super) fn token_in(field: &[u8]) -> Option<&str> {
    if field.len() > LONGEST_FIELD {
        return None;
    }
    let (scheme, token) = field.split_at_checked(7)?;
    if !scheme.eq_ignore_ascii_case(b"bearer ") {
        return None;
    }
    let token = str::from_utf8(token.trim_ascii()).ok()?;
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    (!token.is_empty() && token.bytes().all(is_plain)).then_some(token)
}

/// Rejects tokens with critical extensions, none of which are supported (RFC 7515 section 4.1.11).
fn reject_extensions(header: &Header) -> Result<(), Invalid> {
    match header.crit {
        None => Ok(()),
        Some(_) => Err(Invalid::Token("it needs an extension")),
    }
}

/// Returns how long a valid token may be cached.
fn lifetime(claims: &Map<String, Value>, leeway: u64) -> Duration {
    const LONGEST: u64 = 3600;
    let expires = claims
        .get("exp")
        .and_then(Value::as_f64)
        .unwrap_or_default();
    let now = jsonwebtoken::get_current_timestamp();
    // Negative and huge numbers end at the limits.
    let left = (expires as u64).saturating_add(leeway).saturating_sub(now);
    Duration::from_secs(left.min(LONGEST))
}

/// The claims that others may use: texts, numbers, and lists of texts.
fn told(claims: &Map<String, Value>) -> Claims {
    let text = |value: &Value| match value {
        Value::String(text) => Some(text.clone()),
        Value::Bool(_) | Value::Number(_) => Some(value.to_string()),
        Value::Array(values) => {
            let texts: Option<Vec<_>> = values.iter().map(Value::as_str).collect();
            texts.map(|texts| texts.join(","))
        }
        Value::Null | Value::Object(_) => None,
    };
    let texts = claims
        .iter()
        .filter_map(|(name, value)| Some((name.clone(), text(value)?)));
    texts
        .filter(|(_, text)| text.len() <= LONGEST_CLAIM)
        .collect()
}

/// The error as a text that reveals nothing about the keys.
fn reason(kind: &jsonwebtoken::errors::ErrorKind) -> &'static str {
    use jsonwebtoken::errors::ErrorKind;
    match kind {
        ErrorKind::ExpiredSignature => "it has expired",
        ErrorKind::ImmatureSignature => "it is not valid yet",
        ErrorKind::InvalidAudience => "its audience is another",
        ErrorKind::InvalidIssuer => "it is of another issuer",
        ErrorKind::MissingRequiredClaim(_) => "a claim is missing",
        ErrorKind::InvalidAlgorithm => "its algorithm is not that of the key",
        ErrorKind::InvalidSignature => "its signature is wrong",
        _ => "it is not a token",
    }
}
