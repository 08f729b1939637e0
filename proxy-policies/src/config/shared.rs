//! Limits that several gateways share by a Redis.

use std::fmt;

use proxy_model::json::ObjectReader;
use proxy_model::{Problem, TimeSpan};
use serde::{Deserialize, Serialize};

use super::{missing, positive};

/// The port of Redis.
#[cfg(feature = "redis")]
const PORT: u16 = 6379;
/// The beginning of addresses with TLS.
const SECURE: &str = "rediss://";
/// The longest time for a decision.
const LONGEST_TIMEOUT: TimeSpan = TimeSpan::from_secs(1);
/// The time for a decision where nothing is written, in milliseconds.
const TIMEOUT: u64 = 50;

/// The Redis of a limit, and the gateways that share it.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct SharedConfig {
    pub(crate) address: String,
    pub(crate) username: Option<String>,
    pub(crate) password: Option<String>,
    pub(crate) database: u32,
    pub(crate) timeout: TimeSpan,
    pub(crate) replicas: u32,
    pub(crate) prefix: String,
    /// The authorities of the certificate of Redis. `None`: there is no TLS.
    #[serde(default)]
    pub(crate) ca_file: Option<String>,
}

pub(super) fn read(shared: &mut ObjectReader<'_, '_>) -> Option<SharedConfig> {
    let address = read_address(shared);
    let timeout = positive(shared, "Timeout");
    if timeout.is_some_and(|timeout| timeout > LONGEST_TIMEOUT) {
        let pointer = shared.pointer_to("Timeout");
        let message = format!("`Timeout` is at most {LONGEST_TIMEOUT}, since requests wait for it");
        shared
            .problems()
            .push(Problem::error(pointer, "out_of_range", message));
    }
    let username = shared.text("Username");
    let password = shared.text("Password");
    if username.is_some() && password.is_none() {
        missing(shared, "Password", "write it, or remove `Username`");
    }
    let prefix = shared.text("KeyPrefix");
    let ca_file = shared.text("CaFile");
    let is_secure = address.as_ref().map(|address| address.starts_with(SECURE));
    match (is_secure, &ca_file) {
        (Some(true), None) => missing(
            shared,
            "CaFile",
            "name a PEM file with the authorities of its certificate",
        ),
        (Some(false), Some(_)) => {
            let pointer = shared.pointer_to("CaFile");
            let problem = Problem::error(pointer, "no_effect", "`redis://` has no TLS");
            let problem = problem.with_suggestion("write `rediss://`, or remove `CaFile`");
            shared.problems().push(problem);
        }
        _ => {}
    }
    Some(SharedConfig {
        username,
        password,
        database: shared.integer("Database", 0..=65_535).unwrap_or_default(),
        timeout: timeout.unwrap_or(TimeSpan::from_millis(TIMEOUT)),
        replicas: shared.integer("Replicas", 1..=10_000).unwrap_or(1),
        prefix: prefix.unwrap_or_else(|| "proxy".to_owned()),
        ca_file,
        address: address?,
    })
}

fn read_address(shared: &mut ObjectReader<'_, '_>) -> Option<String> {
    const SUGGESTION: &str = "write `redis://127.0.0.1:6379`";
    let Some(text) = shared.text("Address") else {
        if shared.peek("Address").is_none() {
            missing(shared, "Address", SUGGESTION);
        }
        return None;
    };
    if is_of_several(&text) {
        let pointer = shared.pointer_to("Address");
        let message =
            "Sentinel and Redis Cluster are not supported: `Address` is that of one Redis";
        let problem = Problem::error(pointer, "unsupported", message);
        let suggestion =
            "write the address of a proxy, or a virtual address, that follows the primary";
        shared.problems().push(problem.with_suggestion(suggestion));
        return None;
    }
    let parsed = text.parse::<http::Uri>().ok();
    let is_redis = parsed.is_some_and(|uri| {
        let has_host = uri.authority().is_some_and(|authority| {
            !authority.host().is_empty() && !authority.as_str().contains('@')
        });
        has_host
            && matches!(uri.scheme_str(), Some("redis" | "rediss"))
            && matches!(uri.path(), "" | "/")
    });
    if !is_redis {
        let pointer = shared.pointer_to("Address");
        let message = "`Address` is neither `redis://` nor `rediss://` with a host and a port, without a name and a password";
        let problem = Problem::error(pointer, "invalid_address", message);
        shared.problems().push(problem.with_suggestion(SUGGESTION));
        return None;
    }
    Some(text)
}

/// Returns true for the ways in which clients write several servers: lists, and schemes of their own.
fn is_of_several(address: &str) -> bool {
    let scheme = address.split("://").next().unwrap_or_default();
    let scheme = scheme.to_ascii_lowercase();
    address.contains(',') || scheme.contains("sentinel") || scheme.contains("cluster")
}

#[cfg(feature = "redis")]
impl SharedConfig {
    /// The host and the port to connect to.
    pub(crate) fn host_and_port(&self) -> (String, u16) {
        let uri: http::Uri = self.address.parse().unwrap_or_default();
        let host = uri.host().unwrap_or_default();
        let host = host.trim_start_matches('[').trim_end_matches(']');
        (host.to_owned(), uri.port_u16().unwrap_or(PORT))
    }
}

impl fmt::Debug for SharedConfig {
    /// Leaves out the password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedConfig")
            .field("address", &self.address)
            .finish_non_exhaustive()
    }
}
