//! The named values of a record, as they are written to the log.

use std::borrow::Cow;
use std::fmt;
use std::net::SocketAddr;
use std::time::Duration;

use http::Version;

use super::QueryLogging;
use super::record::AccessRecord;
use crate::server::civil::Timestamp;

/// A value of a record, by the name that it has in each format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LogField {
    Time,
    Remote,
    Scheme,
    Method,
    Host,
    Path,
    Protocol,
    Status,
    BytesReceived,
    BytesSent,
    Duration,
    Outcome,
    Upstream,
    Added,
    FirstByte,
    Route,
    Cluster,
    Destination,
    Error,
    Cause,
    Rejection,
    UserAgent,
}

/// The value of a field.
#[derive(Debug)]
pub(super) enum Value<'a> {
    /// Text of the proxy, without characters that need an escape.
    Plain(Cow<'static, str>),
    /// Bytes from outside.
    Foreign(Cow<'a, [u8]>),
    Number(u64),
    Milliseconds(Milliseconds),
}

/// Milliseconds with three decimals.
#[derive(Debug)]
pub(super) struct Milliseconds(pub(super) Duration);

impl LogField {
    /// All fields, in the order of JSON.
    pub(super) const ALL: [Self; 22] = [
        Self::Time,
        Self::Remote,
        Self::Scheme,
        Self::Method,
        Self::Host,
        Self::Path,
        Self::Protocol,
        Self::Status,
        Self::BytesReceived,
        Self::BytesSent,
        Self::Duration,
        Self::Outcome,
        Self::Upstream,
        Self::Added,
        Self::FirstByte,
        Self::Route,
        Self::Cluster,
        Self::Destination,
        Self::Error,
        Self::Cause,
        Self::Rejection,
        Self::UserAgent,
    ];

    /// The name in JSON and in templates.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Time => "time",
            Self::Remote => "remote",
            Self::Scheme => "scheme",
            Self::Method => "method",
            Self::Host => "host",
            Self::Path => "path",
            Self::Protocol => "protocol",
            Self::Status => "status",
            Self::BytesReceived => "bytes_received",
            Self::BytesSent => "bytes_sent",
            Self::Duration => "duration_ms",
            Self::Outcome => "outcome",
            Self::Upstream => "upstream_ms",
            Self::Added => "added_ms",
            Self::FirstByte => "first_byte_ms",
            Self::Route => "route",
            Self::Cluster => "cluster",
            Self::Destination => "destination",
            Self::Error => "error",
            Self::Cause => "cause",
            Self::Rejection => "refusal",
            Self::UserAgent => "user_agent",
        }
    }

    /// The value in a record; `None` if the record has none.
    pub(super) fn of<'a>(
        self,
        record: &AccessRecord<'a>,
        query: QueryLogging,
    ) -> Option<Value<'a>> {
        let plain = |text: &'static str| Some(Value::Plain(Cow::Borrowed(text)));
        let foreign = |bytes: &'a [u8]| Some(Value::Foreign(Cow::Borrowed(bytes)));
        // A request that could not be parsed has no method, host and path.
        let sent = |bytes: &'a [u8]| foreign(bytes).filter(|_| !bytes.is_empty());
        let exchange = record.exchange;
        match self {
            Self::Time => Some(Value::Plain(Timestamp(record.time).to_string().into())),
            Self::Remote => Some(Value::Plain(
                RemoteAddress(record.remote?).to_string().into(),
            )),
            Self::Scheme => plain(if record.tls { "https" } else { "http" }),
            Self::Method => sent(record.method.as_bytes()),
            Self::Host => sent(record.host),
            Self::Path if record.path.is_empty() => None,
            Self::Path => Some(Value::Foreign(target(record, query).into_bytes().into())),
            Self::Protocol => plain(protocol(record.version)),
            Self::Status => Some(Value::Number(record.status?.as_u16().into())),
            Self::BytesReceived => Some(Value::Number(record.bytes_received)),
            Self::BytesSent => Some(Value::Number(record.bytes_sent)),
            Self::Duration => Some(Value::Milliseconds(Milliseconds(record.duration))),
            Self::Outcome => plain(record.outcome.as_str()),
            Self::Upstream => Some(Value::Milliseconds(Milliseconds(exchange?.time_to_head?))),
            Self::Added => Some(Value::Milliseconds(Milliseconds(exchange?.added?))),
            Self::FirstByte => Some(Value::Milliseconds(Milliseconds(exchange?.first_byte?))),
            Self::Route => foreign(exchange?.route.as_ref()?.as_str().as_bytes()),
            Self::Cluster => foreign(exchange?.cluster.as_ref()?.as_str().as_bytes()),
            Self::Destination => foreign(exchange?.destination.as_ref()?.as_str().as_bytes()),
            Self::Error => plain(record.error()?.as_str()),
            Self::Cause => plain(record.cause()?.as_str()),
            Self::Rejection => plain(record.rejection?),
            Self::UserAgent => foreign(record.user_agent?),
        }
    }
}

impl fmt::Display for Milliseconds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let micros = self.0.as_micros();
        write!(f, "{}.{:03}", micros / 1000, micros % 1000)
    }
}

pub(super) fn protocol(version: Version) -> &'static str {
    match version {
        Version::HTTP_10 => "HTTP/1.0",
        Version::HTTP_2 => "HTTP/2",
        _ => "HTTP/1.1",
    }
}

/// Path and query, with the query as configured.
pub(super) fn target(record: &AccessRecord<'_>, logging: QueryLogging) -> String {
    let mut target = record.path.to_owned();
    let Some(query) = record.query else {
        return target;
    };
    match logging {
        QueryLogging::Omit => {}
        QueryLogging::Full => {
            target.push('?');
            target.push_str(query);
        }
        QueryLogging::Names => {
            for (index, pair) in query.split('&').enumerate() {
                target.push(if index == 0 { '?' } else { '&' });
                // A part without `=` may be a name or a value, so it is hidden.
                match pair.split_once('=') {
                    Some((name, _)) => {
                        target.push_str(name);
                        target.push_str("=…");
                    }
                    None if pair.is_empty() => {}
                    None => target.push('…'),
                }
            }
        }
    }
    target
}
/// The client's address, with its port if that is known.
pub(super) struct RemoteAddress(pub(super) SocketAddr);

impl fmt::Display for RemoteAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.port() {
            // A trusted proxy may report an address without a port.
            0 => self.0.ip().fmt(f),
            _ => self.0.fmt(f),
        }
    }
}
