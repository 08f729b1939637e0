//! Putting a discoverer together.

use std::fmt;
use std::sync::Arc;

use discovery_core::{LabelsParser, Runner};
use parking_lot::Mutex;
use proxy_model::{Problems, Snapshot};
use tokio::sync::{Semaphore, watch};

use super::{Inner, ServiceFabricDiscoverer};
use crate::cache::CachedCalls;
use crate::calls::ClusterCalls;
use crate::extension::{ExtensionLabels, LabelsProvider};
use crate::health::Reporter;
use crate::labels::{ParsedService, ServiceParser, YarpLabels};
use crate::options::ServiceFabricOptions;
use crate::service::ServiceDescription;
use crate::topology::Topology;

/// Makes a [`ServiceFabricDiscoverer`], or the runner of one.
///
/// Each part can be replaced: who makes the calls, who finds labels, who turns a service into configuration.
#[must_use = "nothing is discovered until a runner is made and started"]
pub struct ServiceFabric {
    name: Arc<str>,
    calls: Arc<dyn ClusterCalls>,
    labels: Arc<dyn LabelsProvider>,
    parser: Option<Arc<ServiceParser>>,
    options: ServiceFabricOptions,
    unsupported: Option<fn(&Snapshot) -> Problems>,
}

impl ServiceFabric {
    /// Creates a builder for discovery through `calls`: a client of the cluster's gateway, or another way
    /// to a cluster.
    pub fn new(calls: impl ClusterCalls + 'static) -> Self {
        Self {
            name: "servicefabric".into(),
            calls: Arc::new(calls),
            labels: Arc::new(ExtensionLabels::new()),
            parser: None,
            options: ServiceFabricOptions::default(),
            unsupported: None,
        }
    }

    /// Sets how discovery behaves.
    pub fn options(mut self, options: ServiceFabricOptions) -> Self {
        self.options = options;
        self
    }

    /// Sets the name in logs, metrics and problems, for a proxy of several clusters. Default:
    /// `servicefabric`.
    pub fn named(mut self, name: impl Into<Arc<str>>) -> Self {
        self.name = name.into();
        self
    }

    /// Sets the provider of services' labels. Default: [`ExtensionLabels`].
    pub fn labels(mut self, labels: impl LabelsProvider + 'static) -> Self {
        self.labels = Arc::new(labels);
        self
    }

    /// Sets the parser that turns services into configuration. Default: [`YarpLabels`] with
    /// [`ServiceFabricOptions::labels`].
    pub fn parser(
        mut self,
        parser: impl LabelsParser<ServiceDescription, ParsedService> + 'static,
    ) -> Self {
        self.parser = Some(Arc::new(parser));
        self
    }

    /// Sets the check for settings that the proxy does not support: `proxy_runtime::unsupported`. Labels
    /// that use them get a warning, and their services the health state `Warning`. Applies to labels that
    /// [`YarpLabels`] reads. Default: all settings are supported.
    pub fn unsupported(mut self, unsupported: fn(&Snapshot) -> Problems) -> Self {
        self.unsupported = Some(unsupported);
        self
    }

    /// Builds the discoverer, without making a call.
    pub fn discoverer(self) -> ServiceFabricDiscoverer {
        let Self {
            name,
            calls,
            labels,
            parser,
            options,
            unsupported,
        } = self;
        let options = options.bounded();
        let parser = parser.unwrap_or_else(|| {
            let labels = YarpLabels::new(options.labels.clone());
            Arc::new(match unsupported {
                Some(unsupported) => labels.with_unsupported(unsupported),
                None => labels,
            })
        });
        let cached = CachedCalls::new(Arc::clone(&calls)).with_duration(options.cache_duration);
        let inner = Inner {
            name,
            topology: Topology::new(Arc::new(cached), labels, options.clone()),
            parser,
            reporter: Reporter::new(calls, &options),
            options,
            state: Mutex::default(),
            parsing: Arc::new(Semaphore::new(1)),
            wake: watch::Sender::new(None),
            rejections: Mutex::default(),
            unreachable: Mutex::default(),
        };
        ServiceFabricDiscoverer {
            inner: Arc::new(inner),
        }
    }

    /// Creates the runner of such a discoverer.
    pub fn runner(self) -> Runner {
        self.discoverer().runner()
    }
}

impl fmt::Debug for ServiceFabric {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServiceFabric")
            .field("name", &self.name)
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}
