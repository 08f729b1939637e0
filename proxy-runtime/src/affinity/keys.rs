//! The keys that affinity keys are encrypted with.

use std::fmt;
use std::sync::Arc;

use arc_swap::{ArcSwap, Guard};
use aws_lc_rs::aead::{AES_256_GCM_SIV, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use aws_lc_rs::rand;
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use proxy_model::compiled::Cluster;
use proxy_model::{Problem, Problems, Snapshot, pointer_to};

/// Length of a key in bytes.
const KEY: usize = 32;

/// Length of the authentication tag behind the encrypted content of a value.
const TAG: usize = 16;

/// Length of the content.
pub(super) const CONTENT: usize = 16;

const SEALED: usize = NONCE_LEN + CONTENT + TAG;

/// Maximum number of keys. Each may have to be tried for a value.
const MOST: usize = 16;

/// The keys that encrypt the values of the affinity policies `Cookie` and `CustomHeader`.
///
/// The first key encrypts, and values of all keys are accepted. To rotate, put a new key in front,
/// and remove the last one when no client has values of it any more. All proxies that serve the same
/// clients need the same keys.
///
/// # Examples
///
/// ```
/// use proxy_runtime::affinity::AffinityKeys;
///
/// let keys = "# since March\n\
///     5ZMkv5BFTTk8FqV1bs5fJpSsPLoeCF5RFmtz2h5WQ0Y=\n\
///     u0HkMsWWlP1Wr2vwqE0t6RsoR4kKzJkfiM2pTqY3Rfw=\n";
/// assert!(AffinityKeys::parse(keys).is_ok());
/// ```
#[derive(Clone)]
pub struct AffinityKeys(Arc<[LessSafeKey]>);

/// The reason why a text has no usable keys. Its message names lines but never their content.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidAffinityKeys {
    /// The text has no key.
    #[error("there is no key; `openssl rand -base64 32` makes one")]
    None,
    /// A line is not a key.
    #[error("line {line} is not 32 bytes in base64; `openssl rand -base64 32` makes a key")]
    Line {
        /// Number of the line, from 1.
        line: usize,
    },
    /// The text has more keys than are accepted.
    #[error("there are more than {MOST} keys")]
    TooMany,
}

impl AffinityKeys {
    /// Reads keys from a text with one on each line, in base64. Empty lines, and those that begin
    /// with `#`, are skipped.
    ///
    /// # Errors
    ///
    /// Fails if a line is no key of 32 bytes, if there is no key, or if there are more than 16.
    pub fn parse(text: &str) -> Result<Self, InvalidAffinityKeys> {
        let mut keys = Vec::new();
        for (position, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            if keys.len() == MOST {
                return Err(InvalidAffinityKeys::TooMany);
            }
            let wrong = InvalidAffinityKeys::Line { line: position + 1 };
            let bytes = STANDARD.decode(line).map_err(|_| wrong.clone())?;
            keys.push(key(&bytes).ok_or(wrong)?);
        }
        match keys.is_empty() {
            true => Err(InvalidAffinityKeys::None),
            false => Ok(Self(keys.into())),
        }
    }

    /// One random key. Its values are of no use to other proxies, nor after a restart.
    pub(crate) fn random() -> Self {
        let mut bytes = [0; KEY];
        rand::fill(&mut bytes).expect("the system has random bytes");
        let key = key(&bytes).expect("it has the length of a key");
        Self([key].into())
    }

    /// Encrypts with the first key. `purpose` is needed again to decrypt.
    pub(super) fn seal(&self, content: [u8; CONTENT], purpose: &[u8]) -> Option<String> {
        let mut sealed = [0; SEALED];
        let (nonce, rest) = sealed.split_at_mut(NONCE_LEN);
        // AES-GCM-SIV tolerates a repeated nonce (RFC 8452), so a random one is safe.
        rand::fill(nonce).ok()?;
        let (inner, tag) = rest.split_at_mut(CONTENT);
        inner.copy_from_slice(&content);
        let nonce = Nonce::try_assume_unique_for_key(nonce).ok()?;
        let written = self
            .0
            .first()?
            .seal_in_place_separate_tag(nonce, Aad::from(purpose), inner);
        tag.copy_from_slice(written.ok()?.as_ref());
        Some(URL_SAFE_NO_PAD.encode(sealed))
    }

    /// Decrypts with the key that fits. `None` if there is none. Allocates nothing.
    pub(super) fn open(&self, text: &[u8], purpose: &[u8]) -> Option<[u8; CONTENT]> {
        let mut sealed = [0; SEALED];
        // A longer text does not fit, and is no value of this proxy.
        let length = URL_SAFE_NO_PAD.decode_slice(text, &mut sealed).ok()?;
        if length != SEALED {
            return None;
        }
        let (nonce, rest) = sealed.split_at(NONCE_LEN);
        // The value may be older than the last rotation of the keys.
        self.0.iter().find_map(|key| {
            let nonce = Nonce::try_assume_unique_for_key(nonce).ok()?;
            // Decryption overwrites its input, even if the key is a wrong one.
            let mut rest: [u8; CONTENT + TAG] = rest.try_into().ok()?;
            let opened = key
                .open_in_place(nonce, Aad::from(purpose), &mut rest)
                .ok()?;
            <[u8; CONTENT]>::try_from(&*opened).ok()
        })
    }
}

/// The keys of a proxy, which may be replaced while it serves.
#[derive(Clone, Debug)]
pub(crate) struct KeyRing(Arc<ArcSwap<AffinityKeys>>);

impl Default for KeyRing {
    fn default() -> Self {
        Self::new(AffinityKeys::random())
    }
}

impl KeyRing {
    pub(crate) fn new(keys: AffinityKeys) -> Self {
        Self(Arc::new(ArcSwap::from_pointee(keys)))
    }

    /// The keys of this moment.
    pub(super) fn load(&self) -> Guard<Arc<AffinityKeys>> {
        self.0.load()
    }

    /// Replaces the keys.
    pub(crate) fn store(&self, keys: AffinityKeys) {
        self.0.store(Arc::new(keys));
    }
}

/// Returns a warning for each cluster whose affinity keys would be encrypted with a random key, for a proxy
/// that is given none.
pub fn random_affinity_keys(snapshot: &Snapshot) -> Problems {
    let is_sealed = |cluster: &&Cluster| {
        let affinity = cluster.affinity();
        affinity.is_some_and(|affinity| affinity.key().is_sealed())
    };
    let clusters = snapshot.clusters().iter().filter(is_sealed);
    let problems = clusters.map(|cluster| {
        let pointer = pointer_to("/Clusters", cluster.id().as_str());
        Problem::warning(
            format!("{pointer}/SessionAffinity"),
            "random_affinity_key",
            "the proxy has no keys for affinity keys and uses a random one: clients lose their destination when it \
             restarts, and when they meet another proxy",
        )
        .with_suggestion(
            "give all proxies the same keys (`Server.AffinityKeysFile`), or use `HashCookie`",
        )
    });
    problems.collect()
}

fn key(bytes: &[u8]) -> Option<LessSafeKey> {
    let key = UnboundKey::new(&AES_256_GCM_SIV, bytes).ok()?;
    Some(LessSafeKey::new(key))
}

impl fmt::Debug for AffinityKeys {
    /// Leaves out the keys, which are secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AffinityKeys")
            .field("count", &self.0.len())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OLD: &str = "5ZMkv5BFTTk8FqV1bs5fJpSsPLoeCF5RFmtz2h5WQ0Y=";
    const NEW: &str = "u0HkMsWWlP1Wr2vwqE0t6RsoR4kKzJkfiM2pTqY3Rfw=";

    fn keys(text: &str) -> AffinityKeys {
        AffinityKeys::parse(text).unwrap()
    }

    #[test]
    fn the_first_key_seals_and_all_open() {
        let (old, new) = (keys(OLD), keys(NEW));
        let both = keys(&format!("{NEW}\n{OLD}\n"));
        let content = [7; CONTENT];
        let before = old.seal(content, b"p").unwrap();
        let after = both.seal(content, b"p").unwrap();
        assert_eq!(both.open(before.as_bytes(), b"p"), Some(content));
        assert_eq!(new.open(after.as_bytes(), b"p"), Some(content));
        assert_eq!(old.open(after.as_bytes(), b"p"), None);
        assert_eq!(new.open(before.as_bytes(), b"p"), None, "a removed key");
        assert_ne!(both.seal(content, b"p").unwrap(), after, "nonces differ");
        assert_eq!(both.open(after.as_bytes(), b"q"), None, "another purpose");
    }

    #[test]
    fn what_was_changed_does_not_open() {
        let keys = AffinityKeys::random();
        let sealed = keys.seal([1; CONTENT], b"p").unwrap();
        for at in 0..sealed.len() {
            let mut changed = sealed.clone().into_bytes();
            changed[at] = if changed[at] == b'A' { b'B' } else { b'A' };
            assert_eq!(keys.open(&changed, b"p"), None, "{at}");
        }
        for text in [
            "",
            "A",
            "====",
            "\0",
            &sealed[1..],
            &format!("{sealed}AAAA"),
        ] {
            assert_eq!(keys.open(text.as_bytes(), b"p"), None, "{text:?}");
        }
    }

    #[test]
    fn wrong_keys_are_named_by_line_and_not_shown() {
        let line = |line| InvalidAffinityKeys::Line { line };
        for (text, expected) in [
            ("", InvalidAffinityKeys::None),
            ("# none\n\n", InvalidAffinityKeys::None),
            ("secret", line(1)),
            (&format!("{OLD}\n{}", &OLD[4..]), line(2)),
            (&format!("# k\n\n{OLD}=\n"), line(3)),
            (&format!("{OLD}\n").repeat(17), InvalidAffinityKeys::TooMany),
        ] {
            let error = AffinityKeys::parse(text).unwrap_err();
            assert_eq!(error, expected);
            assert!(!error.to_string().contains("secret"));
        }
        assert!(AffinityKeys::parse(&format!("{OLD}\n").repeat(16)).is_ok());
        assert_eq!(format!("{:?}", keys(OLD)), "AffinityKeys { count: 1, .. }");
    }
}
