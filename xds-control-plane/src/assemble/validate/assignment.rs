use std::net::IpAddr;

use xds_types::pb::envoy::config::core::v3::address::Address as AnyAddress;
use xds_types::pb::envoy::config::core::v3::socket_address::PortSpecifier;
use xds_types::pb::envoy::config::core::v3::{Address, SocketAddress};
use xds_types::pb::envoy::config::endpoint::v3::lb_endpoint::HostIdentifier;
use xds_types::pb::envoy::config::endpoint::v3::{
    ClusterLoadAssignment, LbEndpoint, LocalityLbEndpoints,
};

use super::{Findings, MAX_PRIORITY};

/// Endpoints whose addresses are IP addresses.
pub(super) fn validate(assignment: &ClusterLoadAssignment, findings: &mut Findings) {
    validate_with(assignment, true, findings);
}

/// Endpoints whose addresses are resolved by Envoy.
pub(super) fn validate_names(assignment: &ClusterLoadAssignment, findings: &mut Findings) {
    validate_with(assignment, false, findings);
}

fn validate_with(assignment: &ClusterLoadAssignment, are_ips: bool, findings: &mut Findings) {
    findings.name("cluster_name", &assignment.cluster_name);
    if !assignment.named_endpoints.is_empty() {
        findings.reject("named_endpoints", "are not supported by Envoy");
    }
    if let Some(policy) = &assignment.policy
        && policy
            .overprovisioning_factor
            .as_ref()
            .is_some_and(|factor| factor.value == 0)
    {
        findings.reject("policy.overprovisioning_factor", "has to be more than 0");
    }
    let mut weight_of_localities = vec![0_u64; MAX_PRIORITY as usize + 1];
    for (at, locality) in assignment.endpoints.iter().enumerate() {
        let field = format!("endpoints[{at}]");
        locality_of(&field, locality, are_ips, findings);
        let weight = locality
            .load_balancing_weight
            .as_ref()
            .map_or(0, |weight| weight.value);
        match weight_of_localities.get_mut(locality.priority as usize) {
            Some(sum) => *sum += u64::from(weight),
            None => findings.reject(
                format!("{field}.priority"),
                format!("{} is more than {MAX_PRIORITY}", locality.priority),
            ),
        }
    }
    if weight_of_localities
        .iter()
        .any(|sum| *sum > u64::from(u32::MAX))
    {
        findings.reject(
            "endpoints",
            "the weights of one priority's localities are more than 4294967295 together",
        );
    }
}

fn locality_of(
    field: &str,
    locality: &LocalityLbEndpoints,
    are_ips: bool,
    findings: &mut Findings,
) {
    if locality
        .load_balancing_weight
        .as_ref()
        .is_some_and(|weight| weight.value == 0)
    {
        findings.reject(
            format!("{field}.load_balancing_weight"),
            "is 1 or more; leave the locality out instead",
        );
    }
    if locality.lb_config.is_some() {
        findings.reject(
            format!("{field}.lb_config"),
            "is not served here; use lb_endpoints",
        );
    }
    let mut sum = 0_u64;
    for (at, endpoint) in locality.lb_endpoints.iter().enumerate() {
        let field = format!("{field}.lb_endpoints[{at}]");
        sum += u64::from(
            endpoint
                .load_balancing_weight
                .as_ref()
                .map_or(1, |weight| weight.value),
        );
        endpoint_of(&field, endpoint, are_ips, findings);
    }
    if sum > u64::from(u32::MAX) {
        findings.reject(
            field,
            "the weights of its endpoints are more than 4294967295 together",
        );
    }
}

fn endpoint_of(field: &str, endpoint: &LbEndpoint, are_ips: bool, findings: &mut Findings) {
    if endpoint
        .load_balancing_weight
        .as_ref()
        .is_some_and(|weight| weight.value == 0)
    {
        findings.reject(
            format!("{field}.load_balancing_weight"),
            "is 1 or more; leave the endpoint out instead",
        );
    }
    if !(0..=5).contains(&endpoint.health_status) {
        findings.reject(
            format!("{field}.health_status"),
            format!("{} is no status", endpoint.health_status),
        );
    }
    match &endpoint.host_identifier {
        Some(HostIdentifier::Endpoint(endpoint)) => {
            address(
                &format!("{field}.endpoint.address"),
                endpoint.address.as_ref(),
                are_ips,
                findings,
            );
            let check = endpoint.health_check_config.as_ref();
            if check.is_some_and(|check| check.port_value > 65_535) {
                findings.reject(
                    format!("{field}.endpoint.health_check_config.port_value"),
                    "is at most 65535",
                );
            }
        }
        Some(HostIdentifier::EndpointName(_)) => {
            findings.reject(
                format!("{field}.endpoint_name"),
                "is not supported by Envoy",
            );
        }
        None => findings.reject(format!("{field}.endpoint"), "is missing"),
    }
}

/// Checks that an address exists and can be used. With `is_ip`, it must not need a look-up.
pub(super) fn address(
    field: &str,
    address: Option<&Address>,
    is_ip: bool,
    findings: &mut Findings,
) {
    match address.and_then(|address| address.address.as_ref()) {
        Some(AnyAddress::SocketAddress(socket)) => socket_address(field, socket, is_ip, findings),
        Some(AnyAddress::Pipe(pipe)) => findings.name(&format!("{field}.pipe.path"), &pipe.path),
        Some(AnyAddress::EnvoyInternalAddress(_)) => {}
        None => findings.reject(field, "is missing"),
    }
}

fn socket_address(field: &str, socket: &SocketAddress, is_ip: bool, findings: &mut Findings) {
    if socket.address.is_empty() {
        findings.reject(
            format!("{field}.socket_address.address"),
            "must not be empty",
        );
    } else if is_ip && socket.resolver_name.is_empty() && socket.address.parse::<IpAddr>().is_err()
    {
        let message = format!(
            "{} is no IP address; Envoy looks up names only in clusters of type STRICT_DNS and LOGICAL_DNS",
            super::shown(&socket.address)
        );
        findings.reject(format!("{field}.socket_address.address"), message);
    }
    match &socket.port_specifier {
        Some(PortSpecifier::PortValue(port)) if *port > 65_535 => {
            findings.reject(
                format!("{field}.socket_address.port_value"),
                format!("{port} is no port"),
            );
        }
        Some(PortSpecifier::PortValue(_)) => {}
        Some(PortSpecifier::NamedPort(_)) => {
            findings.reject(
                format!("{field}.socket_address.named_port"),
                "is not looked up; give a number",
            );
        }
        None => findings.reject(format!("{field}.socket_address.port_value"), "is missing"),
    }
}
