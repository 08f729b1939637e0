//! Limits that several gateways share: each decision is one script that Redis runs, on a clock of its own.
//!
//! A request waits no longer than the time limit of the policy, and not at all while Redis is known to be away. Then
//! each gateway grants its share of the limit.

mod connection;
mod dial;
#[cfg(feature = "testing")]
mod fuzzed;
mod resp;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use sha2::{Digest, Sha256};
use tokio::sync::oneshot;
use tokio::time::timeout;

use self::connection::{Decision, Link, Redis};
#[cfg(feature = "testing")]
pub use self::fuzzed::{FuzzedReply, MOST_OF_A_REPLY, fuzz_redis_reply};
use super::algorithm::Standing;
use crate::config::{LimiterKind, SharedConfig};

/// The value that divides requests, as all gateways write it.
pub(super) enum SharedValue<'a> {
    /// All requests have one limit.
    All,
    /// The request does not have the value.
    Missing,
    /// A network, or an address.
    Address(u128),
    Text(&'a [u8]),
    Own(Vec<u8>),
}

/// The counts of a policy at Redis.
pub(super) struct SharedLimit {
    redis: Redis,
    /// The number of gateways that divide the limit while Redis does not decide.
    gateways: u32,
    /// The beginning of the keys of all counts.
    prefix: Vec<u8>,
    arguments: Arc<[Vec<u8>]>,
    /// The number of requests that the share of this gateway decided about.
    alone: AtomicU64,
}

/// A decision that Redis makes.
pub(crate) struct SharedAsk {
    redis: Arc<Link>,
    decision: oneshot::Receiver<Decision>,
    key: Option<u128>,
}

/// The decision. `None`: it did not come in time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SharedAsked {
    pub(super) decision: Option<(bool, Standing)>,
    /// The partition of this gateway for the request.
    pub(super) key: Option<u128>,
}

impl SharedAsk {
    /// Waits for the decision.
    ///
    /// Cancel safe.
    pub(crate) async fn wait(self) -> SharedAsked {
        let decision = timeout(self.redis.limit(), self.decision).await;
        match &decision {
            Ok(Ok(_)) => self.redis.decided(),
            // The connection has broken, which its task reports.
            Ok(Err(_)) => {}
            Err(_) => self.redis.is_late(),
        }
        let decision = decision.ok().and_then(Result::ok).map(|decision| {
            let standing = Standing {
                left: decision.left,
                reset: Some(decision.reset),
            };
            (decision.may_pass, standing)
        });
        SharedAsked {
            decision,
            key: self.key,
        }
    }
}

impl SharedLimit {
    /// Prepares to count at Redis.
    ///
    /// # Errors
    ///
    /// The file of authorities cannot be used.
    pub(super) fn new(
        policy: &Arc<str>,
        kind: LimiterKind,
        config: &SharedConfig,
    ) -> Result<Self, String> {
        dial::connector(config).map_err(|error| error.to_string())?;
        let (word, numbers) = match kind {
            LimiterKind::FixedWindow { permits, window } => {
                ("fixed", vec![u64::from(permits), milliseconds(window)])
            }
            LimiterKind::SlidingWindow {
                permits,
                window,
                segments,
            } => {
                let numbers = [permits.into(), milliseconds(window), segments.into()];
                ("sliding", numbers.to_vec())
            }
            LimiterKind::TokenBucket {
                tokens,
                per_period,
                period,
            } => {
                let numbers = [tokens.into(), milliseconds(period), per_period.into()];
                ("bucket", numbers.to_vec())
            }
            // A configuration cannot have it.
            LimiterKind::Concurrency { permits } => ("fixed", vec![permits.into(), 1]),
        };
        let numbers: Vec<String> = numbers.iter().map(u64::to_string).collect();
        // Gateways with another limit of this name, as during a change, count for themselves.
        let prefix = format!("{}:{policy}:{word}-{}:", config.prefix, numbers.join("-"));
        let arguments = std::iter::once(word.as_bytes().to_vec());
        let arguments = arguments.chain(numbers.into_iter().map(String::into_bytes));
        Ok(Self {
            redis: Redis::new(policy, config),
            gateways: config.replicas,
            prefix: prefix.into_bytes(),
            arguments: arguments.collect(),
            alone: AtomicU64::new(0),
        })
    }

    /// Has Redis decide. `None` if it is away.
    pub(super) fn ask(&self, value: &SharedValue<'_>, key: Option<u128>) -> Option<SharedAsk> {
        let mut name = self.prefix.clone();
        match value {
            SharedValue::All => name.extend_from_slice(b"all"),
            SharedValue::Missing => name.extend_from_slice(b"none"),
            SharedValue::Address(address) => {
                name.extend_from_slice(format!("a{address:x}").as_bytes());
            }
            SharedValue::Text(text) => push_hash(text, &mut name),
            SharedValue::Own(text) => push_hash(text, &mut name),
        }
        let (redis, decision) = self.redis.ask(name, &self.arguments)?;
        Some(SharedAsk {
            redis,
            decision,
            key,
        })
    }

    /// The address of Redis and its error, while it does not decide.
    pub(super) fn failing(&self) -> Option<String> {
        self.redis.failing()
    }

    /// The sharing in words; `share` is the limit of this gateway alone.
    pub(super) fn describe(&self, share: &str) -> String {
        let url = self.redis.url();
        let sharing = format!("shared by {} gateways through {url}", self.gateways);
        match (self.redis.failing(), self.redis.is_asked()) {
            (Some(error), _) => {
                format!("{sharing}; at present this gateway grants its share, {share}: {error}")
            }
            (None, true) => sharing,
            (None, false) => {
                format!(
                    "{sharing}, which was not asked yet; without it, this gateway grants its share, {share}"
                )
            }
        }
    }

    /// Notes a request that the share of this gateway decides about.
    pub(super) fn note_alone(&self) {
        self.alone.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn alone(&self) -> u64 {
        self.alone.load(Ordering::Relaxed)
    }
}

/// Appends a hash of a text, which may be long or a secret.
fn push_hash(text: &[u8], name: &mut Vec<u8>) {
    name.push(b't');
    for byte in &Sha256::digest(text)[..16] {
        name.extend_from_slice(format!("{byte:02x}").as_bytes());
    }
}

/// The limit of one of several gateways, at least one request.
pub(super) fn share(kind: LimiterKind, gateways: u32) -> LimiterKind {
    let part = |limit: u32| (limit / gateways).max(1);
    match kind {
        LimiterKind::FixedWindow { permits, window } => LimiterKind::FixedWindow {
            permits: part(permits),
            window,
        },
        LimiterKind::SlidingWindow {
            permits,
            window,
            segments,
        } => LimiterKind::SlidingWindow {
            permits: part(permits),
            window,
            segments,
        },
        LimiterKind::TokenBucket {
            tokens,
            per_period,
            period,
        } => LimiterKind::TokenBucket {
            tokens: part(tokens),
            per_period: part(per_period),
            period,
        },
        LimiterKind::Concurrency { permits } => LimiterKind::Concurrency {
            permits: part(permits),
        },
    }
}

fn milliseconds(span: proxy_model::TimeSpan) -> u64 {
    let milliseconds = span.duration().as_millis();
    u64::try_from(milliseconds).unwrap_or(u64::MAX).max(1)
}
