//! `Server.Limits`: the limits of clients.
//!
//! The ranges exclude values with which no client could be served, such as no streams at all, and values that
//! a limit cannot have. They equal those of the schema.

use std::ops::RangeInclusive;
use std::time::Duration;

use proxy_model::Problem;
use proxy_model::json::{Node, ObjectReader};
use proxy_runtime::server::{DataRate, Http2Limits, Limits};

use super::whole;

/// The word for an infinite time in .NET (`Timeout.InfiniteTimeSpan`).
const INFINITE: &str = "Infinite";

const SECOND: Duration = Duration::from_secs(1);
const MINUTE: Duration = Duration::from_secs(60);
const DAY: Duration = Duration::from_secs(86_400);

/// A client needs this time to respond, and without a maximum it could keep its connection forever.
const TIMEOUT: RangeInclusive<Duration> = Duration::from_millis(100)..=DAY;

/// The largest window of HTTP/2 (RFC 9113 section 6.9.1). `h2` panics beyond it.
const LARGEST_WINDOW: u32 = (1 << 31) - 1;

/// The initial window of a connection, whatever is configured (RFC 9113 section 6.9.2): a smaller one would
/// have no effect.
const LEAST_CONNECTION_WINDOW: u32 = 65_535;

/// A client fills its window, and `h2` treats many frames of less than 256 bytes as a flood.
const LEAST_STREAM_WINDOW: u32 = 1024;

/// The minimum memory. With less, a single transfer could exhaust a worker.
const LEAST_MEMORY: i64 = 16 << 20;

/// Reads the limits of the server. `body_bytes` is the default of routes.
pub(super) fn read(limits: &mut ObjectReader<'_, '_>) -> Limits {
    let mut read = Limits::default();
    set(
        &mut read.header_bytes,
        whole(limits, "HeaderBytes", 1024..=1 << 20),
    );
    set(
        &mut read.header_fields,
        whole(limits, "HeaderFields", 1..=10_000),
    );
    set(
        &mut read.request_line,
        whole(limits, "RequestLine", 256..=1 << 20),
    );
    set(
        &mut read.header_timeout,
        time(limits, "HeaderTimeout", TIMEOUT),
    );
    set(
        &mut read.keep_alive,
        time(limits, "KeepAlive", *TIMEOUT.start()..=Duration::MAX),
    );
    set(
        &mut read.closing_grace,
        time(limits, "ClosingGrace", Duration::ZERO..=MINUTE),
    );
    let requests = limits.integer("RequestsPerConnection", 1..=i64::MAX);
    set(&mut read.requests_per_connection, requests.and_then(number));
    set(
        &mut read.connection_age,
        time(limits, "ConnectionAge", SECOND..=Duration::MAX),
    );
    read.connections = whole(limits, "Connections", 1..=10_000_000);
    read.connections_per_address = whole(limits, "ConnectionsPerAddress", 1..=10_000_000);
    let memory = limits.integer("MemoryBytes", LEAST_MEMORY..=i64::MAX);
    read.memory_bytes = memory.and_then(number);
    read.body_bytes = limits.integer("BodyBytes", 0..=i64::MAX).and_then(number);
    set(&mut read.data_rate, limits.object("DataRate", data_rate));
    set(
        &mut read.buffer_bytes,
        whole(limits, "BufferBytes", 8192..=64 << 20),
    );
    set(
        &mut read.tls_handshake_timeout,
        time(limits, "TlsHandshakeTimeout", TIMEOUT),
    );
    set(&mut read.http2, limits.object("Http2", http2));
    read
}

/// Reads the minimum data rate. `None`: clients may be arbitrarily slow.
fn data_rate(rate: &mut ObjectReader<'_, '_>) -> Option<DataRate> {
    let is_on = rate.boolean("Enabled").unwrap_or(true);
    let mut read = DataRate::default();
    set(
        &mut read.bytes_per_second,
        rate.integer("BytesPerSecond", 1..=u32::MAX),
    );
    // A window of zero would be over before the first byte, every time.
    set(&mut read.window, time(rate, "Window", SECOND..=DAY));
    is_on.then_some(read)
}

/// No count may be 0: every client has a stream and a SETTINGS frame, and for the others 0 could be read as
/// "any".
fn http2(limits: &mut ObjectReader<'_, '_>) -> Http2Limits {
    const COUNT: RangeInclusive<u32> = 1..=u32::MAX;
    let mut read = Http2Limits::default();
    set(
        &mut read.concurrent_streams,
        limits.integer("ConcurrentStreams", COUNT),
    );
    set(
        &mut read.stream_window,
        limits.integer("StreamWindow", LEAST_STREAM_WINDOW..=LARGEST_WINDOW),
    );
    set(
        &mut read.connection_window,
        limits.integer("ConnectionWindow", LEAST_CONNECTION_WINDOW..=LARGEST_WINDOW),
    );
    set(
        &mut read.pending_resets,
        whole(limits, "PendingResets", COUNT),
    );
    set(
        &mut read.resets_per_second,
        limits.integer("ResetsPerSecond", COUNT),
    );
    set(
        &mut read.resets_per_connection,
        limits.integer("ResetsPerConnection", COUNT),
    );
    set(
        &mut read.pings_per_second,
        limits.integer("PingsPerSecond", COUNT),
    );
    set(
        &mut read.settings_per_second,
        limits.integer("SettingsPerSecond", COUNT),
    );
    set(
        &mut read.other_frames_per_second,
        limits.integer("OtherFramesPerSecond", COUNT),
    );
    set(&mut read.error_resets, whole(limits, "ErrorResets", COUNT));
    read
}

/// Sets a limit if it is configured. Otherwise it keeps its default.
fn set<T>(limit: &mut T, said: Option<T>) {
    if let Some(said) = said {
        *limit = said;
    }
}

fn number(number: i64) -> Option<u64> {
    number.try_into().ok()
}

/// Reads a length of time in a range. One without a maximum accepts [`INFINITE`], too.
fn time(
    limits: &mut ObjectReader<'_, '_>,
    key: &'static str,
    range: RangeInclusive<Duration>,
) -> Option<Duration> {
    let has_end = *range.end() < Duration::MAX;
    if !has_end && limits.peek(key).is_some_and(is_infinite) {
        limits.skip(key);
        return Some(Duration::MAX);
    }
    let time = Duration::from(limits.time_span(key)?);
    if range.contains(&time) {
        return Some(time);
    }
    let pointer = limits.pointer_to(key);
    let least = range.start();
    let problem = if has_end {
        let message = format!("`{key}` is not between {least:?} and {:?}", range.end());
        Problem::error(pointer, "out_of_range", message)
    } else {
        let message = format!("`{key}` is shorter than {least:?}");
        Problem::error(pointer, "out_of_range", message)
            .with_suggestion(format!("`{INFINITE}` is for ever"))
    };
    limits.problems().push(problem);
    None
}

fn is_infinite(node: &Node) -> bool {
    matches!(node, Node::Text(text) if text.trim().eq_ignore_ascii_case(INFINITE))
}

#[cfg(test)]
mod tests;
