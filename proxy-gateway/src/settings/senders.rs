//! `TrustedProxies` and `ProxyProtocol` of a listener: how the client behind a load balancer is known.

use std::time::Duration;

use proxy_model::Problem;
use proxy_model::json::ObjectReader;
use proxy_policies::read_network;
use proxy_runtime::server::ProxyProtocol;
use proxy_runtime::{ClientField, Network, TrustedProxies};

const FIELDS: [(&str, ClientField); 2] = [
    ("X-Forwarded-For", ClientField::XForwardedFor),
    ("Forwarded", ClientField::Forwarded),
];

/// The longest time for a header.
const LONGEST: Duration = Duration::from_secs(60);

pub(super) fn read_trusted_proxies(listener: &mut ObjectReader<'_, '_>) -> Option<TrustedProxies> {
    let pointer = listener.pointer_to("TrustedProxies");
    let read = listener.object("TrustedProxies", |proxies| {
        let networks = read_networks(proxies, "Networks", "trusted");
        let field = proxies.choice("Header", &FIELDS).unwrap_or_default();
        Some((networks?, field))
    });
    let (networks, field) = read.flatten()?;
    let proxies = TrustedProxies::new(networks, field);
    if proxies.is_none() {
        let message = "there are more than 255 different lists of trusted proxies";
        let problem = Problem::error(pointer, "too_many_lists", message);
        listener.problems().push(problem);
    }
    proxies
}

pub(super) fn read_proxy_protocol(listener: &mut ObjectReader<'_, '_>) -> Option<ProxyProtocol> {
    let read = listener.object("ProxyProtocol", |protocol| {
        let senders = read_networks(protocol, "From", "a sender");
        let timeout = protocol.time_span("Timeout");
        if timeout.is_some_and(|timeout| timeout.is_zero() || timeout.duration() > LONGEST) {
            let pointer = protocol.pointer_to("Timeout");
            let message = "`Timeout` is longer than 0 and at most 1 minute";
            let problem = Problem::error(pointer, "out_of_range", message);
            protocol.problems().push(problem);
        }
        let protocol = ProxyProtocol::new(senders?);
        Some(match timeout {
            Some(timeout) => protocol.with_timeout(timeout.duration()),
            None => protocol,
        })
    });
    read.flatten()
}

/// Reads whose clients get the causes of errors.
pub(super) fn read_cause_networks(server: &mut ObjectReader<'_, '_>) -> Vec<Network> {
    let read = server.object("CauseHeader", |header| {
        read_networks(header, "Networks", "told a cause")
    });
    read.flatten().unwrap_or_default()
}

/// Reads the networks of a section, at least one of them.
fn read_networks(
    section: &mut ObjectReader<'_, '_>,
    key: &'static str,
    role: &str,
) -> Option<Vec<Network>> {
    let networks = section.list(key, read_network);
    if networks.as_ref().is_none_or(Vec::is_empty) && is_empty(section, key) {
        let message = format!("`{key}` is missing, so no sender is {role}");
        let problem = Problem::error(section.pointer(), "missing_key", message)
            .with_suggestion(format!("write `\"{key}\": [\"10.0.0.0/8\"]`"));
        section.problems().push(problem);
        return None;
    }
    networks
}

/// Returns true if the key is not there, or is an empty list. Other mistakes are reported by the reader.
fn is_empty(section: &ObjectReader<'_, '_>, key: &str) -> bool {
    use proxy_model::json::Node;
    match section.peek(key) {
        None => true,
        Some(Node::List(list)) => list.is_empty(),
        Some(_) => false,
    }
}
