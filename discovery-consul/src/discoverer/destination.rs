//! The address of an instance as a destination.

use std::net::{IpAddr, Ipv6Addr};
use std::sync::Arc;

use discovery_core::address::is_of_one_host;
use proxy_model::config::{DestinationConfig, Metadata};
use proxy_model::{DestinationId, MAX_PRIORITY, MAX_WEIGHT};

use super::labels::{labels_of, pairs_of_tags, strip_prefix};
use crate::client::HealthStatus;
use crate::options::ServiceOptions;
use crate::traefik::{self, Server};
use crate::watch::ServiceInstance;

/// A datacenter as the own one sees it.
#[derive(Clone, Debug)]
pub(super) struct Place {
    pub(super) datacenter: Arc<str>,
    pub(super) is_own: bool,
}

impl Place {
    fn priority(&self, options: &ServiceOptions) -> u32 {
        let set = options.priorities.get(&self.datacenter).copied();
        set.unwrap_or_else(|| u32::from(!self.is_own))
            .min(MAX_PRIORITY)
    }
}

/// Returns true if an instance gets requests.
pub(super) fn is_live(instance: &ServiceInstance, options: &ServiceOptions) -> bool {
    match instance.status {
        HealthStatus::Passing => true,
        HealthStatus::Warning => options.include_warning,
        HealthStatus::Critical | HealthStatus::Maintenance => false,
    }
}

/// Returns the destination of an instance, or the reason why it has none.
pub(super) fn destination(
    instance: &ServiceInstance,
    place: &Place,
    options: &ServiceOptions,
    traefik: Option<&traefik::Translated>,
) -> Result<(DestinationId, DestinationConfig), String> {
    let wan = instance
        .wan
        .as_ref()
        .filter(|wan| options.wan_addresses && !place.is_own && !wan.address.is_empty());
    let (address, port) = match wan {
        // An instance may be registered with an address for other networks but no port for them.
        Some(wan) if wan.port > 0 => (wan.address.as_str(), wan.port),
        Some(wan) => (wan.address.as_str(), instance.port),
        None => (instance.address.as_str(), instance.port),
    };
    let server = match traefik {
        Some(said) => traefik::server_of(pairs_of_tags(instance), said.service.as_deref())?,
        None => Server::default(),
    };
    let port = server.port.unwrap_or(port);
    if port == 0 {
        return Err("it has no port".to_owned());
    }
    let host = host(address).ok_or_else(|| {
        let shown = discovery_core::text::shortened(address, 100);
        format!("`{shown}` is neither the IP address of a host nor its name")
    })?;
    let own_scheme = labels_of(instance, options).find_map(|(key, value)| {
        let rest = strip_prefix(&key, &options.label_prefix)?;
        rest.eq_ignore_ascii_case(SCHEME).then_some(value)
    });
    let scheme = own_scheme.or(server.scheme).unwrap_or_default();
    let scheme = match scheme.trim().to_ascii_lowercase().as_str() {
        "" | "http" => "http",
        "https" => "https",
        _ => return Err("its scheme is neither `http` nor `https`".to_owned()),
    };
    let Place { datacenter, .. } = place;
    // Instance ids are unique on their node only.
    let id = format!("{datacenter}/{}/{}", instance.node, instance.id);
    let config = DestinationConfig {
        address: format!("{scheme}://{host}:{port}"),
        weight: Some(
            server
                .weight
                .unwrap_or_else(|| instance.weight())
                .min(MAX_WEIGHT),
        ),
        priority: Some(place.priority(options)),
        zone: Some(datacenter.to_string()),
        metadata: Some(Metadata::from([
            ("Datacenter".to_owned(), datacenter.to_string()),
            ("Node".to_owned(), instance.node.clone()),
        ])),
        ..DestinationConfig::default()
    };
    Ok((id.into(), config))
}

/// The label with the scheme of an instance's URL.
pub(super) const SCHEME: &str = "destinations.scheme";

/// Returns an address in the form for a URL: IPv6 addresses get brackets.
fn host(address: &str) -> Option<String> {
    let bare = address
        .strip_prefix('[')
        .and_then(|rest| rest.strip_suffix(']'));
    let bare = bare.unwrap_or(address);
    match bare.parse::<IpAddr>() {
        Ok(ip) if !is_of_one_host(ip) => return None,
        Ok(IpAddr::V4(ip)) => return Some(ip.to_string()),
        Ok(IpAddr::V6(ip)) => return Some(in_brackets(ip)),
        Err(_) => {}
    }
    let is_name = !address.is_empty()
        && address.len() <= 253
        && address.split('.').all(|label| {
            let allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
            !label.is_empty() && label.len() <= 63 && label.bytes().all(allowed)
        });
    is_name.then(|| address.to_ascii_lowercase())
}

fn in_brackets(ip: Ipv6Addr) -> String {
    match ip.to_ipv4_mapped() {
        Some(ip) => ip.to_string(),
        None => format!("[{ip}]"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_and_names_stand_in_urls() {
        for (address, expected) in [
            ("10.0.0.1", Some("10.0.0.1")),
            ("2a02:6b8::1", Some("[2a02:6b8::1]")),
            ("[2a02:6b8::1]", Some("[2a02:6b8::1]")),
            ("::ffff:10.0.0.1", Some("10.0.0.1")),
            ("Host.Example", Some("host.example")),
            ("", None),
            ("a b", None),
            ("a@b", None),
            ("evil.example/x?", None),
            ("a..b", None),
            ("0.0.0.0", None),
            ("::", None),
            ("[::]", None),
        ] {
            assert_eq!(host(address).as_deref(), expected, "{address}");
        }
    }
}
