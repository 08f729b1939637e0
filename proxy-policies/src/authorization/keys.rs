//! The keys of an issuer (RFC 7517), fetched when a token needs one.
//!
//! Clients cannot cause many fetches: keys are fetched when they are old, and when a token names a key that is not
//! known, at most once in [`PAUSE`]. One request fetches, and others that need its result wait for it. Keys that could
//! not be fetched again are used for [`LONGEST_USE`].

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use discovery_http::Transport;
use http::header::ACCEPT;
use http::{HeaderValue, Request, Uri};
use jsonwebtoken::jwk::{AlgorithmParameters, EllipticCurve, Jwk, KeyAlgorithm, PublicKeyUse};
use jsonwebtoken::{Algorithm, DecodingKey, Header};
use parking_lot::Mutex;
use serde_json::Value;
use tokio::time::{Instant, timeout};

use super::service::{Service, ServiceKind, with_causes};
use crate::config::JwtConfig;

/// The least time between two attempts to fetch.
const PAUSE: Duration = Duration::from_secs(10);
/// The time limit of a fetch.
const LIMIT: Duration = Duration::from_secs(5);
/// Maximum age of keys that could not be fetched again.
const LONGEST_USE: Duration = Duration::from_secs(24 * 3600);
/// The longest list of keys, in bytes.
const LONGEST_LIST: usize = 256 * 1024;
/// The most keys that are used.
const MOST_KEYS: usize = 64;

/// A key with the algorithms that it is for.
pub(super) struct Key {
    pub(super) key: DecodingKey,
    pub(super) algorithms: Vec<Algorithm>,
}

/// The result of a look for a token's key.
pub(super) enum Looked {
    /// The key, and the number of the fetch that brought it.
    Key(Arc<Key>, u64),
    Unknown,
    /// The token names no key, and several are for its algorithm.
    Ambiguous,
    /// There are no keys.
    NotFetched,
}

/// The keys of an issuer.
pub(super) struct Keys {
    address: Uri,
    refresh: Duration,
    transport: Arc<dyn Transport>,
    service: Service,
    state: Mutex<KeyState>,
    /// Held by the request that fetches.
    fetching: tokio::sync::Mutex<()>,
}

#[derive(Default)]
struct KeyState {
    named: HashMap<String, Arc<Key>>,
    all: Vec<Arc<Key>>,
    fetched: Option<Instant>,
    /// The end of the last attempt.
    tried: Option<Instant>,
    generation: u64,
}

impl Keys {
    pub(super) fn new(
        policy: &Arc<str>,
        config: &JwtConfig,
        transport: Arc<dyn Transport>,
    ) -> Result<Self, String> {
        let address: Uri = config
            .jwks_uri
            .parse()
            .map_err(|_| "the address is no URL")?;
        Ok(Self {
            service: Service::new(ServiceKind::Keys, policy, &address),
            address,
            refresh: config.refresh.duration(),
            transport,
            state: Mutex::default(),
            fetching: tokio::sync::Mutex::default(),
        })
    }

    /// Looks for the key of a token. Old keys count as unknown while they may be fetched again.
    pub(super) fn look(&self, header: &Header) -> Looked {
        let state = self.state.lock();
        let now = Instant::now();
        let Some(fetched) = state.fetched.filter(|fetched| now < *fetched + LONGEST_USE) else {
            return Looked::NotFetched;
        };
        let is_old = now >= fetched + self.refresh;
        // One request fetches, the others use what there is.
        if is_old && state.may_fetch(now) && self.fetching.try_lock().is_ok() {
            return Looked::Unknown;
        }
        let is_for = |key: &&Arc<Key>| key.algorithms.contains(&header.alg);
        match &header.kid {
            Some(kid) => match state.named.get(kid).filter(is_for) {
                Some(key) => Looked::Key(Arc::clone(key), state.generation),
                None => Looked::Unknown,
            },
            None => {
                let mut fitting = state.all.iter().filter(is_for);
                match (fitting.next(), fitting.next()) {
                    (Some(key), None) => Looked::Key(Arc::clone(key), state.generation),
                    (Some(_), Some(_)) => Looked::Ambiguous,
                    (None, _) => Looked::Unknown,
                }
            }
        }
    }

    /// The place of the keys and the error, while they cannot be fetched.
    pub(super) fn failing(&self) -> Option<String> {
        self.service.failing()
    }

    /// Returns true if a fetch is due, or one is on its way.
    pub(super) fn may_fetch(&self) -> bool {
        self.state.lock().may_fetch(Instant::now()) || self.fetching.try_lock().is_err()
    }

    /// Fetches the keys, unless another request has just done it. Without success the keys stay.
    ///
    /// Cancel safe: the next request tries again.
    pub(super) async fn fetch(&self) {
        let _fetching = self.fetching.lock().await;
        if !self.state.lock().may_fetch(Instant::now()) {
            return;
        }
        let request = {
            let mut request = Request::new(Bytes::new());
            *request.uri_mut() = self.address.clone();
            let accepted = HeaderValue::from_static("application/json");
            request.headers_mut().insert(ACCEPT, accepted);
            request
        };
        let fetched = timeout(LIMIT, self.transport.send(request, LONGEST_LIST)).await;
        let list = match fetched {
            Ok(Ok(response)) if response.status().is_success() => {
                read(response.body()).ok_or_else(|| "the response is no list of keys".to_owned())
            }
            Ok(Ok(response)) => Err(format!("the status {}", response.status().as_u16())),
            Ok(Err(error)) => Err(with_causes(&error)),
            Err(_) => Err(format!("no response within {LIMIT:?}")),
        };
        match &list {
            Ok(_) => self.service.answered(),
            Err(error) => self.service.failed(error),
        }
        let mut state = self.state.lock();
        let now = Instant::now();
        state.tried = Some(now);
        if let Ok(keys) = list {
            state.replace(keys, now);
        }
    }
}

impl KeyState {
    fn may_fetch(&self, now: Instant) -> bool {
        self.tried.is_none_or(|tried| now >= tried + PAUSE)
    }

    fn replace(&mut self, keys: Vec<(Option<String>, Arc<Key>)>, now: Instant) {
        self.all = keys.iter().map(|(_, key)| Arc::clone(key)).collect();
        let named = keys
            .into_iter()
            .filter_map(|(name, key)| Some((name?, key)));
        self.named = named.collect();
        self.fetched = Some(now);
        self.generation += 1;
    }
}

/// Reads a list of keys. Keys that are not for signatures of the known algorithms are left out. `None` if it is no
/// list.
pub(super) fn read(text: &[u8]) -> Option<Vec<(Option<String>, Arc<Key>)>> {
    let list: Value = serde_json::from_slice(text).ok()?;
    let keys = list.get("keys")?.as_array()?.iter().filter_map(|value| {
        let jwk: Jwk = serde_json::from_value(value.clone()).ok()?;
        let is_for_signatures = jwk
            .common
            .public_key_use
            .as_ref()
            .is_none_or(|purpose| *purpose == PublicKeyUse::Signature);
        let algorithms = algorithms(&jwk);
        let key = DecodingKey::from_jwk(&jwk).ok()?;
        let key = Arc::new(Key { key, algorithms });
        let is_used = is_for_signatures && !key.algorithms.is_empty();
        is_used.then_some((jwk.common.key_id, key))
    });
    Some(keys.take(MOST_KEYS).collect())
}

/// The algorithms of a key, by its type and its `alg` field. Empty for a shared secret.
fn algorithms(jwk: &Jwk) -> Vec<Algorithm> {
    use Algorithm::{ES256, ES384, EdDSA, PS256, PS384, PS512, RS256, RS384, RS512};
    let of_kind: &[Algorithm] = match &jwk.algorithm {
        AlgorithmParameters::RSA(_) => &[RS256, RS384, RS512, PS256, PS384, PS512],
        AlgorithmParameters::EllipticCurve(curve) => match curve.curve {
            EllipticCurve::P256 => &[ES256],
            EllipticCurve::P384 => &[ES384],
            _ => &[],
        },
        AlgorithmParameters::OctetKeyPair(pair) if pair.curve == EllipticCurve::Ed25519 => &[EdDSA],
        _ => &[],
    };
    let Some(named) = &jwk.common.key_algorithm else {
        return of_kind.to_vec();
    };
    let is_named = |algorithm: &&Algorithm| {
        let known = match algorithm {
            RS256 => KeyAlgorithm::RS256,
            RS384 => KeyAlgorithm::RS384,
            RS512 => KeyAlgorithm::RS512,
            PS256 => KeyAlgorithm::PS256,
            PS384 => KeyAlgorithm::PS384,
            PS512 => KeyAlgorithm::PS512,
            ES256 => KeyAlgorithm::ES256,
            ES384 => KeyAlgorithm::ES384,
            EdDSA => KeyAlgorithm::EdDSA,
            _ => return false,
        };
        *named == known
    };
    of_kind.iter().filter(is_named).copied().collect()
}
