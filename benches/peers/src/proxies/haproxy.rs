//! HAProxy: one process, with one thread per worker.

use std::fmt::Write as _;

use super::Setup;

/// Number of connections for large bodies. Splice pipes use open files as well, so the full number
/// would exceed the limit.
const WITH_PIPES: usize = 1_024;

/// Renders the configuration. For large bodies it enables splicing, the feature of HAProxy for
/// them.
pub(super) fn configuration(setup: &Setup<'_>) -> String {
    let Setup { ports, workers, .. } = setup;
    let servers =
        setup
            .origins
            .iter()
            .enumerate()
            .fold(String::new(), |mut text, (number, origin)| {
                let _ = writeln!(text, "    server s{number} {origin}");
                text
            });
    let large = if setup.large_bodies {
        "    option splice-request\n    option splice-response\n"
    } else {
        ""
    };
    let connections = if setup.large_bodies {
        setup.most_connections().min(WITH_PIPES)
    } else {
        setup.most_connections()
    };
    format!(
        "\
global
    nbthread {workers}
    maxconn {connections}
    ssl-default-bind-options ssl-min-ver TLSv1.3

defaults
    mode http
    timeout connect 5s
    timeout client 300s
    timeout server 300s
    timeout http-keep-alive 300s
    http-reuse always
{large}
frontend clients
    bind 127.0.0.1:{http}
    bind 127.0.0.1:{h2c} proto h2
    bind 127.0.0.1:{tls} ssl crt {both} alpn http/1.1
    http-request set-header X-Forwarded-For %[src]
    http-request set-header X-Forwarded-Proto https if {{ ssl_fc }}
    http-request set-header X-Forwarded-Proto http unless {{ ssl_fc }}
    http-request set-header X-Forwarded-Host %[req.hdr(host)]
    default_backend origins

backend origins
    balance random(2)
{servers}",
        http = ports.http,
        h2c = ports.h2c,
        tls = ports.tls,
        both = setup.certificate.both.display(),
    )
}
