//! The context of a filter call.

use proxy_model::compiled::{Cluster, Route};

use crate::connection::ConnectionInfo;

/// The route, cluster and connection of the message that a filter sees.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct FilterContext<'a> {
    /// The route that matched the request.
    pub route: &'a Route,
    /// The cluster that the request is for.
    pub cluster: &'a Cluster,
    /// The client's connection.
    pub connection: ConnectionInfo,
}

impl<'a> FilterContext<'a> {
    pub(crate) fn new(route: &'a Route, cluster: &'a Cluster, connection: ConnectionInfo) -> Self {
        Self {
            route,
            cluster,
            connection,
        }
    }

    /// A value of the route's `Metadata`: the settings of a filter for one route.
    pub fn route_metadata(&self, key: &str) -> Option<&'a str> {
        let metadata = self.route.config().metadata.as_ref()?;
        metadata.get(key).map(String::as_str)
    }
}
