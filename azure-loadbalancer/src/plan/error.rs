//! The reasons why a request of a service cannot be met.

use std::net::IpAddr;

use serde::Serialize;

use crate::annotations::AnnotationError;
use crate::resources::ArmId;
use crate::service::ServiceKey;

/// The reason why a request of a service cannot be met. Its existing resources stay as they are.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PlanError {
    /// The configuration is invalid. Every service has this error then.
    #[error("{0}")]
    Config(String),
    /// An annotation, or a field of the specification, is invalid.
    #[error(transparent)]
    Annotation(#[from] AnnotationError),
    /// The document of the service cannot be read.
    #[error("it cannot be read: {0}; its resources stay unchanged")]
    Unreadable(String),
    /// Another service has the same UID, so that the names of their resources would clash.
    #[error(
        "its UID {uid:?} and that of {other} are equal, or equal in the characters that names are made of; give each service its own"
    )]
    DuplicateUid {
        /// The UID.
        uid: String,
        /// The other service.
        other: ServiceKey,
    },
    /// No load balancer can be chosen.
    #[error("no load balancer can be chosen: {0}")]
    Selection(String),
    /// The load balancer would exceed its maximum of rules.
    #[error(
        "load balancer {load_balancer} has {count} rules and {needed} more exceed the maximum of {maximum}; raise maximumLoadBalancerRuleCount or use another load balancer"
    )]
    RuleLimit {
        /// The load balancer.
        load_balancer: String,
        /// The current number of rules.
        count: usize,
        /// The number of additional rules that the service needs.
        needed: usize,
        /// The maximum.
        maximum: usize,
    },
    /// The nodes would be behind more rules than allowed.
    #[error(
        "the nodes behind load balancer {load_balancer} are behind {count} rules already, external and internal ones together, and {needed} more exceed the {maximum} that Azure allows a network interface; let the service use fewer ports, or nodes of another cluster"
    )]
    InterfaceRuleLimit {
        /// The load balancer.
        load_balancer: String,
        /// The number of rules that lead to its nodes.
        count: usize,
        /// The number of additional rules that the service needs.
        needed: usize,
        /// The maximum.
        maximum: usize,
    },
    /// The load balancer would exceed its maximum of frontends.
    #[error(
        "load balancer {load_balancer} has {maximum} frontends, and Azure allows no more; let services share an address (loadBalancerIP or azure-pip-name), or use another load balancer"
    )]
    FrontendLimit {
        /// The load balancer.
        load_balancer: String,
        /// The maximum.
        maximum: usize,
    },
    /// All priorities of the security group are in use.
    #[error("security group {security_group} has no free priority between 500 and 4095")]
    PriorityExhausted {
        /// The security group.
        security_group: String,
    },
    /// The security group would exceed one of Azure's limits.
    #[error(
        "security group {security_group} would have {count} {what}, of which {maximum} are allowed; let services share sources or use fewer"
    )]
    SecurityGroupLimit {
        /// The security group.
        security_group: String,
        /// The kind of parts that would exceed the limit.
        what: &'static str,
        /// The number of parts.
        count: usize,
        /// The maximum.
        maximum: usize,
    },
    /// The security group does not exist.
    #[error("security group {0} does not exist; create it, it is never created here")]
    SecurityGroupNotFound(ArmId),
    /// The port of the frontend, or of the pool, is taken.
    #[error("{protocol} port {port} is taken by {by}")]
    PortConflict {
        /// The protocol.
        protocol: String,
        /// The port.
        port: u16,
        /// The owner of the port.
        by: String,
    },
    /// The subnet does not exist.
    #[error("subnet {subnet:?} is not in virtual network {virtual_network:?}")]
    SubnetNotFound {
        /// The subnet.
        subnet: String,
        /// The virtual network.
        virtual_network: String,
    },
    /// An internal service has no subnet.
    #[error(
        "no subnet is named: write subnetName into the configuration, or {key} into the service",
        key = crate::annotations::keys::INTERNAL_SUBNET
    )]
    SubnetMissing,
    /// The public address is in another region, where no load balancer of this one can use it.
    #[error("public address {address} is in region {region:?}, but {wanted:?} is needed")]
    OtherRegion {
        /// The name of the public address.
        address: String,
        /// The region of the address.
        region: String,
        /// The required region.
        wanted: String,
    },
    /// The requested address is not in the subnet.
    #[error("address {address} is outside of subnet {subnet:?} ({ranges})")]
    AddressOutsideSubnet {
        /// The address.
        address: IpAddr,
        /// The subnet.
        subnet: String,
        /// The ranges of the subnet.
        ranges: String,
    },
    /// No public address has the requested address.
    #[error(
        "no public address in resource group {resource_group:?} is {address}; create it, or leave loadBalancerIP out"
    )]
    AddressNotFound {
        /// The address.
        address: IpAddr,
        /// The resource group that was searched.
        resource_group: String,
    },
    /// The address is taken.
    #[error("address {address} is taken by {by}")]
    AddressTaken {
        /// The address, or the name of the public address.
        address: String,
        /// The owner of the address.
        by: String,
    },
    /// A frontend of this cluster has the public address, but did not exist when load balancers were read.
    #[error(
        "address {address} is used by {by}, which is of this cluster and was not there when load balancers were read: another program has written it meanwhile, so try again, and see to it that only one writes"
    )]
    AddressJustTaken {
        /// The name of the public address.
        address: String,
        /// The frontend.
        by: String,
    },
    /// The frontend cannot move, since an unchanged service shares it.
    #[error(
        "frontend {frontend} cannot move to another address, since service {by} shares it and stays as it is; correct that service first"
    )]
    FrontendShared {
        /// The frontend.
        frontend: String,
        /// The other service.
        by: ServiceKey,
    },
    /// No public address has the requested name.
    #[error(
        "no public address in resource group {resource_group:?} is called {name:?}; create it, correct the name, or leave {key} out",
        key = crate::annotations::keys::PUBLIC_IP_NAME
    )]
    PublicIpNotFound {
        /// The name.
        name: String,
        /// The resource group that was searched.
        resource_group: String,
    },
    /// The SKU of a load balancer or public address differs from the configured one.
    #[error(
        "{resource} has sku {found}, but {wanted} is needed; Azure does not mix them{}",
        if *wanted == "Standard" { "; `plan --migrate-to-standard` shows the way" } else { "" }
    )]
    SkuMismatch {
        /// The resource.
        resource: String,
        /// The present SKU.
        found: String,
        /// The required SKU.
        wanted: &'static str,
    },
    /// The DNS label is taken.
    #[error("DNS label {label:?} of public address {public_ip} belongs to {by}")]
    DnsLabelTaken {
        /// The label.
        label: String,
        /// The public address.
        public_ip: String,
        /// The owner of the label.
        by: String,
    },
    /// The address of the frontend is required and unknown.
    #[error(
        "the address of the load balancer is not known, so its security rules cannot be written"
    )]
    AddressUnknown,
}

impl Serialize for PlanError {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}
