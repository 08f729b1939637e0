//! The rules that say how the provider treats a filter or a field.

/// Where something stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::read) enum Place {
    Listener,
    ListenerFilter,
    FilterChain,
    FilterChainMatch,
    TransportSocket,
    NetworkFilter,
    Manager,
    HttpFilter,
    PerRoute,
}

impl Place {
    /// The place in pointers.
    pub(super) fn field(self) -> &'static str {
        match self {
            Self::Listener | Self::FilterChain | Self::FilterChainMatch | Self::Manager => "fields",
            Self::ListenerFilter => "listener_filters",
            Self::TransportSocket => "transport_socket",
            Self::NetworkFilter => "filters",
            Self::HttpFilter => "http_filters",
            Self::PerRoute => "typed_per_filter_config",
        }
    }
}

/// What becomes of something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::read) enum Treatment {
    /// It is done as Envoy does it.
    Honoured,
    /// It makes no difference to requests, or is the proxy's own to say.
    Harmless,
    /// It has no effect, which is a warning.
    Reported,
    /// What it stands before is closed.
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
}

pub(super) const fn fields(
    place: Place,
    treatment: Treatment,
    types: &'static [&'static str],
) -> Rule {
    Rule {
        place,
        treatment,
        name: "",
        types,
    }
}

pub(super) const fn row(
    place: Place,
    treatment: Treatment,
    name: &'static str,
    types: &'static [&'static str],
) -> Rule {
    Rule {
        place,
        treatment,
        name,
        types,
    }
}
