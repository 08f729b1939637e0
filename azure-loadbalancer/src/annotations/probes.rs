//! The health probes that a service requests.

use super::{AnnotationError, Protocol, keys, text};
use crate::config::{Config, Edition};
use crate::resources::ProbeProtocol;
use crate::service::{Service, ServicePort};

/// The health probe of a port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProbeIntent {
    /// The suffix of the probe's name: a protocol and a port.
    pub named_after: (Protocol, u16),
    /// The protocol of the probe.
    pub protocol: ProbeProtocol,
    /// The port of the nodes.
    pub port: u16,
    /// The path, with HTTP and HTTPS.
    pub path: Option<String>,
    /// The interval of probes, in seconds.
    pub interval: u32,
    /// The number of failures after which a node is down.
    pub count: u32,
}

const INTERVAL: u32 = 5;
const COUNT: u32 = 2;

/// The limit for interval times count, in seconds: Azure's own.
const LONGEST_VERDICT: u32 = 120;

/// The path at which kube-proxy reports if a node has an instance.
const LOCAL_PATH: &str = "/healthz";

pub(super) fn read(
    service: &Service,
    config: &Config,
    port: &ServicePort,
    protocol: Protocol,
) -> Result<Option<ProbeIntent>, AnnotationError> {
    let own_port = own_port(service, config, port)?;
    if service.local_traffic_only && own_port.is_none() {
        return local(service, config, port, protocol).map(Some);
    }
    // A node that does not respond over UDP cannot be distinguished from one that has nothing to send.
    if protocol == Protocol::Udp {
        return Ok(None);
    }
    let Some(probed) = own_port.or(port.node_port) else {
        let key = format!("spec.ports[{}].nodePort", port.port);
        let why = "the probe needs a node port, and there is none";
        return Err(AnnotationError::new(key, "", why));
    };
    let plain = ProbeIntent {
        named_after: (protocol, port.port),
        protocol: ProbeProtocol::Tcp,
        port: probed,
        path: None,
        interval: INTERVAL,
        count: COUNT,
    };
    match config.edition {
        Edition::Note => Ok(Some(plain)),
        Edition::Current => annotated(service, config, port, &plain).map(Some),
    }
}

/// Returns the probe of the health check port, where nodes without an instance of the service respond with
/// 503.
fn local(
    service: &Service,
    config: &Config,
    port: &ServicePort,
    protocol: Protocol,
) -> Result<ProbeIntent, AnnotationError> {
    let Some(checked) = service.health_check_node_port else {
        let why = "externalTrafficPolicy Local needs healthCheckNodePort, where nodes report \
            whether they have an instance";
        return Err(AnnotationError::new("spec.healthCheckNodePort", "", why));
    };
    let named_after = match config.edition {
        Edition::Note if protocol == Protocol::Udp => {
            let why = "with externalTrafficPolicy Local a UDP port cannot be probed; use edition current, or Cluster";
            let key = format!("spec.ports[{}].protocol", port.port);
            return Err(AnnotationError::new(key, "UDP", why));
        }
        Edition::Note => (protocol, port.port),
        Edition::Current => (Protocol::Tcp, checked),
    };
    Ok(ProbeIntent {
        named_after,
        protocol: ProbeProtocol::Http,
        port: checked,
        path: Some(LOCAL_PATH.to_owned()),
        interval: INTERVAL,
        count: COUNT,
    })
}

/// Returns the port that an annotation names: a number, where a port of the service stands for its node port,
/// or a port's name.
fn own_port(
    service: &Service,
    config: &Config,
    port: &ServicePort,
) -> Result<Option<u16>, AnnotationError> {
    let key = keys::of_port(port.port, keys::PORT_PROBE_PORT);
    if config.edition == Edition::Note {
        return Ok(None);
    }
    let Some(value) = text::filled(service, &key) else {
        return Ok(None);
    };
    let number = value.parse::<u16>().ok().filter(|number| *number != 0);
    let meant = service
        .ports
        .iter()
        .find(|other| Some(other.port) == number || other.name.as_deref() == Some(value));
    match (meant, number) {
        (Some(other), _) => match other.node_port {
            Some(node_port) => Ok(Some(node_port)),
            None => Err(AnnotationError::new(
                key,
                value,
                "that port has no node port",
            )),
        },
        (None, Some(number)) => Ok(Some(number)),
        (None, None) => {
            let why = "write a port number, or the name of a port of the service";
            Err(AnnotationError::new(key, value, why))
        }
    }
}

fn annotated(
    service: &Service,
    config: &Config,
    port: &ServicePort,
    plain: &ProbeIntent,
) -> Result<ProbeIntent, AnnotationError> {
    let of_port = |what| keys::of_port(port.port, what);
    let either = |what, global| {
        text::filled(service, &of_port(what)).or_else(|| text::filled(service, global))
    };
    let named = text::filled(service, &of_port(keys::PORT_PROBE_PROTOCOL))
        .or(port.app_protocol.as_deref())
        .or_else(|| text::filled(service, keys::PROBE_PROTOCOL));
    // Unknown application protocols are probed by connecting.
    let protocol = match named.map(ProbeProtocol::from) {
        Some(ProbeProtocol::Http) => ProbeProtocol::Http,
        Some(ProbeProtocol::Https) if config.is_standard() => ProbeProtocol::Https,
        _ => ProbeProtocol::Tcp,
    };
    let path = (protocol != ProbeProtocol::Tcp).then(|| {
        let path = either(keys::PORT_PROBE_REQUEST_PATH, keys::PROBE_REQUEST_PATH).unwrap_or("/");
        if path.starts_with('/') {
            path.to_owned()
        } else {
            format!("/{path}")
        }
    });
    let (interval, _) = number(
        service,
        of_port(keys::PORT_PROBE_INTERVAL),
        keys::PROBE_INTERVAL,
        "seconds",
        5,
    )?;
    let (count, key) = number(
        service,
        of_port(keys::PORT_PROBE_COUNT),
        keys::PROBE_COUNT,
        "probes",
        2,
    )?;
    let (interval, count) = (interval.unwrap_or(INTERVAL), count.unwrap_or(COUNT));
    if interval.saturating_mul(count) >= LONGEST_VERDICT {
        let why = format!(
            "{interval} s between probes times {count} must be less than {LONGEST_VERDICT} s"
        );
        return Err(AnnotationError::new(key, count.to_string(), why));
    }
    Ok(ProbeIntent {
        protocol,
        path,
        interval,
        count,
        ..plain.clone()
    })
}

/// Returns a number from the port's annotation, else from that for all ports, with its key.
fn number(
    service: &Service,
    of_port: String,
    of_all: &str,
    unit: &str,
    least: u32,
) -> Result<(Option<u32>, String), AnnotationError> {
    match text::number(service, &of_port, unit, least..=u32::MAX)? {
        Some(number) => Ok((Some(number), of_port)),
        None => {
            let number = text::number(service, of_all, unit, least..=u32::MAX)?;
            Ok((number, of_all.to_owned()))
        }
    }
}
