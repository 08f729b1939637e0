//! Rate limiter policies.

use proxy_model::json::ObjectReader;
use proxy_model::{Problem, TimeSpan};
use serde::{Deserialize, Serialize};

use super::shared::{self, SharedConfig};
use super::{missing, positive, without_effect};

/// The most permits, tokens and waiting requests.
const MOST: u32 = 1_000_000_000;
/// The most requests that may wait in one partition.
const MOST_WAITING: u32 = 100_000;
/// The most segments of a window.
const MOST_SEGMENTS: u32 = 1_000;
/// The most partitions.
const MOST_PARTITIONS: u32 = 1_000_000;
/// Partitions where nothing is written.
const PARTITIONS: u32 = 10_000;

/// The settings of a rate limiter.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct RateLimiterConfig {
    pub(crate) kind: LimiterKind,
    pub(crate) queue_limit: u32,
    pub(crate) queue_order: QueueOrder,
    pub(crate) partition_by: PartitionBy,
    pub(crate) max_partitions: u32,
    pub(crate) status: u16,
    pub(crate) fields: bool,
    /// `None`: the gateway counts for itself.
    pub(crate) shared: Option<SharedConfig>,
}

/// The way of counting.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) enum LimiterKind {
    FixedWindow {
        permits: u32,
        window: TimeSpan,
    },
    SlidingWindow {
        permits: u32,
        window: TimeSpan,
        segments: u32,
    },
    TokenBucket {
        tokens: u32,
        per_period: u32,
        period: TimeSpan,
    },
    Concurrency {
        permits: u32,
    },
}

/// The order of waiting requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) enum QueueOrder {
    #[default]
    OldestFirst,
    NewestFirst,
}

/// The partition key of requests; each partition has a limit of its own.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) enum PartitionBy {
    /// No key: all requests share one limit.
    #[default]
    None,
    /// The client's address; of IPv6 the network of 64 bits.
    Address,
    /// The first value of a header, by its name in lower case.
    Header(String),
    /// A parameter of the path.
    RouteValue(String),
    /// A claim of the client that an authorization policy has verified.
    Claim(String),
}

#[derive(Clone, Copy)]
enum Kind {
    FixedWindow,
    SlidingWindow,
    TokenBucket,
    Concurrency,
}

const KINDS: [(&str, Kind); 4] = [
    ("FixedWindow", Kind::FixedWindow),
    ("SlidingWindow", Kind::SlidingWindow),
    ("TokenBucket", Kind::TokenBucket),
    ("Concurrency", Kind::Concurrency),
];

const KEYS: [&str; 6] = [
    "PermitLimit",
    "Window",
    "SegmentsPerWindow",
    "TokenLimit",
    "TokensPerPeriod",
    "ReplenishmentPeriod",
];

pub(super) fn read(policy: &mut ObjectReader<'_, '_>) -> Option<RateLimiterConfig> {
    let has_kind = policy.peek("Kind").is_some();
    let kind = policy.choice("Kind", &KINDS);
    if !has_kind {
        let suggestion = "write `FixedWindow`, `SlidingWindow`, `TokenBucket` or `Concurrency`";
        missing(policy, "Kind", suggestion);
    }
    let kind = match kind {
        Some(kind) => read_kind(kind, policy),
        None => {
            // What the unreadable kind may mean is not judged.
            KEYS.iter().for_each(|key| policy.skip(key));
            None
        }
    };
    let order = [
        ("OldestFirst", QueueOrder::OldestFirst),
        ("NewestFirst", QueueOrder::NewestFirst),
    ];
    let partition_by = policy.object("Partition", read_partition);
    let is_divided = !matches!(&partition_by, None | Some(None | Some(PartitionBy::None)));
    if !is_divided {
        without_effect(
            policy,
            "MaxPartitions",
            "the policy has no `Partition`, so all requests have one limit together",
        );
    }
    let shared = policy.object("Shared", shared::read);
    if shared.is_some() {
        without_effect(
            policy,
            "QueueLimit",
            "requests do not wait for a limit that gateways share",
        );
        if matches!(kind, Some(LimiterKind::Concurrency { .. })) {
            let pointer = policy.pointer_to("Shared");
            let message =
                "`Concurrency` is not shared: a gateway that ends would not give its permits back";
            policy.problems().push(
                Problem::error(pointer, "no_effect", message).with_suggestion("remove `Shared`"),
            );
        }
    }
    let config = RateLimiterConfig {
        shared: shared.flatten(),
        kind: kind?,
        queue_limit: policy
            .integer("QueueLimit", 0..=MOST_WAITING)
            .unwrap_or_default(),
        queue_order: policy
            .choice("QueueProcessingOrder", &order)
            .unwrap_or_default(),
        partition_by: partition_by.flatten().unwrap_or_default(),
        max_partitions: policy
            .integer("MaxPartitions", 1..=MOST_PARTITIONS)
            .unwrap_or(PARTITIONS),
        status: policy
            .integer("RejectionStatusCode", 400..=599_u16)
            .unwrap_or(429),
        fields: policy.boolean("RateLimitFields").unwrap_or(true),
    };
    Some(config)
}

fn read_kind(kind: Kind, policy: &mut ObjectReader<'_, '_>) -> Option<LimiterKind> {
    let wanted: &[&str] = match kind {
        Kind::FixedWindow => &["PermitLimit", "Window"],
        Kind::SlidingWindow => &["PermitLimit", "Window", "SegmentsPerWindow"],
        Kind::TokenBucket => &["TokenLimit", "TokensPerPeriod", "ReplenishmentPeriod"],
        Kind::Concurrency => &["PermitLimit"],
    };
    let mut is_whole = true;
    for key in KEYS {
        if !wanted.contains(&key) {
            without_effect(policy, key, "the policy's `Kind` does not have it");
        } else if policy.peek(key).is_none() {
            policy.skip(key);
            let suggestion = match key {
                "Window" | "ReplenishmentPeriod" => format!("write `\"{key}\": \"1m\"`"),
                "SegmentsPerWindow" => format!("write `\"{key}\": 6`"),
                _ => format!("write `\"{key}\": 100`"),
            };
            missing(policy, key, &suggestion);
            is_whole = false;
        }
    }
    if !is_whole {
        wanted.iter().for_each(|key| skip(policy, key));
        return None;
    }
    // All are read before one of them is missed, so that every problem is reported.
    match kind {
        Kind::FixedWindow => {
            let permits = policy.integer("PermitLimit", 1..=MOST);
            let window = positive(policy, "Window");
            Some(LimiterKind::FixedWindow {
                permits: permits?,
                window: window?,
            })
        }
        Kind::SlidingWindow => {
            let permits = policy.integer("PermitLimit", 1..=MOST);
            let window = positive(policy, "Window");
            let segments = policy.integer("SegmentsPerWindow", 1..=MOST_SEGMENTS);
            let (window, segments) = (window?, segments?);
            if window.duration() / segments < SHORTEST_SEGMENT {
                let pointer = policy.pointer_to("SegmentsPerWindow");
                let message = "a segment of the window is shorter than 1 ms";
                policy
                    .problems()
                    .push(Problem::error(pointer, "out_of_range", message));
                return None;
            }
            Some(LimiterKind::SlidingWindow {
                permits: permits?,
                window,
                segments,
            })
        }
        Kind::TokenBucket => {
            let tokens = policy.integer("TokenLimit", 1..=MOST);
            let per_period = policy.integer("TokensPerPeriod", 1..=MOST);
            let period = positive(policy, "ReplenishmentPeriod");
            Some(LimiterKind::TokenBucket {
                tokens: tokens?,
                per_period: per_period?,
                period: period?,
            })
        }
        Kind::Concurrency => Some(LimiterKind::Concurrency {
            permits: policy.integer("PermitLimit", 1..=MOST)?,
        }),
    }
}

/// The shortest segment of a window.
const SHORTEST_SEGMENT: std::time::Duration = std::time::Duration::from_millis(1);

fn skip(policy: &mut ObjectReader<'_, '_>, key: &str) {
    if let Some(key) = KEYS.iter().find(|known| **known == key) {
        policy.skip(key);
    }
}

fn read_partition(partition: &mut ObjectReader<'_, '_>) -> Option<PartitionBy> {
    #[derive(Clone, Copy, PartialEq)]
    enum By {
        None,
        Address,
        Header,
        RouteValue,
        Claim,
    }
    const BY: [(&str, By); 5] = [
        ("None", By::None),
        ("Address", By::Address),
        ("Header", By::Header),
        ("RouteValue", By::RouteValue),
        ("Claim", By::Claim),
    ];
    if partition.peek("By").is_none() {
        partition.skip("By");
        partition.skip("Name");
        let suggestion = "write `Address`, `Header`, `RouteValue`, `Claim` or `None`";
        missing(partition, "By", suggestion);
        return None;
    }
    let by = partition.choice("By", &BY);
    if matches!(by, Some(By::None | By::Address)) {
        without_effect(
            partition,
            "Name",
            "only headers, route values and claims have names",
        );
        return by.map(|by| match by {
            By::Address => PartitionBy::Address,
            _ => PartitionBy::None,
        });
    }
    let name = partition.text("Name").filter(|name| !name.is_empty());
    let by = by?;
    let Some(name) = name else {
        missing(partition, "Name", "write the name, such as `X-Api-Key`");
        return None;
    };
    Some(match by {
        By::Header => {
            if http::HeaderName::from_bytes(name.as_bytes()).is_err() {
                let pointer = partition.pointer_to("Name");
                let message = format!("`{name}` is not the name of a header");
                partition
                    .problems()
                    .push(Problem::error(pointer, "invalid_header_name", message));
                return None;
            }
            PartitionBy::Header(name.to_ascii_lowercase())
        }
        By::RouteValue => PartitionBy::RouteValue(name),
        By::Claim => PartitionBy::Claim(name),
        By::None | By::Address => return None,
    })
}
