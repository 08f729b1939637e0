//! The ports of a service: their rules and probes.

use std::collections::BTreeSet;

use super::{AnnotationError, ProbeIntent, keys, probes, text};
use crate::config::{Config, Edition};
use crate::resources::{SecurityProtocol, TransportProtocol};
use crate::service::{Service, ServicePort};

/// The last port of a rule of Azure's load balancers.
const LAST_PORT: u16 = 65_534;

/// The request for one port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortIntent {
    /// The protocol.
    pub protocol: Protocol,
    /// The port of the frontend.
    pub port: u16,
    /// The port of the nodes.
    pub backend_port: u16,
    /// True if the port gets a load balancing rule.
    pub has_rule: bool,
    /// The health probe.
    pub probe: Option<ProbeIntent>,
}

/// The protocols of rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Protocol {
    /// TCP.
    Tcp,
    /// UDP.
    Udp,
}

impl Protocol {
    /// Returns the protocol as written in names.
    pub fn in_names(self) -> &'static str {
        match self {
            Self::Tcp => "TCP",
            Self::Udp => "UDP",
        }
    }

    pub(crate) fn of_rule(self) -> TransportProtocol {
        match self {
            Self::Tcp => TransportProtocol::Tcp,
            Self::Udp => TransportProtocol::Udp,
        }
    }

    pub(crate) fn of_security_rule(self) -> SecurityProtocol {
        match self {
            Self::Tcp => SecurityProtocol::Tcp,
            Self::Udp => SecurityProtocol::Udp,
        }
    }
}

pub(super) fn read(
    service: &Service,
    config: &Config,
    floating_ip: bool,
) -> Result<Vec<PortIntent>, AnnotationError> {
    if service.ports.is_empty() {
        let why = "a load balancer needs at least one port";
        return Err(AnnotationError::new("spec.ports", "", why));
    }
    let mut seen = BTreeSet::new();
    let mut ports = Vec::with_capacity(service.ports.len());
    for port in &service.ports {
        let protocol = protocol(port)?;
        if !seen.insert((protocol, port.port)) {
            let value = format!("{} {}", port.protocol, port.port);
            return Err(AnnotationError::new(
                "spec.ports",
                value,
                "the port is there twice",
            ));
        }
        ports.push(one(service, config, floating_ip, port, protocol)?);
    }
    Ok(ports)
}

fn protocol(port: &ServicePort) -> Result<Protocol, AnnotationError> {
    match port.protocol.as_str() {
        "TCP" | "" => Ok(Protocol::Tcp),
        "UDP" => Ok(Protocol::Udp),
        other => {
            let key = format!("spec.ports[{}].protocol", port.port);
            Err(AnnotationError::new(key, other, "write TCP or UDP"))
        }
    }
}

fn one(
    service: &Service,
    config: &Config,
    floating_ip: bool,
    port: &ServicePort,
    protocol: Protocol,
) -> Result<PortIntent, AnnotationError> {
    let path = |field: &str| format!("spec.ports[{}].{field}", port.port);
    if port.port == 0 || port.port > LAST_PORT {
        return Err(AnnotationError::new(
            "spec.ports",
            port.port.to_string(),
            "write a port from 1 to 65534: Azure's load balancers have no other",
        ));
    }
    let backend_port = match (floating_ip, port.node_port) {
        (true, _) => port.port,
        (false, Some(node_port)) => node_port,
        (false, None) => {
            let why = "without a floating address packets go to the node port, and there is none";
            return Err(AnnotationError::new(path("nodePort"), "", why));
        }
    };
    let current = config.edition == Edition::Current;
    let flag = |what| current && text::is_true(service, &keys::of_port(port.port, what));
    let has_rule = !flag(keys::PORT_NO_RULE);
    let probe = if has_rule && !flag(keys::PORT_NO_PROBE) {
        probes::read(service, config, port, protocol)?
    } else {
        None
    };
    Ok(PortIntent {
        protocol,
        port: port.port,
        backend_port,
        has_rule,
        probe,
    })
}
