//! The keys of annotations.

/// The prefix of all keys.
pub const PREFIX: &str = "service.beta.kubernetes.io/";

macro_rules! keys {
    ($($(#[$meta:meta])* $name:ident = $text:literal;)+) => {
        $($(#[$meta])* pub const $name: &str = concat!("service.beta.kubernetes.io/", $text);)+
    };
}

keys! {
    /// `true`: reachable from the virtual network only. `false` or absent: from the internet. Anything else
    /// is an error.
    INTERNAL = "azure-load-balancer-internal";
    /// The subnet of an internal frontend.
    INTERNAL_SUBNET = "azure-load-balancer-internal-subnet";
    /// The availability sets whose load balancers may be chosen: `__auto__` for all, or names separated by
    /// commas.
    MODE = "azure-load-balancer-mode";
    /// The DNS label of the public address.
    DNS_LABEL = "azure-dns-label-name";
    /// `true`: security rules are shared with other services ([`Edition::Note`](crate::config::Edition::Note)
    /// only; in the current edition all are).
    SHARED_RULE = "azure-shared-securityrule";
    /// The resource group of the public address.
    RESOURCE_GROUP = "azure-load-balancer-resource-group";
    /// The service tags that may connect, separated by commas.
    ALLOWED_SERVICE_TAGS = "azure-allowed-service-tags";
    /// The idle timeout of TCP connections, in minutes.
    TCP_IDLE_TIMEOUT = "azure-load-balancer-tcp-idle-timeout";
    /// The networks that may connect, separated by commas. `spec.loadBalancerSourceRanges` takes precedence.
    SOURCE_RANGES = "load-balancer-source-ranges";
    /// The networks that may connect, in Azure's own annotation. Not together with
    /// `spec.loadBalancerSourceRanges`.
    ALLOWED_IP_RANGES = "azure-allowed-ip-ranges";
    /// `true`: clients that are not allowed are denied before any other rule of the security group applies.
    DENY_ALL_EXCEPT_RANGES = "azure-deny-all-except-load-balancer-source-ranges";
    /// The name of the public address, which must exist.
    PUBLIC_IP_NAME = "azure-pip-name";
    /// The address, like `spec.loadBalancerIP`, which Kubernetes has deprecated.
    IPV4 = "azure-load-balancer-ipv4";
    /// `true`: an idle timeout closes a connection silently, without a TCP reset.
    DISABLE_TCP_RESET = "azure-load-balancer-disable-tcp-reset";
    /// `true`: nodes see their own address as destination, at the node port.
    DISABLE_FLOATING_IP = "azure-disable-load-balancer-floating-ip";
    /// The protocol of probes: `tcp`, `http` or `https`.
    PROBE_PROTOCOL = "azure-load-balancer-health-probe-protocol";
    /// The path of probe requests.
    PROBE_REQUEST_PATH = "azure-load-balancer-health-probe-request-path";
    /// The interval of probes, in seconds.
    PROBE_INTERVAL = "azure-load-balancer-health-probe-interval";
    /// The number of failures after which a node is down.
    PROBE_COUNT = "azure-load-balancer-health-probe-num-of-probe";
}

/// Returns the key of a port's annotation, such as `port_8000_no_lb_rule`.
pub fn of_port(port: u16, what: &str) -> String {
    format!("{PREFIX}port_{port}_{what}")
}

/// `true`: the port has no rule and no probe.
pub const PORT_NO_RULE: &str = "no_lb_rule";
/// `true`: the port's rule has no probe.
pub const PORT_NO_PROBE: &str = "no_probe_rule";
/// The protocol of the port's probe.
pub const PORT_PROBE_PROTOCOL: &str = "health-probe_protocol";
/// The path of the port's probe requests.
pub const PORT_PROBE_REQUEST_PATH: &str = "health-probe_request-path";
/// The interval of the port's probes, in seconds.
pub const PORT_PROBE_INTERVAL: &str = "health-probe_interval";
/// The number of failures of the port's probe after which a node is down.
pub const PORT_PROBE_COUNT: &str = "health-probe_num-of-probe";
/// The port to probe: a number, or the number or name of a port of the service.
pub const PORT_PROBE_PORT: &str = "health-probe_port";

/// The annotations of the provider of 2018, which are still in use.
pub(super) const OF_NOTE: &[&str] = &[
    INTERNAL,
    INTERNAL_SUBNET,
    MODE,
    DNS_LABEL,
    SHARED_RULE,
    RESOURCE_GROUP,
    ALLOWED_SERVICE_TAGS,
    TCP_IDLE_TIMEOUT,
];

/// The annotations that were added later.
pub(super) const OF_CURRENT: &[&str] = &[
    ALLOWED_IP_RANGES,
    DENY_ALL_EXCEPT_RANGES,
    PUBLIC_IP_NAME,
    IPV4,
    DISABLE_TCP_RESET,
    DISABLE_FLOATING_IP,
    PROBE_PROTOCOL,
    PROBE_REQUEST_PATH,
    PROBE_INTERVAL,
    PROBE_COUNT,
];

/// The annotations that determine the address of a service and are not supported. Ignoring one would give the
/// service another address.
pub(super) const OF_OTHER_ADDRESSES: [&str; 4] = [
    "service.beta.kubernetes.io/azure-load-balancer-ipv6",
    "service.beta.kubernetes.io/azure-pip-name-ipv6",
    "service.beta.kubernetes.io/azure-pip-prefix-id",
    "service.beta.kubernetes.io/azure-pip-ip-tags",
];

/// The annotations that restrict who reaches a service. A misspelled one must not open it.
pub(super) const OF_RESTRICTIONS: &[&str] = &[
    INTERNAL,
    INTERNAL_SUBNET,
    ALLOWED_SERVICE_TAGS,
    SOURCE_RANGES,
    ALLOWED_IP_RANGES,
    DENY_ALL_EXCEPT_RANGES,
];

/// The annotations whose value is `true` or `false`.
pub(super) const FLAGS: &[&str] = &[
    INTERNAL,
    SHARED_RULE,
    DENY_ALL_EXCEPT_RANGES,
    DISABLE_TCP_RESET,
    DISABLE_FLOATING_IP,
];

/// The annotations for single ports that were added later.
pub(super) const OF_PORTS: [&str; 7] = [
    PORT_NO_RULE,
    PORT_NO_PROBE,
    PORT_PROBE_PROTOCOL,
    PORT_PROBE_REQUEST_PATH,
    PORT_PROBE_INTERVAL,
    PORT_PROBE_COUNT,
    PORT_PROBE_PORT,
];
