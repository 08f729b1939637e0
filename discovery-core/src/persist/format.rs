//! The content of the file: a line with the version, length and checksum of the rest, followed by JSON.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use proxy_model::config::ProxyConfig;
use proxy_model::{Problems, RouteId};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::discovery::Labels;
use crate::runner::{Good, KeptQuarantine, KeptService, KeptState};
use crate::timestamp::Timestamp;

/// The beginning of the first line. The number is the version of the format.
const MAGIC: &str = "discovery-last-good 1";

/// The longest first line: magic, length and checksum, with room to spare.
const MAX_LINE: usize = 160;

/// The error of a file's content.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum FormatError {
    #[error("not a file of this version: it does not begin with `{MAGIC}`")]
    UnknownVersion,
    #[error("the file is torn: {expected} bytes were written and {found} are there")]
    Torn { expected: u64, found: u64 },
    #[error("the file was changed: its checksum is wrong")]
    Changed,
    #[error("the file belongs to the source `{0}`")]
    OtherSource(String),
    #[error("the content cannot be read: {0}")]
    Unreadable(String),
}

#[derive(Serialize)]
struct WrittenFile<'a> {
    source: &'a str,
    services: Vec<WrittenService<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    quarantined: Vec<WrittenQuarantine<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    memo: Option<&'a str>,
}

#[derive(Serialize)]
struct WrittenQuarantine<'a> {
    name: &'a str,
    since: u64,
    problems: &'a Problems,
}

#[derive(Serialize)]
#[serde(rename_all = "snake_case")]
struct WrittenService<'a> {
    name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    group: Option<&'a str>,
    confirmed_at: u64,
    destinations_confirmed_at: u64,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    unread_since: BTreeMap<&'a str, u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    labels: Option<&'a Labels>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    later_routes: BTreeMap<&'a str, u64>,
    config: &'a ProxyConfig,
}

#[derive(Deserialize)]
struct Read {
    source: String,
    services: Vec<ReadService>,
    #[serde(default)]
    quarantined: Vec<ReadQuarantine>,
    memo: Option<String>,
}

#[derive(Deserialize)]
struct ReadQuarantine {
    name: String,
    since: u64,
    #[serde(default)]
    problems: Problems,
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
struct ReadService {
    name: String,
    group: Option<String>,
    confirmed_at: u64,
    /// Files of earlier versions do not have it: rules and destinations were one.
    destinations_confirmed_at: Option<u64>,
    /// The times at which unreadable destinations were last read, by the prefix of their ids.
    #[serde(default)]
    unread_since: BTreeMap<String, u64>,
    labels: Option<Labels>,
    /// The routes that came after those of other services, which keep requests that both match.
    #[serde(default)]
    later_routes: BTreeMap<String, u64>,
    config: ProxyConfig,
}

/// The file's bytes.
pub(crate) fn encode(source: &str, kept: &KeptState, now: SystemTime) -> Vec<u8> {
    let at = |moment: Timestamp| unix_seconds(now).saturating_sub(moment.age().as_secs());
    let services = kept.services.iter().map(|service| WrittenService {
        name: &service.name,
        group: service.group.as_deref(),
        confirmed_at: at(service.good.at),
        destinations_confirmed_at: at(service.good.read_at),
        unread_since: (service.good.unread.iter())
            .map(|(beginning, seen)| (&**beginning, at(*seen)))
            .collect(),
        labels: service.good.labels.as_deref(),
        later_routes: (service.later.iter())
            .map(|(id, number)| (id.as_str(), *number))
            .collect(),
        config: &service.good.fragment,
    });
    let quarantined = kept.quarantined.iter().map(|service| WrittenQuarantine {
        name: &service.name,
        since: at(service.since),
        problems: &service.problems,
    });
    let written = WrittenFile {
        source,
        services: services.collect(),
        quarantined: quarantined.collect(),
        memo: kept.memo.as_deref(),
    };
    let body = serde_json::to_vec(&written).expect("configuration is made of maps with text keys");
    let mut bytes = format!("{MAGIC} {} {}\n", body.len(), checksum(&body)).into_bytes();
    bytes.extend_from_slice(&body);
    bytes
}

/// Decodes the file's bytes. Ages are computed by the wall clock.
pub(crate) fn decode(
    source: &str,
    bytes: &[u8],
    now: SystemTime,
) -> Result<KeptState, FormatError> {
    let body = verified(bytes)?;
    let read: Read =
        serde_json::from_slice(body).map_err(|error| FormatError::Unreadable(error.to_string()))?;
    if read.source != source {
        return Err(FormatError::OtherSource(read.source));
    }
    // A clock that was set back makes a file from the future: it is as new as can be.
    let at = |seconds| {
        Timestamp::ago(Duration::from_secs(
            unix_seconds(now).saturating_sub(seconds),
        ))
    };
    let kept = |service: ReadService| KeptService {
        name: service.name.into(),
        group: service.group.map(Into::into),
        good: Good {
            fragment: Arc::new(service.config),
            labels: service.labels.map(Arc::new),
            at: at(service.confirmed_at),
            read_at: at(service
                .destinations_confirmed_at
                .unwrap_or(service.confirmed_at)),
            unread: (service.unread_since.into_iter())
                .map(|(beginning, seen)| (beginning.into(), at(seen)))
                .collect(),
        },
        later: (service.later_routes.into_iter())
            .map(|(id, number)| (RouteId::new(id), number))
            .collect(),
    };
    let quarantined = |service: ReadQuarantine| KeptQuarantine {
        name: service.name.into(),
        since: at(service.since),
        problems: service.problems,
    };
    Ok(KeptState {
        services: read.services.into_iter().map(kept).collect(),
        quarantined: read.quarantined.into_iter().map(quarantined).collect(),
        memo: read.memo.map(Into::into),
    })
}

/// Returns the content behind the first line, if it has the stated length and checksum.
fn verified(bytes: &[u8]) -> Result<&[u8], FormatError> {
    let head = &bytes[..bytes.len().min(MAX_LINE)];
    let end = head
        .iter()
        .position(|&b| b == b'\n')
        .ok_or(FormatError::UnknownVersion)?;
    let line = std::str::from_utf8(&head[..end]).map_err(|_| FormatError::UnknownVersion)?;
    let (length, sum) = line
        .strip_prefix(MAGIC)
        .and_then(|rest| rest.strip_prefix(' '))
        .and_then(|rest| rest.split_once(' '))
        .ok_or(FormatError::UnknownVersion)?;
    let expected: u64 = length.parse().map_err(|_| FormatError::UnknownVersion)?;
    let body = &bytes[end + 1..];
    let found = body.len() as u64;
    if found != expected {
        return Err(FormatError::Torn { expected, found });
    }
    if checksum(body) != sum {
        return Err(FormatError::Changed);
    }
    Ok(body)
}

fn checksum(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(64);
    for byte in Sha256::digest(bytes) {
        write!(text, "{byte:02x}").expect("writing to a string cannot fail");
    }
    text
}

fn unix_seconds(time: SystemTime) -> u64 {
    time.duration_since(UNIX_EPOCH)
        .unwrap_or_default()
        .as_secs()
}
