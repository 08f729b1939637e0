//! Rate limiters: partitions, each with a count of its own.

mod algorithm;
mod fields;
mod partition;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::collections::hash_map::RandomState;
use std::fmt;
use std::hash::BuildHasher;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use http::StatusCode;
use parking_lot::Mutex;
use tokio::time::Instant;

use self::fields::Fields;
use self::partition::{Partition, Place, Taken};
use crate::config::{LimiterKind, PartitionBy, QueueOrder, RateLimiterConfig};
use crate::head::{Answer, Head};
use crate::named::Visit;

/// The least number of partitions that are divided between several locks.
const MANY: usize = 1024;
const SHARDS: usize = 16;
/// The least time between two searches for unused partitions.
const SWEEP_PAUSE: Duration = Duration::from_secs(1);

/// A compiled rate limiter with its state.
pub(crate) struct RateLimiter {
    kind: LimiterKind,
    queue: (u32, QueueOrder),
    partition_by: PartitionBy,
    partitions: Partitions,
    status: StatusCode,
    fields: Option<Fields>,
}

/// The outcome for a request.
pub(crate) enum Outcome {
    /// The request passes. The permit is held until the response has ended.
    Pass(Option<Permit>),
    /// The request waits first.
    Wait(Queued),
    Reject(Answer),
}

/// A request that waits.
pub(crate) struct Queued {
    place: Place,
    /// The partition of the permit, if it is held until the response has ended.
    held: Option<(Arc<Partition>, QueueOrder)>,
}

impl Queued {
    /// Waits for a permit. `None`: another request got the place.
    ///
    /// Cancel safe.
    pub(crate) async fn wait(self) -> Option<Option<Permit>> {
        let may_pass = self.place.wait().await;
        let permit = |(partition, order)| Permit { partition, order };
        may_pass.then(|| self.held.map(permit))
    }
}

/// Gives a permit back when it is dropped.
pub(crate) struct Permit {
    partition: Arc<Partition>,
    order: QueueOrder,
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.partition.give_back(self.order, Instant::now());
    }
}

impl fmt::Debug for Permit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Permit").finish_non_exhaustive()
    }
}

impl RateLimiter {
    pub(crate) fn new(name: &str, config: &RateLimiterConfig) -> Self {
        Self {
            kind: config.kind,
            queue: (config.queue_limit, config.queue_order),
            partition_by: config.partition_by.clone(),
            partitions: Partitions::new(config),
            status: StatusCode::from_u16(config.status).unwrap_or(StatusCode::TOO_MANY_REQUESTS),
            fields: Fields::new(name, config),
        }
    }

    /// Returns true if a request never waits and holds nothing.
    pub(crate) fn is_immediate(&self) -> bool {
        self.queue.0 == 0 && !matches!(self.kind, LimiterKind::Concurrency { .. })
    }

    /// Counts a request.
    pub(crate) fn check(&self, head: &mut impl Head, visit: &Visit<'_>) -> Outcome {
        let key = self.key(head, visit);
        let partition = self.partitions.get(key, self.kind, visit.now);
        match partition.take(self.queue, visit.now) {
            Taken::Yes(standing) => {
                if let Some(fields) = &self.fields {
                    fields.note(standing, head);
                }
                let permit = |(partition, order)| Permit { partition, order };
                Outcome::Pass(self.held(partition).map(permit))
            }
            Taken::Wait(place) => Outcome::Wait(Queued {
                place,
                held: self.held(partition),
            }),
            Taken::No(standing) => {
                let mut answer =
                    Answer::new(self.status).saying("Too many requests: try again later.\n");
                if let Some(reset) = standing.reset {
                    answer.push("retry-after", fields::seconds(reset).into());
                }
                if let Some(fields) = &self.fields {
                    fields.push(standing, &mut answer);
                }
                Outcome::Reject(answer)
            }
        }
    }

    /// The answer to a request that lost its place to a newer one.
    pub(crate) fn displaced(&self) -> Answer {
        Answer::new(self.status).saying("Too many requests: try again later.\n")
    }

    fn held(&self, partition: Arc<Partition>) -> Option<(Arc<Partition>, QueueOrder)> {
        let is_held = matches!(self.kind, LimiterKind::Concurrency { .. });
        is_held.then_some((partition, self.queue.1))
    }

    /// The partition of a request. Requests without the value by which they are divided share one.
    fn key(&self, head: &impl Head, visit: &Visit<'_>) -> Option<u128> {
        let partitions = &self.partitions;
        Some(match &self.partition_by {
            PartitionBy::None => return None,
            PartitionBy::Address => match visit.connection.client_address()? {
                IpAddr::V4(address) => u128::from(u32::from(address)),
                // A client with one address of such a network has all of them. Never equal to one of IPv4.
                IpAddr::V6(address) => (u128::from(address) >> 64) | (1 << 127),
            },
            PartitionBy::Header(name) => partitions.hash(head.header(name)?),
            PartitionBy::RouteValue(name) => {
                let path = visit.route.matcher().path();
                let values = path.capture(head.path())?;
                let mut values = values.iter();
                let (_, value) = values.find(|(known, _)| known.eq_ignore_ascii_case(name))?;
                partitions.hash(value.as_bytes())
            }
            PartitionBy::Claim(name) => partitions.hash(visit.claim(name)?.as_bytes()),
        })
    }

    /// The settings in words.
    pub(crate) fn describe(&self) -> String {
        fields::describe(self.kind, &self.partition_by)
    }
}

impl fmt::Debug for RateLimiter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.describe())
    }
}

/// The partitions of a limiter, no more than a number of them.
struct Partitions {
    /// The partition of requests without a key.
    common: Mutex<Option<Arc<Partition>>>,
    /// The partition of keys beyond the maximum.
    others: Mutex<Option<Arc<Partition>>>,
    shards: Box<[Mutex<Shard>]>,
    /// The most partitions of a shard.
    room: usize,
    /// Two keyed hashes, against collisions by design.
    hashers: (RandomState, RandomState),
}

#[derive(Default)]
struct Shard {
    partitions: HashMap<u128, Arc<Partition>>,
    /// The earliest time of the next search for unused partitions.
    next_sweep: Option<Instant>,
}

impl Partitions {
    fn new(config: &RateLimiterConfig) -> Self {
        let most = config.max_partitions as usize;
        let shards = if most < MANY { 1 } else { SHARDS };
        Self {
            common: Mutex::default(),
            others: Mutex::default(),
            shards: (0..shards).map(|_| Mutex::default()).collect(),
            room: most.div_ceil(shards),
            hashers: (RandomState::new(), RandomState::new()),
        }
    }

    /// A text of any length as a key: who chooses the texts does not know the hashes.
    fn hash(&self, text: &[u8]) -> u128 {
        let (first, second) = &self.hashers;
        (u128::from(first.hash_one(text)) << 64) | u128::from(second.hash_one(text))
    }

    fn get(&self, key: Option<u128>, kind: LimiterKind, now: Instant) -> Arc<Partition> {
        let new = || Arc::new(Partition::new(kind, now));
        let Some(key) = key else {
            return Arc::clone(self.common.lock().get_or_insert_with(new));
        };
        let number = match self.shards.len() {
            1 => 0,
            // Addresses differ in their lower half.
            shards => self.hashers.0.hash_one(key) as usize % shards,
        };
        let mut shard = self.shards[number].lock();
        if let Some(known) = shard.partitions.get(&key) {
            return Arc::clone(known);
        }
        if shard.partitions.len() >= self.room {
            shard.sweep(now);
        }
        if shard.partitions.len() < self.room {
            let partition = new();
            shard.partitions.insert(key, Arc::clone(&partition));
            return partition;
        }
        drop(shard);
        Arc::clone(self.others.lock().get_or_insert_with(new))
    }

    #[cfg(test)]
    fn len(&self) -> usize {
        let shards = self.shards.iter();
        shards.map(|shard| shard.lock().partitions.len()).sum()
    }
}

impl Shard {
    /// Forgets partitions of which nothing is taken, unless that was tried a moment ago.
    fn sweep(&mut self, now: Instant) {
        if self.next_sweep.is_some_and(|next| now < next) {
            return;
        }
        self.next_sweep = Some(now + SWEEP_PAUSE);
        // A partition that a request holds is in use.
        self.partitions
            .retain(|_, partition| Arc::strong_count(partition) > 1 || !partition.is_idle(now));
    }
}
