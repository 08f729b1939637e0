//! Basic authentication (RFC 7617) with hashed passwords.
//!
//! A hash is slow on purpose, and who sends passwords decides how often one is checked. So hashes are checked on
//! threads that may block, no more than a few at a time, with a bound for those that wait; and who has shown the right
//! password is known for a while.

use std::collections::{BTreeMap, HashMap};
use std::hash::BuildHasher;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::{HeaderValue, StatusCode};
use parking_lot::Mutex;
use proxy_runtime::Cause;
use sha2::{Digest, Sha256};
use tokio::sync::Semaphore;
use tokio::time::Instant;

use super::{Claims, Judged};
use crate::config::{BASIC_CLAIM, BasicConfig};
use crate::head::Answer;

/// The highest cost of a hash. Each step doubles the time; this one takes about a second.
pub(crate) const MAX_COST: u32 = 14;
/// The lowest cost that bcrypt has.
const LEAST_COST: u32 = 4;
/// The longest `Authorization` field that is looked at, in bytes.
const LONGEST_FIELD: usize = 4096;
/// The longest password, in bytes: bcrypt ignores what is beyond.
const LONGEST_PASSWORD: usize = 72;
/// Hashes that are checked at a time, by all policies.
static CHECKS: Semaphore = Semaphore::const_new(2);
/// Requests that wait for a check, of all policies.
static WAITING: AtomicUsize = AtomicUsize::new(0);
/// The most requests that wait for a check.
const MOST_WAITING: usize = 256;
/// The time for which a correct password is remembered.
const KNOWN_FOR: Duration = Duration::from_secs(300);
/// The most passwords that are known.
const MOST_KNOWN: usize = 10_000;
/// The cost of a hash of bcrypt. `None` if it is none.
pub(crate) fn cost_of(hash: &str) -> Option<u32> {
    let parts: bcrypt::HashParts = hash.parse().ok()?;
    Some(parts.get_cost()).filter(|cost| *cost >= LEAST_COST)
}

/// Users, and the passwords that were right.
pub(super) struct Basic {
    challenge: HeaderValue,
    shared: Arc<Shared>,
}

struct Shared {
    challenge: HeaderValue,
    users: BTreeMap<String, String>,
    /// The hash with the highest cost, checked for unknown users, so that the time does not reveal users.
    nobody: String,
    /// Digests of correct credentials, with the time of their expiry.
    known: Mutex<HashMap<[u8; 32], Instant>>,
    /// Makes digests that are of no use elsewhere.
    secret: [u8; 32],
}

/// A password to check.
pub(crate) struct PasswordCheck {
    shared: Arc<Shared>,
    user: String,
    password: Vec<u8>,
    digest: [u8; 32],
}

impl Basic {
    pub(super) fn new(config: &BasicConfig) -> Self {
        let challenge = format!("Basic realm=\"{}\", charset=\"UTF-8\"", config.realm);
        let challenge = HeaderValue::from_str(&challenge)
            .unwrap_or_else(|_| HeaderValue::from_static("Basic realm=\"proxy\""));
        Self {
            challenge: challenge.clone(),
            shared: Arc::new(Shared {
                challenge,
                users: config.users.clone(),
                nobody: config
                    .users
                    .values()
                    .max_by_key(|hash| cost_of(hash))
                    .cloned()
                    .unwrap_or_default(),
                known: Mutex::default(),
                secret: secret(),
            }),
        }
    }

    /// Looks at the credentials of a request. `Ok`: they are to be checked.
    pub(super) fn check(&self, field: Option<&[u8]>) -> Result<PasswordCheck, Judged> {
        let credentials = field.and_then(credentials);
        let Some((user, password)) = credentials else {
            return Err(Judged::Unauthenticated(challenged(&self.challenge)));
        };
        let digest = self.shared.digest(&user, &password);
        if self.shared.knows(&digest, Instant::now()) {
            return Err(admitted(user));
        }
        Ok(PasswordCheck {
            shared: Arc::clone(&self.shared),
            user,
            password,
            digest,
        })
    }
}

/// The name and the password in an `Authorization` field.
fn credentials(field: &[u8]) -> Option<(String, Vec<u8>)> {
    if field.len() > LONGEST_FIELD {
        return None;
    }
    let (scheme, rest) = field.split_at_checked(6)?;
    if !scheme.eq_ignore_ascii_case(b"basic ") {
        return None;
    }
    let decoded = STANDARD.decode(rest.trim_ascii()).ok()?;
    let colon = decoded.iter().position(|byte| *byte == b':')?;
    let (user, password) = (&decoded[..colon], &decoded[colon + 1..]);
    let user = str::from_utf8(user).ok()?.to_owned();
    (password.len() <= LONGEST_PASSWORD).then(|| (user, password.to_vec()))
}

impl PasswordCheck {
    /// Waits for the result.
    ///
    /// Cancel safe: a check that was begun ends for nothing.
    pub(super) async fn wait(self) -> Judged {
        let Self {
            shared,
            user,
            password,
            digest,
        } = self;
        let Some(_place) = CheckPermit::take() else {
            return Judged::Unavailable(busy());
        };
        let Ok(permit) = CHECKS.acquire().await else {
            return Judged::Unavailable(busy());
        };
        // Another request may have shown the same password meanwhile.
        if shared.knows(&digest, Instant::now()) {
            return admitted(user);
        }
        let hash = shared.users.get(&user);
        let is_user = hash.is_some();
        let hash = hash.unwrap_or(&shared.nobody).clone();
        let checked = tokio::task::spawn_blocking(move || {
            // The permit is held while the thread works, even if the request is gone.
            let _permit = permit;
            let is_right = bcrypt::verify(&password, &hash).unwrap_or(false);
            is_user && is_right
        });
        match checked.await {
            Ok(true) => {
                shared.note(digest, Instant::now());
                admitted(user)
            }
            Ok(false) => Judged::Unauthenticated(challenged(&shared.challenge)),
            Err(_) => Judged::Unavailable(busy()),
        }
    }
}

impl Shared {
    fn digest(&self, user: &str, password: &[u8]) -> [u8; 32] {
        let mut hash = Sha256::new();
        hash.update(self.secret);
        hash.update((user.len() as u64).to_le_bytes());
        hash.update(user);
        hash.update(password);
        hash.finalize().into()
    }

    fn knows(&self, digest: &[u8; 32], now: Instant) -> bool {
        let known = self.known.lock();
        known.get(digest).is_some_and(|until| now < *until)
    }

    fn note(&self, digest: [u8; 32], now: Instant) {
        let mut known = self.known.lock();
        if known.len() >= MOST_KNOWN {
            known.retain(|_, until| now < *until);
        }
        // Without room the password is checked again, which is only slow.
        if known.len() < MOST_KNOWN {
            known.insert(digest, now + KNOWN_FOR);
        }
    }
}

/// A place among the requests that wait.
struct CheckPermit;

impl CheckPermit {
    fn take() -> Option<Self> {
        let before = WAITING.fetch_add(1, Ordering::Relaxed);
        // Dropped where there is no room, it gives its number back.
        let place = Self;
        (before < MOST_WAITING).then_some(place)
    }
}

impl Drop for CheckPermit {
    fn drop(&mut self) {
        WAITING.fetch_sub(1, Ordering::Relaxed);
    }
}

fn admitted(user: String) -> Judged {
    let claims = Claims::from([(BASIC_CLAIM.to_owned(), user)]);
    Judged::Admitted(Some(Arc::new(claims)))
}

fn challenged(challenge: &HeaderValue) -> Answer {
    let mut answer = Answer::new(StatusCode::UNAUTHORIZED).saying("Unauthorized.");
    answer.push("www-authenticate", challenge.clone());
    answer
}

fn busy() -> Answer {
    let mut answer = Answer::new(StatusCode::SERVICE_UNAVAILABLE)
        .saying("Too many passwords to check.")
        .because(Cause::Overloaded);
    answer.push("retry-after", HeaderValue::from_static("1"));
    answer
}

/// Returns random bytes.
fn secret() -> [u8; 32] {
    let mut secret = [0; 32];
    for (position, part) in secret.chunks_exact_mut(8).enumerate() {
        let random = std::collections::hash_map::RandomState::new().hash_one(position);
        part.copy_from_slice(&random.to_le_bytes());
    }
    secret
}
