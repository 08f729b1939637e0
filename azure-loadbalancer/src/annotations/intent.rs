//! The combined request of a service.

use std::collections::BTreeSet;
use std::net::Ipv4Addr;

use super::{Access, AnnotationError, PortIntent, is_internal, keys, ports, text};
use crate::config::{Config, Edition};
use crate::naming;
use crate::service::Service;

/// The combined request of a service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Intent {
    /// True if the service is reachable from the virtual network only.
    pub internal: bool,
    /// The subnet of an internal service, if it names one.
    pub subnet: Option<String>,
    /// The load balancers to choose from.
    pub mode: Mode,
    /// The resource group of the public address.
    pub resource_group: String,
    /// The requested address.
    pub address: Option<Ipv4Addr>,
    /// The name of the requested public address.
    pub public_ip_name: Option<String>,
    /// The DNS label. An empty text removes the label.
    pub dns_label: Option<String>,
    /// True if a client stays with a node.
    pub client_affinity: bool,
    /// True if nodes see the frontend's address as destination.
    pub floating_ip: bool,
    /// The idle timeout of TCP connections, in minutes.
    pub idle_timeout: Option<u32>,
    /// True if an idle timeout sends a TCP reset to both ends. `None` leaves the setting as it is.
    pub tcp_reset: Option<bool>,
    /// The ports.
    pub ports: Vec<PortIntent>,
    /// The clients that may connect.
    pub access: Access,
    /// Warnings about the annotations.
    pub warnings: Vec<String>,
}

/// The load balancers to choose from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// The load balancer of the primary set of machines.
    #[default]
    Primary,
    /// The load balancer of any set.
    Auto,
    /// The load balancers of these sets, sorted and in lower case.
    Sets(Vec<String>),
}

impl Intent {
    /// Reads the request of `service`.
    ///
    /// # Errors
    ///
    /// The first annotation, or field of the specification, that is invalid.
    pub fn of(service: &Service, config: &Config) -> Result<Self, AnnotationError> {
        let mut warnings = strangers(service, config.edition);
        let current = config.edition == Edition::Current;
        let internal = is_internal(service);
        check_flags(service, current)?;
        check_misspelled(service)?;
        check_families(service, &mut warnings)?;
        if current {
            check_addresses(service, internal)?;
            warnings.extend(unknown_probes(service));
        }
        let floating_ip = !(current && text::is_true(service, keys::DISABLE_FLOATING_IP));
        let longest = if current { 100 } else { 30 };
        let idle_timeout = text::number(service, keys::TCP_IDLE_TIMEOUT, "minutes", 4..=longest)?;
        let tcp_reset = (current && config.is_standard())
            .then(|| !text::is_true(service, keys::DISABLE_TCP_RESET));
        let public_ip_name =
            text::filled(service, keys::PUBLIC_IP_NAME).filter(|_| current && !internal);
        if let Some(name) = public_ip_name {
            // The name becomes a part of an id, and an invalid one could lead to another resource.
            let checked = naming::check_resource_name(name);
            checked.map_err(|why| AnnotationError::new(keys::PUBLIC_IP_NAME, name, why))?;
        }
        Ok(Self {
            internal,
            subnet: text::raw(service, keys::INTERNAL_SUBNET)
                .filter(|subnet| internal && !subnet.trim().is_empty())
                .map(str::to_owned),
            mode: mode(service, config, &mut warnings)?,
            resource_group: resource_group(service, config, internal)?,
            address: address(service, current)?,
            public_ip_name: public_ip_name.map(str::to_owned),
            dns_label: dns_label(service, config)?.filter(|_| !internal),
            client_affinity: service.client_affinity,
            floating_ip,
            idle_timeout,
            tcp_reset,
            ports: ports::read(service, config, floating_ip)?,
            access: Access::of(service, config, internal, &mut warnings)?,
            warnings,
        })
    }
}

fn mode(
    service: &Service,
    config: &Config,
    warnings: &mut Vec<String>,
) -> Result<Mode, AnnotationError> {
    let Some(value) = text::raw(service, keys::MODE) else {
        return Ok(Mode::Primary);
    };
    if config.is_standard() {
        let why = "standard load balancers are for all sets of machines: leave it out";
        if config.edition == Edition::Note {
            return Err(AnnotationError::new(keys::MODE, value, why));
        }
        warnings.push(format!("{} is ignored: {why}", keys::MODE));
        return Ok(Mode::Primary);
    }
    let trimmed = value.trim();
    if trimmed.eq_ignore_ascii_case("__auto__") {
        return Ok(Mode::Auto);
    }
    let sets: BTreeSet<_> = trimmed
        .split(',')
        .map(|name| name.trim().to_ascii_lowercase())
        .collect();
    if sets.contains("") {
        let why = "a name is missing, perhaps after the last comma: write __auto__, or names of availability sets with commas between them";
        return Err(AnnotationError::new(keys::MODE, value, why));
    }
    Ok(Mode::Sets(sets.into_iter().collect()))
}

fn resource_group(
    service: &Service,
    config: &Config,
    internal: bool,
) -> Result<String, AnnotationError> {
    let own = &config.resource_group;
    // An internal service has no public address, so its group is irrelevant.
    let Some(group) = super::resource_group(service).filter(|_| !internal) else {
        return Ok(own.clone());
    };
    naming::check_resource_group(group)
        .map(|()| group.to_owned())
        .map_err(|why| AnnotationError::new(keys::RESOURCE_GROUP, group, why))
}

fn address(service: &Service, current: bool) -> Result<Option<Ipv4Addr>, AnnotationError> {
    let mut found: Option<Ipv4Addr> = None;
    // The older edition does not know the annotation for IPv4.
    let asked = super::asked_addresses(service);
    for (key, value) in asked.filter(|(key, _)| current || *key != keys::IPV4) {
        let address = value.parse().map_err(|_| {
            let why = "write an IPv4 address, such as 10.0.0.9; IPv6 is not supported";
            AnnotationError::new(key, value, why)
        })?;
        if found.is_some_and(|found| found != address) {
            let why = "spec.loadBalancerIP names another address: leave one of them out";
            return Err(AnnotationError::new(key, value, why));
        }
        found = Some(address);
    }
    Ok(found)
}

/// Checks the flags: an invalid spelling must not open a service that is meant to be internal, or closed.
fn check_flags(service: &Service, current: bool) -> Result<(), AnnotationError> {
    let flags = match current {
        true => keys::FLAGS,
        false => &[keys::INTERNAL, keys::SHARED_RULE],
    };
    let of_ports = service.ports.iter().flat_map(|port| {
        let keys = [keys::PORT_NO_RULE, keys::PORT_NO_PROBE];
        keys.map(|what| keys::of_port(port.port, what))
    });
    let of_ports = of_ports.filter(|_| current);
    for key in flags.iter().map(|key| (*key).to_owned()).chain(of_ports) {
        match text::raw(service, &key) {
            None | Some("true" | "false" | "") => {}
            Some(other) => {
                let why = "write \"true\" or \"false\", in lower case";
                return Err(AnnotationError::new(key.clone(), other, why));
            }
        }
    }
    Ok(())
}

/// Rejects annotations that are probably misspelled restrictions: ignoring one would open a service that is
/// meant to be internal, or closed.
fn check_misspelled(service: &Service) -> Result<(), AnnotationError> {
    /// Number of typing errors in a key.
    const MOST_ERRORS: usize = 2;
    for (key, value) in &service.annotations {
        let is_known = [keys::OF_NOTE, keys::OF_CURRENT, keys::OF_RESTRICTIONS]
            .iter()
            .any(|known| known.contains(&key.as_str()));
        let does_nothing = ["", "false"].contains(&value.trim());
        if is_known || does_nothing || !key.starts_with(keys::PREFIX) {
            continue;
        }
        let written = key.to_ascii_lowercase();
        let mut restrictions = keys::OF_RESTRICTIONS.iter();
        let meant = restrictions.find(|known| {
            known.len().abs_diff(written.len()) <= MOST_ERRORS
                && strsim::osa_distance(known, &written) <= MOST_ERRORS
        });
        if let Some(meant) = meant {
            let why = format!("there is no such annotation; did you mean {meant}?");
            return Err(AnnotationError::new(key, value, why));
        }
    }
    Ok(())
}

/// Returns warnings about probe protocols that Azure does not have.
fn unknown_probes(service: &Service) -> impl Iterator<Item = String> {
    let asked = service.annotations.iter();
    let asked = asked.filter(|(key, _)| {
        *key == keys::PROBE_PROTOCOL || key.ends_with(keys::PORT_PROBE_PROTOCOL)
    });
    asked.filter_map(|(key, value)| {
        let known = ["", "tcp", "http", "https"];
        let is_known = known
            .iter()
            .any(|known| known.eq_ignore_ascii_case(value.trim()));
        (!is_known).then(|| {
            format!(
                "{key}: {value:?} is none of tcp, http and https: nodes are probed by connecting"
            )
        })
    })
}

fn check_families(service: &Service, warnings: &mut Vec<String>) -> Result<(), AnnotationError> {
    let families = &service.ip_families;
    if !families.iter().any(|family| family == "IPv6") {
        return Ok(());
    }
    if !families.iter().any(|family| family == "IPv4") {
        let why = "IPv6 is not supported: add IPv4";
        return Err(AnnotationError::new(
            "spec.ipFamilies",
            families.join(", "),
            why,
        ));
    }
    warnings.push("it is reached by IPv4 alone: IPv6 is not supported".to_owned());
    Ok(())
}

/// Rejects an unsupported way of requesting a certain address. Ignoring it would give the service another
/// address.
fn check_addresses(service: &Service, internal: bool) -> Result<(), AnnotationError> {
    for key in keys::OF_OTHER_ADDRESSES {
        let is_for_public = key.contains("azure-pip");
        // Beside IPv4 the other family is skipped with a warning.
        let is_other_half = key.ends_with("-ipv6") && service.ip_families.len() > 1;
        let value = text::filled(service, key);
        if let (Some(value), false) = (value, is_other_half || (is_for_public && internal)) {
            let why = "it is not supported, and the service would get another address: leave it out, or make the address and name it with azure-pip-name or azure-load-balancer-ipv4";
            return Err(AnnotationError::new(key, value, why));
        }
    }
    Ok(())
}

fn dns_label(service: &Service, config: &Config) -> Result<Option<String>, AnnotationError> {
    let Some(value) = text::raw(service, keys::DNS_LABEL) else {
        return Ok(None);
    };
    let label = value.trim();
    if label.is_empty() {
        return Ok((config.edition == Edition::Current).then(String::new));
    }
    let fits = (3..=63).contains(&label.len())
        && label.starts_with(|c: char| c.is_ascii_lowercase())
        && !label.ends_with('-')
        && label
            .bytes()
            .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-');
    if !fits {
        let why = "write 3 to 63 lower-case letters, digits and hyphens, beginning with a letter and not ending with a hyphen";
        return Err(AnnotationError::new(keys::DNS_LABEL, value, why));
    }
    Ok(Some(label.to_owned()))
}

/// Returns warnings about annotations that seem to be meant for this crate and are ignored.
fn strangers(service: &Service, edition: Edition) -> Vec<String> {
    let ours = service.annotations.keys().filter_map(|key| {
        let rest = key.strip_prefix(keys::PREFIX)?;
        (rest.starts_with("azure-") || rest.starts_with("port_")).then_some(key)
    });
    ours.filter_map(|key| {
        if keys::OF_NOTE.contains(&key.as_str()) {
            let gone = key == keys::SHARED_RULE && edition == Edition::Current;
            return gone.then(|| format!("{key} is ignored: all security rules are shared now"));
        }
        let known = keys::OF_CURRENT.contains(&key.as_str())
            || service
                .ports
                .iter()
                .flat_map(|port| keys::OF_PORTS.map(|what| keys::of_port(port.port, what)))
                .any(|known| known == *key);
        match (known, edition) {
            (true, Edition::Current) => None,
            (true, Edition::Note) => Some(format!("{key} is ignored: it needs edition current")),
            (false, _) => Some(format!("{key} is ignored: it is not supported")),
        }
    })
    .collect()
}
