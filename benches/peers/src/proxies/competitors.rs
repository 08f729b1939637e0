//! The small programs below `benches/competitors`: their command lines.

use super::{Kind, Setup};

const LOCKS: [(Kind, &str, &str); 2] = [
    (
        Kind::AxumReverseProxy,
        "axum-reverse-proxy",
        include_str!("../../../competitors/axum-reverse-proxy/Cargo.lock"),
    ),
    (
        Kind::Pingora,
        "pingora-proxy",
        include_str!("../../../competitors/pingora/Cargo.lock"),
    ),
];

/// The version of the library that a competitor is built from. `None` for other kinds.
pub(super) fn version(kind: Kind) -> Option<&'static str> {
    let (_, package, lock) = LOCKS.iter().find(|(each, ..)| *each == kind)?;
    let (_, rest) = lock.split_once(&format!("name = \"{package}\"\nversion = \""))?;
    Some(rest.split_once('"')?.0)
}

pub(super) fn axum_reverse_proxy(setup: &Setup<'_>) -> Vec<String> {
    let mut arguments = vec![setup.ports.http.to_string(), setup.workers.to_string()];
    arguments.extend(
        setup
            .origins
            .iter()
            .map(|origin| format!("http://{origin}")),
    );
    arguments
}

pub(super) fn pingora(setup: &Setup<'_>) -> Vec<String> {
    let numbers = [setup.ports.http, setup.ports.h2c].map(|port| port.to_string());
    let mut arguments = numbers.to_vec();
    arguments.push(setup.workers.to_string());
    arguments.extend(setup.origins.iter().map(ToString::to_string));
    arguments
}
