//! Section `Listeners`: the addresses of the proxy, and their certificates.

use std::net::{Ipv4Addr, SocketAddr};

use proxy_model::json::{Node, ObjectReader};
use proxy_model::{Problem, Problems, pointer_to};
use proxy_runtime::server::{ListenerRules, ProxyProtocol, overlap};

use super::Settings;
use super::senders::{read_proxy_protocol, read_trusted_proxies};
use super::tls::{self, Tls};

/// An address on which the proxy listens.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Listener {
    pub(crate) name: String,
    pub(crate) address: SocketAddr,
    pub(crate) tls: Option<Tls>,
    pub(crate) rules: ListenerRules,
    pub(crate) proxy_protocol: Option<ProxyProtocol>,
}

impl Listener {
    /// Returns true if clients are asked for certificates, by some name at least.
    pub(crate) fn asks_for_certificates(&self) -> bool {
        self.tls.as_ref().is_some_and(Tls::asks_clients)
    }
}

impl Default for Listener {
    fn default() -> Self {
        Self {
            name: "default".to_owned(),
            address: SocketAddr::from((Ipv4Addr::LOCALHOST, 8080)),
            tls: None,
            rules: ListenerRules::default(),
            proxy_protocol: None,
        }
    }
}

pub(super) fn read(
    name: &str,
    node: &Node,
    pointer: &str,
    problems: &mut Problems,
) -> Option<Listener> {
    ObjectReader::read(node, pointer, problems, |listener| {
        let address = read_address(listener);
        if address.is_none() && listener.peek("Address").is_none() {
            let problem = Problem::error(
                listener.pointer(),
                "missing_address",
                "the listener has no `Address`",
            )
            .with_suggestion("write `\"Address\": \"0.0.0.0:8080\"`");
            listener.problems().push(problem);
        }
        let tls = listener.object("Tls", tls::read);
        let mut rules = ListenerRules::default();
        rules.strict_paths = listener.boolean("StrictPaths").unwrap_or(false);
        rules.trusts_senders = listener.boolean("TrustedSenders").unwrap_or(false);
        rules.trusted_proxies = read_trusted_proxies(listener);
        if rules.trusted_proxies.is_some() && listener.peek("TrustedSenders").is_some() {
            let message = "`TrustedProxies` names the trusted clients";
            let pointer = listener.pointer_to("TrustedSenders");
            let problem = Problem::error(pointer, "contradiction", message)
                .with_suggestion("remove `TrustedSenders`");
            listener.problems().push(problem);
        }
        let proxy_protocol = read_proxy_protocol(listener);
        Some(Listener {
            name: name.to_owned(),
            address: address?,
            tls,
            rules,
            proxy_protocol,
        })
    })?
}

/// Reads the key `Address` of an object: an IP address and a port.
pub(super) fn read_address(object: &mut ObjectReader<'_, '_>) -> Option<SocketAddr> {
    let text = object.text("Address")?;
    let parsed = match text.strip_prefix("localhost:") {
        Some(port) => format!("127.0.0.1:{port}").parse(),
        None => text.parse(),
    };
    match parsed {
        Ok(address) => Some(address),
        Err(_) => {
            let problem = Problem::error(
                object.pointer_to("Address"),
                "invalid_address",
                format!("`{text}` is not an IP address and a port"),
            )
            .with_suggestion("write `127.0.0.1:8080`, `0.0.0.0:80` or `[::]:443`");
            object.problems().push(problem);
            None
        }
    }
}

/// Reports listeners whose address includes an earlier one, or the admin page's, since the second could not be bound.
pub(super) fn report_shared_addresses(settings: &Settings, problems: &mut Problems) {
    let all: Vec<SocketAddr> = settings.listeners.iter().map(|l| l.address).collect();
    for (i, listener) in settings.listeners.iter().enumerate() {
        let earlier = settings.listeners[..i].iter();
        let mut earlier = earlier.filter(|one| overlap(listener.address, one.address, &all));
        // The admin page is no listener of the server: `[::]` includes IPv4 beside it.
        let admin = settings.admin.as_ref().map(|admin| admin.address);
        let admin = admin.filter(|admin| overlap(listener.address, *admin, &[]));
        let (other, by) = match (earlier.next(), admin) {
            (Some(earlier), _) => (earlier.address, format!("the listener `{}`", earlier.name)),
            (None, Some(admin)) => (admin, "the admin page".to_owned()),
            (None, None) => continue,
        };
        let message = match other == listener.address {
            true => format!("{other} is also the address of {by}"),
            false => format!(
                "{} and {other}, the address of {by}, include each other",
                listener.address
            ),
        };
        let pointer = pointer_to("/Listeners", &listener.name) + "/Address";
        let problem = Problem::error(pointer, "address_taken", message);
        problems.push(problem.with_suggestion("choose another port, or leave one of them out"));
    }
}
