//! The counters of the server as OpenMetrics text.

use std::fmt::Write;

use crate::server::ServerCounts;

/// Writes the counters of the admin listener itself.
pub(super) fn write_evicted(evicted: u64, text: &mut String) {
    const NAME: &str = "proxy_admin_evicted_connections";
    let help = "Connections of the admin listener that were closed to make room for others.";
    // Writing to a String cannot fail.
    let _ = writeln!(
        text,
        "# HELP {NAME} {help}\n# TYPE {NAME} counter\n{NAME}_total {evicted}"
    );
}

/// Writes the number of requests that were not allowed.
pub(super) fn write_rejected(rejected: u64, text: &mut String) {
    const NAME: &str = "proxy_admin_rejected_requests";
    let help = "Requests to the admin listener without a valid token or certificate.";
    // Writing to a String cannot fail.
    let _ = writeln!(
        text,
        "# HELP {NAME} {help}\n# TYPE {NAME} counter\n{NAME}_total {rejected}"
    );
}

pub(super) fn write(counts: &ServerCounts, text: &mut String) {
    let counters = [
        (
            "server_connections",
            "Connections accepted.",
            counts.accepted_connections,
        ),
        (
            "server_accept_errors",
            "Attempts to accept that failed.",
            counts.accept_errors,
        ),
        (
            "server_connection_limit",
            "Times that a worker stopped accepting at its share of the connections.",
            counts.connection_limit_reached,
        ),
        (
            "server_address_limit",
            "Connections closed at once since their client had as many as it may.",
            counts.connections_beyond_address_limit,
        ),
        (
            "server_evicted_connections",
            "Connections without a whole request that were closed to make room for others.",
            counts.evicted_connections,
        ),
        (
            "server_shed_connections",
            "Connections that were reset for the memory that they held.",
            counts.shed_connections,
        ),
        (
            "server_proxy_header_failures",
            "Connections without a header of the PROXY protocol, where a listener requires one.",
            counts.proxy_header_failures,
        ),
        (
            "server_tls_handshake_failures",
            "TLS handshakes that failed or took too long.",
            counts.tls_handshake_failures,
        ),
        ("server_requests", "Requests begun.", counts.requests),
        (
            "server_refused_requests",
            "Requests that the server rejected itself.",
            counts.rejected_requests,
        ),
        (
            "server_malformed_requests",
            "Requests that were not HTTP.",
            counts.malformed_requests,
        ),
        (
            "server_header_timeouts",
            "Heads that did not arrive in time.",
            counts.header_timeouts,
        ),
        (
            "server_slow_clients",
            "Transfers ended since the client was too slow.",
            counts.slow_clients,
        ),
        (
            "server_panics",
            "Requests whose service panicked.",
            counts.panics,
        ),
    ];
    let gauges = [
        (
            "server_active_connections",
            "Connections that are open.",
            counts.active_connections,
        ),
        (
            "server_held_bytes",
            "Memory that waits for clients, or for what they have sent to be taken.",
            counts.held_bytes,
        ),
        (
            "server_held_bytes_limit",
            "Maximum of server_held_bytes.",
            counts.held_bytes_limit,
        ),
        (
            "server_active_requests",
            "Requests that are being answered.",
            counts.active_requests,
        ),
    ];
    for (name, help, value) in counters {
        // Writing to a String cannot fail.
        let _ = writeln!(
            text,
            "# HELP proxy_{name} {help}\n# TYPE proxy_{name} counter\nproxy_{name}_total {value}"
        );
    }
    for (name, help, value) in gauges {
        let _ = writeln!(
            text,
            "# HELP proxy_{name} {help}\n# TYPE proxy_{name} gauge\nproxy_{name} {value}"
        );
    }
}

/// Writes the number of missing lines of each log.
pub(super) fn write_dropped_lines(
    logs: impl Iterator<Item = (&'static str, u64)>,
    text: &mut String,
) {
    for (index, (log, lines)) in logs.enumerate() {
        if index == 0 {
            text.push_str(
                "# HELP proxy_log_dropped_lines Lines of a log that were dropped or could not be written.\n\
                 # TYPE proxy_log_dropped_lines counter\n",
            );
        }
        // Writing to a String cannot fail.
        let _ = writeln!(
            text,
            "proxy_log_dropped_lines_total{{log=\"{log}\"}} {lines}"
        );
    }
}

/// Writes the number of spans that were dropped.
pub(super) fn write_dropped_spans(spans: u64, text: &mut String) {
    // Writing to a String cannot fail.
    let _ = writeln!(
        text,
        "# HELP proxy_trace_dropped_spans Spans of traces that the collector did not get.\n\
         # TYPE proxy_trace_dropped_spans counter\nproxy_trace_dropped_spans_total {spans}"
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dropped_lines_are_counted_for_each_log() {
        let mut text = String::new();
        write_dropped_lines([("program", 3), ("access", 0)].into_iter(), &mut text);
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(
            lines[1..],
            [
                "# TYPE proxy_log_dropped_lines counter",
                "proxy_log_dropped_lines_total{log=\"program\"} 3",
                "proxy_log_dropped_lines_total{log=\"access\"} 0",
            ]
        );
    }
}
