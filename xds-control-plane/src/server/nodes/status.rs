use std::net::SocketAddr;
use std::time::SystemTime;

use serde::{Serialize, Serializer};
use xds_types::pb::envoy::config::core::v3::Node;
use xds_types::pb::envoy::config::core::v3::node::UserAgentVersionType;

use super::record::clean;
use crate::snapshot::{ResourceType, Subscription, Version};

/// Names of a subscription that are listed; of more there is only the number.
pub(super) const LISTED_NAMES: usize = 32;

/// A node, with the streams that it has open.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct NodeStatus {
    /// The node's own identity.
    #[serde(flatten)]
    pub node: NodeIdentity,
    /// The client's streams, the oldest first: one if it is aggregated, else one for each subscription.
    pub streams: Vec<StreamStatus>,
    /// The polls without a stream in the last five minutes.
    pub polls: Vec<PollStatus>,
}

/// The polls of a node without a stream.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct PollStatus {
    /// The resource type.
    #[serde(rename = "type", serialize_with = "shown")]
    pub resource_type: ResourceType,
    /// The kind of polls: unary calls, or HTTP with JSON.
    #[serde(serialize_with = "subscription")]
    pub subscription: Subscription,
    /// Number of polls.
    pub polls: u64,
    /// The version that it reported.
    #[serde(serialize_with = "shown_if_any")]
    pub had: Option<Version>,
    /// The version of the response. With several subscriptions of one type, as an Envoy has one for each
    /// cluster, it is that of the last.
    #[serde(serialize_with = "shown")]
    pub answered: Version,
    /// The time of the last poll.
    #[serde(serialize_with = "seconds")]
    pub at: SystemTime,
}

/// The identity of a node, as reported by itself. It is not verified.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[non_exhaustive]
pub struct NodeIdentity {
    /// `node.id`.
    pub id: String,
    /// `node.cluster`.
    pub cluster: String,
    /// Name and version of the program, such as `envoy 1.40.0`.
    pub agent: String,
}

impl NodeIdentity {
    pub(crate) fn new(node: &Node) -> Self {
        const LONGEST: usize = 256;
        let version = match &node.user_agent_version_type {
            Some(UserAgentVersionType::UserAgentVersion(version)) => version.clone(),
            Some(UserAgentVersionType::UserAgentBuildVersion(build)) => build
                .version
                .map(|version| {
                    format!(
                        "{}.{}.{}",
                        version.major_number, version.minor_number, version.patch
                    )
                })
                .unwrap_or_default(),
            None => String::new(),
        };
        let agent = format!("{} {version}", node.user_agent_name);
        Self {
            id: clean(&node.id, LONGEST),
            cluster: clean(&node.cluster, LONGEST),
            agent: clean(agent.trim(), LONGEST),
        }
    }
}

/// The kind of a stream, one of four.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[non_exhaustive]
pub struct StreamKind {
    /// Incremental rather than state of the world.
    pub delta: bool,
    /// Aggregated or of one type.
    #[serde(serialize_with = "subscription")]
    pub subscription: Subscription,
}

/// An open stream.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct StreamStatus {
    /// The node that has opened the stream, once it has identified itself.
    #[serde(skip)]
    pub node: Option<NodeIdentity>,
    /// The address at the other end, if it is known.
    pub peer: Option<SocketAddr>,
    /// The kind.
    #[serde(flatten)]
    pub kind: StreamKind,
    /// The time at which the stream was opened.
    #[serde(serialize_with = "seconds")]
    pub since: SystemTime,
    /// The subscriptions, by type.
    pub types: Vec<TypeStatus>,
}

impl StreamStatus {
    pub(super) fn new(kind: StreamKind, peer: Option<SocketAddr>) -> Self {
        Self {
            node: None,
            peer,
            kind,
            since: SystemTime::now(),
            types: Vec::new(),
        }
    }
}

/// The state of one type on a stream.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct TypeStatus {
    /// The resource type.
    #[serde(rename = "type", serialize_with = "shown")]
    pub resource_type: ResourceType,
    /// True if all resources are subscribed to.
    pub wildcard: bool,
    /// Number of names that are subscribed to.
    pub name_count: usize,
    /// The first of the names.
    pub names: Vec<String>,
    /// Number of responses.
    pub responses: u64,
    /// The version that was sent last.
    #[serde(serialize_with = "shown_if_any")]
    pub sent: Option<Version>,
    /// The version that the client has acknowledged last.
    #[serde(serialize_with = "shown_if_any")]
    pub acknowledged: Option<Version>,
    /// The time of that acknowledgement.
    #[serde(serialize_with = "seconds_if_any")]
    pub acknowledged_at: Option<SystemTime>,
    /// The last rejection by the client. It stays when the client has acknowledged something else since.
    #[serde(rename = "refused")]
    pub rejected: Option<Rejection>,
}

impl TypeStatus {
    pub(super) fn new(resource_type: ResourceType) -> Self {
        Self {
            resource_type,
            wildcard: false,
            name_count: 0,
            names: Vec::new(),
            responses: 0,
            sent: None,
            acknowledged: None,
            acknowledged_at: None,
            rejected: None,
        }
    }
}

/// A response that a client did not take.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct Rejection {
    /// The version of the response.
    #[serde(serialize_with = "shown")]
    pub version: Version,
    /// The client's error message.
    pub message: String,
    /// The time.
    #[serde(serialize_with = "seconds")]
    pub at: SystemTime,
}

fn subscription<S: Serializer>(value: &Subscription, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(match value {
        Subscription::Aggregated => "aggregated",
        Subscription::Separate => "separate",
        Subscription::Rest => "rest",
    })
}

fn shown<S: Serializer>(value: &impl std::fmt::Display, to: S) -> Result<S::Ok, S::Error> {
    to.collect_str(value)
}

fn shown_if_any<S: Serializer>(
    value: &Option<impl std::fmt::Display>,
    to: S,
) -> Result<S::Ok, S::Error> {
    match value {
        Some(value) => to.collect_str(value),
        None => to.serialize_none(),
    }
}

/// Serializes a time as seconds since 1970, like other times of this project's APIs.
fn seconds<S: Serializer>(time: &SystemTime, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_u64(since_epoch(*time))
}

fn seconds_if_any<S: Serializer>(time: &Option<SystemTime>, to: S) -> Result<S::Ok, S::Error> {
    match time {
        Some(time) => to.serialize_u64(since_epoch(*time)),
        None => to.serialize_none(),
    }
}

fn since_epoch(time: SystemTime) -> u64 {
    time.duration_since(SystemTime::UNIX_EPOCH)
        .map_or(0, |since| since.as_secs())
}
