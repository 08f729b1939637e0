use std::sync::Arc;
use std::time::Duration;

/// The options of the assembly.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ResourceOptions {
    /// Name of the control plane's cluster in the bootstrap of the Envoys. Default: `xds`.
    pub xds_cluster: Arc<str>,
    /// Name of the route configuration with all virtual hosts. Default: `main`.
    pub route_config: Arc<str>,
    /// The sources by rank: if two claim a name or a domain, the earlier one gets it. Unlisted sources come
    /// last, by name. Default: empty.
    pub precedence: Vec<Arc<str>>,
    /// The poll interval of REST clients. Default: 1 s.
    pub refresh_delay: Duration,
}

impl Default for ResourceOptions {
    fn default() -> Self {
        Self {
            xds_cluster: "xds".into(),
            route_config: "main".into(),
            precedence: Vec::new(),
            refresh_delay: Duration::from_secs(1),
        }
    }
}

impl ResourceOptions {
    /// Sets [`xds_cluster`](Self::xds_cluster).
    #[must_use]
    pub fn with_xds_cluster(mut self, name: impl Into<Arc<str>>) -> Self {
        self.xds_cluster = name.into();
        self
    }

    /// Sets [`route_config`](Self::route_config).
    #[must_use]
    pub fn with_route_config(mut self, name: impl Into<Arc<str>>) -> Self {
        self.route_config = name.into();
        self
    }

    /// Sets [`precedence`](Self::precedence).
    #[must_use]
    pub fn with_precedence<N: Into<Arc<str>>>(
        mut self,
        sources: impl IntoIterator<Item = N>,
    ) -> Self {
        self.precedence = sources.into_iter().map(Into::into).collect();
        self
    }

    /// Sets [`refresh_delay`](Self::refresh_delay).
    #[must_use]
    pub fn with_refresh_delay(mut self, delay: Duration) -> Self {
        self.refresh_delay = delay;
        self
    }
}
