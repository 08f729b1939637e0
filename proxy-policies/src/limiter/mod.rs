//! Rate limiters: partitions, each with a count of its own.

mod algorithm;
mod fields;
mod partition;
#[cfg(feature = "redis")]
mod shared;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::collections::hash_map::RandomState;
use std::fmt;
use std::hash::BuildHasher;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

use http::StatusCode;
use parking_lot::Mutex;
use proxy_runtime::Cause;
use tokio::time::Instant;

pub(crate) use self::algorithm::Standing;
use self::fields::Fields;
use self::partition::{Partition, Place, Taken};
#[cfg(feature = "testing")]
pub use self::shared::{FuzzedReply, MOST_OF_A_REPLY, fuzz_redis_reply};
#[cfg(feature = "redis")]
pub(crate) use self::shared::{SharedAsk, SharedAsked};
#[cfg(feature = "redis")]
use self::shared::{SharedLimit, SharedValue};
use crate::config::{LimiterKind, PartitionBy, QueueOrder, RateLimiterConfig};
use crate::head::{Answer, Head};
use crate::named::Visit;

/// The least number of partitions that are divided between several locks.
const MANY: usize = 1024;
const SHARDS: usize = 16;
/// The least time between two searches for unused partitions of all shards.
const SWEEP_PAUSE: Duration = Duration::from_secs(1);

/// A compiled rate limiter with its state.
pub(crate) struct RateLimiter {
    kind: LimiterKind,
    /// The limit of this gateway alone.
    own: LimiterKind,
    #[cfg(feature = "redis")]
    shared: Option<SharedLimit>,
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
    /// Redis decides.
    #[cfg(feature = "redis")]
    Ask(SharedAsk),
    Reject(Answer),
}

/// A request that waits.
pub(crate) struct Queued {
    place: Place,
    partition: Arc<Partition>,
    order: QueueOrder,
    /// True if the permit is held until the response has ended.
    is_held: bool,
}

/// The end of a wait.
pub(crate) struct Permitted {
    pub(crate) permit: Option<Permit>,
    pub(crate) standing: Standing,
}

impl Queued {
    /// Waits for a permit.
    ///
    /// Cancel safe.
    ///
    /// # Errors
    ///
    /// Another request got the place.
    pub(crate) async fn wait(self) -> Result<Permitted, Standing> {
        let Self {
            place,
            partition,
            order,
            is_held,
        } = self;
        let may_pass = place.wait().await;
        let standing = partition.standing(Instant::now());
        if !may_pass {
            return Err(standing);
        }
        let permit = is_held.then_some(Permit { partition, order });
        Ok(Permitted { permit, standing })
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
    /// Compiles a rate limiter.
    ///
    /// # Errors
    ///
    /// The limit is shared, and this program has no client of Redis, or a file of certificates cannot be used.
    pub(crate) fn new(name: &Arc<str>, config: &RateLimiterConfig) -> Result<Self, String> {
        #[cfg(not(feature = "redis"))]
        if config.shared.is_some() {
            return Err("this program was built without shared limits".to_owned());
        }
        #[cfg(feature = "redis")]
        let own = match &config.shared {
            Some(shared) => shared::share(config.kind, shared.replicas),
            None => config.kind,
        };
        #[cfg(not(feature = "redis"))]
        let own = config.kind;
        Ok(Self {
            kind: config.kind,
            own,
            #[cfg(feature = "redis")]
            shared: config
                .shared
                .as_ref()
                .map(|shared| SharedLimit::new(name, config.kind, shared))
                .transpose()?,
            queue: (config.queue_limit, config.queue_order),
            partition_by: config.partition_by.clone(),
            partitions: Partitions::new(config),
            status: StatusCode::from_u16(config.status).unwrap_or(StatusCode::TOO_MANY_REQUESTS),
            fields: Fields::new(name, config),
        })
    }

    /// Counts a request.
    pub(crate) fn check(&self, head: &mut impl Head, visit: &Visit<'_>) -> Outcome {
        let key = self.key(head, visit);
        #[cfg(feature = "redis")]
        if let Some(shared) = &self.shared {
            match shared.ask(&self.shared_value(head, visit), key) {
                Some(asking) => return Outcome::Ask(asking),
                None => shared.note_alone(),
            }
        }
        let partition = self.partitions.get(key, self.own, visit.now);
        match partition.take(self.queue, visit.now) {
            Taken::Yes(standing) => {
                self.tell(standing, head);
                let order = self.queue.1;
                Outcome::Pass(self.is_held().then_some(Permit { partition, order }))
            }
            Taken::Wait(place) => Outcome::Wait(Queued {
                place,
                partition,
                order: self.queue.1,
                is_held: self.is_held(),
            }),
            Taken::No(standing) => Outcome::Reject(self.reject(standing, self.own_cause())),
        }
    }

    /// Ends a decision of Redis. Without one, this gateway decides by its share.
    ///
    /// # Errors
    ///
    /// The request is rejected.
    #[cfg(feature = "redis")]
    pub(crate) fn end(
        &self,
        asked: SharedAsked,
        head: &mut impl Head,
        visit: &Visit<'_>,
    ) -> Result<(), Answer> {
        let cause = match asked.decision {
            Some(_) => Cause::OverLimit,
            None => self.own_cause(),
        };
        let (may_pass, standing) = asked.decision.unwrap_or_else(|| {
            if let Some(shared) = &self.shared {
                shared.note_alone();
            }
            let partition = self.partitions.get(asked.key, self.own, visit.now);
            // Requests do not wait for a shared limit.
            match partition.take((0, self.queue.1), visit.now) {
                Taken::Yes(standing) => (true, standing),
                Taken::No(standing) => (false, standing),
                Taken::Wait(_) => (false, partition.standing(visit.now)),
            }
        });
        if !may_pass {
            return Err(self.reject(standing, cause));
        }
        self.tell(standing, head);
        Ok(())
    }

    /// The number of requests of a shared limit that the share of this gateway decided about.
    #[cfg(feature = "redis")]
    pub(crate) fn alone(&self) -> u64 {
        self.shared.as_ref().map_or(0, SharedLimit::alone)
    }

    /// The cause of rejections that this gateway decides about alone.
    fn own_cause(&self) -> Cause {
        #[cfg(feature = "redis")]
        if self.shared.is_some() {
            return Cause::OverShare;
        }
        Cause::OverLimit
    }

    /// The address of Redis and its error, while the limit is not shared because of it.
    pub(crate) fn failing(&self) -> Option<String> {
        #[cfg(feature = "redis")]
        return self.shared.as_ref()?.failing();
        #[cfg(not(feature = "redis"))]
        None
    }

    /// The limit in words, and who grants it at present.
    pub(crate) fn describe_now(&self) -> String {
        #[cfg(feature = "redis")]
        if let Some(shared) = &self.shared {
            let limit = self.describe();
            let share = fields::describe(self.own, &self.partition_by);
            return format!("{limit}, {}", shared.describe(&share));
        }
        self.describe()
    }

    /// Adds headers with the remaining quota to the response of a request that passes.
    pub(crate) fn tell(&self, standing: Standing, head: &mut impl Head) {
        if let Some(fields) = &self.fields {
            fields.note(standing, head);
        }
    }

    /// Returns the response to a request over the limit, or over the share of this gateway.
    pub(crate) fn reject(&self, standing: Standing, cause: Cause) -> Answer {
        let answer = Answer::new(self.status).because(cause);
        let mut answer = answer.saying("Too many requests: try again later.");
        if let Some(reset) = standing.reset {
            answer.push("retry-after", fields::seconds(reset).into());
        }
        if let Some(fields) = &self.fields {
            fields.push(standing, &mut answer);
        }
        answer
    }

    /// Returns true if a permit is held until the response has ended.
    fn is_held(&self) -> bool {
        matches!(self.kind, LimiterKind::Concurrency { .. })
    }

    /// The partition of a request. Requests without the value by which they are divided share one.
    fn key(&self, head: &impl Head, visit: &Visit<'_>) -> Option<u128> {
        let partitions = &self.partitions;
        Some(match &self.partition_by {
            PartitionBy::None => return None,
            PartitionBy::Address => address_key(visit)?,
            PartitionBy::Header(name) => partitions.hash(head.header(name)?),
            PartitionBy::RouteValue(name) => {
                partitions.hash(route_value(head, visit, name)?.as_bytes())
            }
            PartitionBy::Claim(name) => partitions.hash(visit.claim(name)?.as_bytes()),
        })
    }

    /// The value by which a request is divided, as all gateways write it.
    #[cfg(feature = "redis")]
    fn shared_value<'v>(&self, head: &'v impl Head, visit: &'v Visit<'_>) -> SharedValue<'v> {
        let value = match &self.partition_by {
            PartitionBy::None => return SharedValue::All,
            PartitionBy::Address => address_key(visit).map(SharedValue::Address),
            PartitionBy::Header(name) => head.header(name).map(SharedValue::Text),
            PartitionBy::RouteValue(name) => {
                let value = route_value(head, visit, name);
                return value.map_or(SharedValue::Missing, |value| {
                    SharedValue::Own(value.into_bytes())
                });
            }
            PartitionBy::Claim(name) => visit
                .claim(name)
                .map(|claim| SharedValue::Text(claim.as_bytes())),
        };
        value.unwrap_or(SharedValue::Missing)
    }

    /// The settings in words.
    pub(crate) fn describe(&self) -> String {
        fields::describe(self.kind, &self.partition_by)
    }
}

/// The client's address, or its network.
fn address_key(visit: &Visit<'_>) -> Option<u128> {
    Some(match visit.connection.client_address()? {
        IpAddr::V4(address) => u128::from(u32::from(address)),
        // A client with one address of such a network has all of them. Never equal to one of IPv4.
        IpAddr::V6(address) => (u128::from(address) >> 64) | (1 << 127),
    })
}

/// The value of a parameter of the path.
fn route_value(head: &impl Head, visit: &Visit<'_>, name: &str) -> Option<String> {
    let path = visit.route.matcher().path();
    let values = path.capture(head.path())?;
    let mut values = values.iter();
    let (_, value) = values.find(|(known, _)| known.eq_ignore_ascii_case(name))?;
    Some(value.to_owned())
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
    /// The partitions with a key, divided by the hash of the key.
    shards: Box<[Mutex<Shard>]>,
    /// The number of partitions with a key, which is at most `most`.
    count: AtomicUsize,
    most: usize,
    sweeping: Mutex<Sweeping>,
    /// Two keyed hashes, so that clients cannot construct collisions.
    hashers: (RandomState, RandomState),
}

/// Partitions by key.
type Shard = HashMap<u128, Arc<Partition>>;

/// The search for unused partitions, one shard after the other.
#[derive(Default)]
struct Sweeping {
    /// The earliest time of the next search.
    next: Option<Instant>,
    shard: usize,
}

impl Partitions {
    fn new(config: &RateLimiterConfig) -> Self {
        let most = config.max_partitions as usize;
        let shards = if most < MANY { 1 } else { SHARDS };
        Self {
            common: Mutex::default(),
            others: Mutex::default(),
            shards: (0..shards).map(|_| Mutex::default()).collect(),
            count: AtomicUsize::new(0),
            most,
            sweeping: Mutex::default(),
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
        for is_swept in [false, true] {
            if is_swept && !self.sweep(now) {
                break;
            }
            let mut shard = self.shards[number].lock();
            if let Some(known) = shard.get(&key) {
                return Arc::clone(known);
            }
            if self.has_taken_room() {
                let partition = new();
                shard.insert(key, Arc::clone(&partition));
                return partition;
            }
        }
        Arc::clone(self.others.lock().get_or_insert_with(new))
    }

    /// Takes room for one more partition, if there is any.
    fn has_taken_room(&self) -> bool {
        let more = |count| (count < self.most).then_some(count + 1);
        let taken = self.count.fetch_update(Relaxed, Relaxed, more);
        taken.is_ok()
    }

    /// Removes partitions with nothing used, unless that was tried a moment ago. Returns true if a new partition
    /// fits then.
    fn sweep(&self, now: Instant) -> bool {
        let number = {
            let mut sweeping = self.sweeping.lock();
            if sweeping.next.is_some_and(|next| now < next) {
                return false;
            }
            sweeping.next = Some(now + SWEEP_PAUSE / self.shards.len() as u32);
            sweeping.shard = (sweeping.shard + 1) % self.shards.len();
            sweeping.shard
        };
        let mut shard = self.shards[number].lock();
        let before = shard.len();
        // A partition that a request holds is in use.
        shard.retain(|_, partition| Arc::strong_count(partition) > 1 || !partition.is_idle(now));
        self.count.fetch_sub(before - shard.len(), Relaxed);
        before > shard.len()
    }

    #[cfg(test)]
    fn len(&self) -> usize {
        self.shards.iter().map(|shard| shard.lock().len()).sum()
    }
}
