//! The context of a filter call.

use proxy_model::compiled::{Cluster, Route};
use proxy_model::{ClusterId, RouteId};

use crate::connection::ConnectionInfo;

/// The route, cluster and connection of the message that a filter sees.
#[derive(Clone, Copy, Debug)]
pub struct FilterContext<'a> {
    route: &'a Route,
    cluster: &'a Cluster,
    connection: ConnectionInfo,
}

impl<'a> FilterContext<'a> {
    pub(crate) fn new(route: &'a Route, cluster: &'a Cluster, connection: ConnectionInfo) -> Self {
        Self {
            route,
            cluster,
            connection,
        }
    }

    /// The id of the route that matched the request.
    pub fn route_id(&self) -> &'a RouteId {
        self.route.id()
    }

    /// The id of the cluster that the request is for.
    pub fn cluster_id(&self) -> &'a ClusterId {
        self.cluster.id()
    }

    /// The route, with its configuration.
    pub fn route(&self) -> &'a Route {
        self.route
    }

    /// The cluster, with its configuration.
    pub fn cluster(&self) -> &'a Cluster {
        self.cluster
    }

    /// A value of the route's `Metadata`: the settings of a filter for one route.
    pub fn route_metadata(&self, key: &str) -> Option<&'a str> {
        let metadata = self.route.config().metadata.as_ref()?;
        metadata.get(key).map(String::as_str)
    }

    /// The client's connection.
    pub fn connection(&self) -> ConnectionInfo {
        self.connection
    }
}
