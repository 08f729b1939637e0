//! The matrix of measured cases.

use std::time::Duration;

use crate::load::{Exchange, Pace};
use crate::origin::Resource;
use crate::proxies::{Kind, Protocol};

/// One row of the matrix.
#[derive(Clone, Debug)]
pub(crate) struct Case {
    /// The name on the command line.
    pub(crate) name: &'static str,
    pub(crate) title: &'static str,
    pub(crate) exchange: Exchange,
    pub(crate) protocol: Protocol,
    pub(crate) shape: Shape,
    /// True if system calls are counted by default.
    pub(crate) counts_calls: bool,
    /// Variants that take part besides the proxies of all cases.
    pub(crate) variants: &'static [Kind],
    pub(crate) bounds: &'static [Bound],
}

/// The load on a proxy, and the measured quantity.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Shape {
    /// Processor time per request.
    Load { pace: Pace, connections: usize },
    /// The same with several streams on each HTTP/2 connection.
    Streams { connections: usize, streams: usize },
    /// Memory per idle connection.
    Idle { connections: usize },
    /// Throughput of our gateway with one worker and with two.
    Workers { connections: usize },
}

/// The goal of our gateway.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Bound {
    /// At most this multiple of the best of these.
    Best(&'static [Kind], f64),
    /// At most this multiple of each of these.
    Each(&'static [Kind], f64),
    /// At most this value.
    Value(f64),
    /// At least this multiple of one worker's throughput.
    Scale(f64),
    /// The cost of a variant of ours: at most this multiple of another's.
    Variant(Kind, Kind, f64),
    /// A median no longer than that of the best of these, within noise.
    P50(&'static [Kind]),
    /// A 99th percentile no longer than that of the best of these, within noise.
    P99(&'static [Kind]),
}

const NGINX: Kind = Kind::Nginx;
const HAPROXY: Kind = Kind::Haproxy;
/// All proxies, without the floors.
pub(crate) const PEERS: &[Kind] = &[
    Kind::Nginx,
    Kind::Haproxy,
    Kind::Envoy,
    Kind::Caddy,
    Kind::AxumReverseProxy,
    Kind::Pingora,
];

/// Goals for bodies that are large enough to be spliced.
const LARGE: &[Bound] = &[
    Bound::Each(&[Kind::Relay], 1.25),
    Bound::Each(&[Kind::RelaySplice], 1.10),
    Bound::Best(PEERS, 0.75),
];
/// Goals for open loops, whose latencies are meaningful.
const OPEN: &[Bound] = &[
    Bound::Each(&[NGINX], 0.85),
    Bound::P50(PEERS),
    Bound::P99(PEERS),
];
const SPLICE: &[Kind] = &[Kind::RelaySplice];

const fn closed(connections: usize) -> Shape {
    Shape::Load {
        pace: Pace::Closed,
        connections,
    }
}

const fn churn(connections: usize) -> Shape {
    Shape::Load {
        pace: Pace::Churn,
        connections,
    }
}

const fn open(rate: f64) -> Shape {
    Shape::Load {
        pace: Pace::Open(rate),
        connections: 64,
    }
}

const GET_128: Exchange = Exchange::get(Resource::Bytes128);

const fn case(
    name: &'static str,
    title: &'static str,
    exchange: Exchange,
    shape: Shape,
    bounds: &'static [Bound],
) -> Case {
    Case {
        name,
        title,
        exchange,
        protocol: Protocol::Http1,
        shape,
        counts_calls: false,
        variants: &[],
        bounds,
    }
}

impl Case {
    const fn over(self, protocol: Protocol) -> Self {
        Self { protocol, ..self }
    }

    const fn counting_calls(self) -> Self {
        Self {
            counts_calls: true,
            ..self
        }
    }

    const fn with(self, variants: &'static [Kind]) -> Self {
        Self { variants, ..self }
    }

    /// Returns true if a proxy takes part.
    pub(crate) fn has(&self, kind: Kind) -> bool {
        kind.speaks(self.protocol) && (!kind.is_variant() || self.variants.contains(&kind))
    }

    /// Returns true if the proxies are configured for large bodies.
    pub(crate) fn has_large_bodies(&self) -> bool {
        self.exchange.upload >= 64 << 10 || self.exchange.resource.len() >= 64 << 10
    }

    /// The unit of its values.
    pub(crate) fn unit(&self) -> &'static str {
        match self.shape {
            Shape::Load { .. } | Shape::Streams { .. } => "µs of processor time per request",
            Shape::Idle { .. } => "KiB per connection",
            Shape::Workers { .. } => "µs per request",
        }
    }
}

/// All cases in the order of measurement. The first is the most important one.
#[rustfmt::skip]
pub(crate) const CASES: &[Case] = &[
    case("get-128", "128 B GET, 64 connections", GET_128, closed(64),
        &[Bound::Best(&[NGINX, HAPROXY], 0.75), Bound::Each(&[Kind::Relay], 1.15)]).counting_calls(),
    case("variants", "128 B GET, 64 connections: as a service in axum, with a tower layer, and without LTO", GET_128, closed(64),
        &[Bound::Variant(Kind::ServiceInAxum, Kind::AxumReverseProxy, 0.60), Bound::Variant(Kind::GatewayLayered, Kind::Nginx, 0.95),
            Bound::Variant(Kind::GatewayPlain, Kind::Gateway, 1.05)])
        .with(&[Kind::ServiceInAxum, Kind::GatewayLayered, Kind::GatewayPlain]),
    case("get-0", "GET without a body, 64 connections", Exchange::get(Resource::Empty), closed(64), &[]),
    case("get-1k", "1 KiB GET, 64 connections", Exchange::get(Resource::Kilobyte), closed(64), &[]),
    case("one-connection", "128 B GET, 1 connection", GET_128, closed(1), &[]),
    case("chunks", "reply of 16 chunks of 1 KiB, 64 connections", Exchange::get(Resource::Chunks16), closed(64), &[]).counting_calls(),
    case("get-64k", "64 KiB GET, 64 connections", Exchange::get(Resource::Kilobytes64), closed(64),
        LARGE).with(SPLICE),
    case("get-1m", "1 MiB GET, 16 connections", Exchange::get(Resource::Megabyte), closed(16),
        LARGE).with(SPLICE),
    case("post-1m", "1 MiB POST, 16 connections", Exchange::post(1 << 20), closed(16),
        LARGE).with(SPLICE),
    case("h2c", "128 B GET over HTTP/2, 8 connections × 8 streams", GET_128, Shape::Streams { connections: 8, streams: 8 },
        &[Bound::Each(&[HAPROXY], 0.90)]).over(Protocol::H2c),
    case("tls", "128 B GET over TLS 1.3, 64 connections", GET_128, closed(64),
        &[Bound::Each(&[NGINX, HAPROXY], 0.90)]).over(Protocol::Tls),
    case("churn", "a new connection for each 128 B GET", GET_128, churn(16),
        &[Bound::Each(&[NGINX], 1.0)]),
    case("churn-tls", "a new TLS 1.3 connection for each 128 B GET", GET_128, churn(16),
        &[Bound::Each(&[NGINX], 1.0)]).over(Protocol::Tls),
    case("open-5k", "128 B GET, 5,000 a second", GET_128, open(5_000.0),
        OPEN),
    case("open-15k", "128 B GET, 15,000 a second", GET_128, open(15_000.0),
        OPEN),
    case("idle", "10,000 idle connections, one request each before", GET_128, Shape::Idle { connections: 10_000 },
        &[Bound::Value(2.0)]),
    case("workers", "two workers instead of one, 128 B GET, 128 connections", GET_128, Shape::Workers { connections: 128 },
        &[Bound::Scale(1.8)]),
];

/// The effort of a measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Pains {
    pub(crate) rounds: usize,
    pub(crate) warm_up: Duration,
    pub(crate) window: Duration,
}

impl Pains {
    pub(crate) const FULL: Self = Self {
        rounds: 8,
        warm_up: Duration::from_millis(150),
        window: Duration::from_millis(600),
    };

    pub(crate) const QUICK: Self = Self {
        rounds: 5,
        warm_up: Duration::from_millis(100),
        window: Duration::from_millis(400),
    };
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn names_of_cases_are_different_and_need_no_quotes() {
        let names: BTreeSet<_> = CASES.iter().map(|case| case.name).collect();
        assert_eq!(names.len(), CASES.len());
        let plain = |name: &str| name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-');
        assert!(names.iter().all(|name| plain(name)));
    }

    #[test]
    fn bounds_are_set_against_proxies_that_take_part() {
        for case in CASES {
            for bound in case.bounds {
                let kinds = match *bound {
                    Bound::Each(kinds, _) => kinds.to_vec(),
                    Bound::Variant(ours, other, _) => vec![ours, other],
                    _ => Vec::new(),
                };
                assert!(kinds.iter().all(|kind| case.has(*kind)), "{}", case.name);
            }
        }
    }
}
