use std::fmt;

/// The types of resources that configure routing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ResourceType {
    /// `envoy.config.cluster.v3.Cluster`, over CDS.
    Cluster,
    /// `envoy.config.endpoint.v3.ClusterLoadAssignment`, over EDS.
    Endpoint,
    /// `envoy.config.listener.v3.Listener`, over LDS.
    Listener,
    /// `envoy.config.route.v3.RouteConfiguration`, over RDS.
    Route,
}

impl ResourceType {
    /// All types, in the order in which additions are sent, so that no resource refers to one that was not sent
    /// yet.
    pub const MAKE_BEFORE_BREAK: [Self; 4] =
        [Self::Cluster, Self::Endpoint, Self::Listener, Self::Route];

    /// Returns the type URL, the `type_url` of a discovery request and of the `Any` around a resource.
    #[must_use]
    pub fn type_url(self) -> &'static str {
        match self {
            Self::Cluster => "type.googleapis.com/envoy.config.cluster.v3.Cluster",
            Self::Endpoint => "type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment",
            Self::Listener => "type.googleapis.com/envoy.config.listener.v3.Listener",
            Self::Route => "type.googleapis.com/envoy.config.route.v3.RouteConfiguration",
        }
    }

    /// The type that a request names.
    #[must_use]
    pub fn from_type_url(type_url: &str) -> Option<Self> {
        Self::MAKE_BEFORE_BREAK
            .into_iter()
            .find(|resource_type| resource_type.type_url() == type_url)
    }

    /// Returns true if a request without names subscribes to all resources, and a response holds the full set: for
    /// clusters and listeners.
    #[must_use]
    pub fn has_wildcard(self) -> bool {
        matches!(self, Self::Cluster | Self::Listener)
    }
}

impl fmt::Display for ResourceType {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Cluster => "cds",
            Self::Endpoint => "eds",
            Self::Listener => "lds",
            Self::Route => "rds",
        })
    }
}
