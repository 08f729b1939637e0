//! The rules for the treatment of filters and fields.

/// The place of a field or filter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::read) enum Place {
    Listener,
    ListenerFilter,
    FilterChain,
    FilterChainMatch,
    TransportSocket,
    NetworkFilter,
    Manager,
    OriginalIpDetection,
    HttpFilter,
    RouteConfiguration,
    VirtualHost,
    Route,
    RouteAction,
    PerRoute,
}

impl Place {
    /// The place in pointers.
    pub(super) fn field(self) -> &'static str {
        match self {
            Self::Listener
            | Self::FilterChain
            | Self::FilterChainMatch
            | Self::Manager
            | Self::RouteConfiguration
            | Self::VirtualHost
            | Self::Route
            | Self::RouteAction => "fields",
            Self::OriginalIpDetection => "original_ip_detection_extensions",
            Self::ListenerFilter => "listener_filters",
            Self::TransportSocket => "transport_socket",
            Self::NetworkFilter => "filters",
            Self::HttpFilter => "http_filters",
            Self::PerRoute => "typed_per_filter_config",
        }
    }
}

/// The treatment of a field or filter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::read) enum Treatment {
    /// Supported as in Envoy, or more strictly.
    Honoured,
    /// The rule has no effect on requests, or is replaced by the proxy's own configuration.
    Harmless,
    /// Ignored with a warning.
    Reported,
    /// The rule is not supported: the routes behind it are closed.
    Closes,
}

/// One row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::read) struct Rule {
    pub(in crate::read) place: Place,
    pub(in crate::read) treatment: Treatment,
    /// The short name; empty where the types are names of fields.
    pub(in crate::read) name: &'static str,
    /// The types of its configuration, or names of fields.
    pub(in crate::read) types: &'static [&'static str],
    /// The reason why nothing is closed that is not supported.
    pub(in crate::read) reason: &'static str,
}

pub(super) const fn fields(
    place: Place,
    treatment: Treatment,
    reason: &'static str,
    types: &'static [&'static str],
) -> Rule {
    row(place, treatment, "", types, reason)
}

pub(super) const fn closed(
    place: Place,
    name: &'static str,
    types: &'static [&'static str],
) -> Rule {
    row(place, Treatment::Closes, name, types, "")
}

pub(super) const fn row(
    place: Place,
    treatment: Treatment,
    name: &'static str,
    types: &'static [&'static str],
    reason: &'static str,
) -> Rule {
    Rule {
        place,
        treatment,
        name,
        types,
        reason,
    }
}
