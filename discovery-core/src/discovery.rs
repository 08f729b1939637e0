//! The result of a discoverer.

use std::fmt;
use std::sync::Arc;

use indexmap::IndexMap;
use proxy_model::config::{DestinationConfig, ProxyConfig};
use proxy_model::{DestinationId, Problem, Problems, Severity};

use crate::error::DiscoverErrorKind;
use crate::labels::Parsed;
use crate::timestamp::Timestamp;

/// Free text by key, as registries attach it to services: labels, tags, annotations.
pub type Labels = IndexMap<String, String>;

/// Destinations by id.
pub type Destinations = IndexMap<DestinationId, DestinationConfig>;

/// The services that a source offers at one moment.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Discovery {
    /// The services, each under a name of its own.
    pub services: Vec<DiscoveredService>,
    /// Problems of the result as a whole, not of one service.
    pub problems: Problems,
    /// Groups whose services could not be listed.
    pub failed_groups: Vec<FailedGroup>,
    /// The oldest part of the result that replaces data that could not be read. `None` if everything was
    /// read just now.
    pub outdated: Option<Outdated>,
    /// The text that the source gets back after a restart; see [`with_memo`](Self::with_memo).
    pub memo: Option<Arc<str>>,
}

impl Discovery {
    /// Creates a result with these services and no problems.
    pub fn new(services: Vec<DiscoveredService>) -> Self {
        Self {
            services,
            ..Self::default()
        }
    }

    /// Adds a problem of the result as a whole.
    #[must_use]
    pub fn with_problem(mut self, problem: Problem) -> Self {
        self.problems.push(problem);
        self
    }

    /// Adds a group whose services could not be listed, with the reason. Services that were last seen in
    /// this group ([`DiscoveredService::in_group`]) and are missing from this result keep their last known
    /// good form instead of being removed.
    #[must_use]
    pub fn group_failed(mut self, group: impl Into<Arc<str>>, problem: Problem) -> Self {
        self.failed_groups.push(FailedGroup {
            group: group.into(),
            problem,
        });
        self
    }

    /// Sets what the source needs to know after a restart. It is kept on disk together with the services
    /// ([`persist`](crate::RunnerOptions::persist)) and returned by
    /// [`Discoverer::restored`](crate::Discoverer::restored).
    #[must_use]
    pub fn with_memo(mut self, memo: impl Into<Arc<str>>) -> Self {
        self.memo = Some(memo.into());
        self
    }

    /// Marks parts of the result as being as old as `since`, because they could not be read now. The source
    /// is then shown as [`SourceState::Partial`](crate::SourceState::Partial), with this age and this
    /// error.
    #[must_use]
    pub fn outdated(
        mut self,
        since: Timestamp,
        kind: DiscoverErrorKind,
        error: impl Into<String>,
    ) -> Self {
        let error = error.into();
        self.outdated = Some(Outdated { since, kind, error });
        self
    }
}

/// A part of a result that the source returned earlier and that could not be read now.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Outdated {
    /// The time at which the source returned it.
    pub since: Timestamp,
    /// The kind of failure that prevents reading it now.
    pub kind: DiscoverErrorKind,
    /// The error that prevents reading it now, with all causes.
    pub error: String,
}

impl FromIterator<DiscoveredService> for Discovery {
    fn from_iter<I: IntoIterator<Item = DiscoveredService>>(services: I) -> Self {
        Self::new(services.into_iter().collect())
    }
}

/// A group whose services could not be listed.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct FailedGroup {
    /// Name of the group.
    pub group: Arc<str>,
    /// The reason.
    pub problem: Problem,
}

/// One service of a source.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct DiscoveredService {
    /// The service's name, unique in the result and compared exactly. The last known good form of the
    /// service is kept under this name.
    pub name: Arc<str>,
    /// The part of the source that it was listed in, if the source can list parts separately: an application, a
    /// datacenter, a namespace.
    pub group: Option<Arc<str>>,
    /// The content of the service.
    pub content: ServiceContent,
    /// Problems that the source itself finds with the service. Their pointers must be meaningful to the
    /// service's owner. An error quarantines the service.
    pub problems: Problems,
    /// The labels that the source made [`ServiceContent::Config`] of, and the way to make it again; see
    /// [`with_rebuild`](Self::with_rebuild).
    pub rebuild: Option<Rebuild>,
    /// Prefixes of the ids of destinations that the source could not read; see
    /// [`with_unread`](Self::with_unread).
    pub unread: Vec<Arc<str>>,
    /// The reasons why the rules, or a part of them, are an earlier form; see
    /// [`with_rejected`](Self::with_rejected).
    pub rejected: Problems,
    /// The reasons why the destinations are those of before.
    pub rejected_destinations: Problems,
    /// The reasons why instances that there are cannot be destinations; see
    /// [`with_unusable`](Self::with_unusable).
    pub unusable: Problems,
}

/// The labels of a service, and a function that converts labels to configuration with the service's current parts.
/// With it, last known good labels serve with current destinations.
///
/// Two of them are equal if their labels are.
#[derive(Clone)]
pub struct Rebuild {
    pub(crate) labels: Arc<Labels>,
    build: Arc<dyn Fn(&Labels) -> Parsed + Send + Sync>,
}

impl Rebuild {
    /// The configuration that the service would have now with these labels.
    pub(crate) fn with(&self, labels: &Labels) -> Parsed {
        (self.build)(labels)
    }
}

impl PartialEq for Rebuild {
    fn eq(&self, other: &Self) -> bool {
        self.labels == other.labels
    }
}

impl fmt::Debug for Rebuild {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rebuild")
            .field("labels", &self.labels)
            .finish_non_exhaustive()
    }
}

/// The content of a [`DiscoveredService`].
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum ServiceContent {
    /// Labels and destinations, which the runner's [`LabelsParser`](crate::LabelsParser) turns into configuration.
    Labelled(LabelledService),
    /// Configuration: any number of clusters and routes.
    Config(Arc<ProxyConfig>),
    /// A service that exists but did not opt in to be served. Its last known good form is dropped.
    NotEnabled,
    /// A service that exists but could not be read. It keeps its last known good form, with its current
    /// destinations if there is a way to [rebuild it](DiscoveredService::with_rebuild).
    Failed,
}

/// A service as registries describe it.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct LabelledService {
    /// The service's labels.
    pub labels: Labels,
    /// The destinations at which the service can be reached.
    pub destinations: Destinations,
}

impl LabelledService {
    /// Creates a service with these labels and destinations.
    pub fn new(labels: Labels, destinations: Destinations) -> Self {
        Self {
            labels,
            destinations,
        }
    }
}

impl DiscoveredService {
    fn new(name: impl Into<Arc<str>>, content: ServiceContent) -> Self {
        Self {
            name: name.into(),
            group: None,
            content,
            problems: Problems::new(),
            rebuild: None,
            unread: Vec::new(),
            rejected: Problems::new(),
            rejected_destinations: Problems::new(),
            unusable: Problems::new(),
        }
    }

    /// Creates a service described by labels.
    pub fn labelled<K, V, I>(
        name: impl Into<Arc<str>>,
        labels: impl IntoIterator<Item = (K, V)>,
        destinations: impl IntoIterator<Item = (I, DestinationConfig)>,
    ) -> Self
    where
        K: Into<String>,
        V: Into<String>,
        I: Into<DestinationId>,
    {
        let labels = labels.into_iter().map(|(k, v)| (k.into(), v.into()));
        let destinations = destinations.into_iter().map(|(id, d)| (id.into(), d));
        Self::new(
            name,
            ServiceContent::Labelled(LabelledService::new(
                labels.collect(),
                destinations.collect(),
            )),
        )
    }

    /// Creates a service whose configuration the source made itself.
    pub fn configured(name: impl Into<Arc<str>>, config: impl Into<Arc<ProxyConfig>>) -> Self {
        Self::new(name, ServiceContent::Config(config.into()))
    }

    /// Creates a service that exists but did not opt in to be served.
    ///
    /// Unlike a service that the result leaves out, it is known to exist: its problems are reported, and
    /// neither [`RunnerOptions::confirm_removal`](crate::RunnerOptions::confirm_removal) nor a group that
    /// could not be listed keeps it.
    pub fn not_enabled(name: impl Into<Arc<str>>) -> Self {
        Self::new(name, ServiceContent::NotEnabled)
    }

    /// Creates a service that exists, but could not be read.
    pub fn failed(name: impl Into<Arc<str>>, problem: Problem) -> Self {
        let mut service = Self::new(name, ServiceContent::Failed);
        service.problems.push(problem);
        service
    }

    /// Sets the group of the source in which the service was listed; see [`Discovery::group_failed`].
    #[must_use]
    pub fn in_group(mut self, group: impl Into<Arc<str>>) -> Self {
        self.group = Some(group.into());
        self
    }

    /// Sets the function that makes the service's configuration from labels and from its current instances
    /// and partitions. `labels` are those of this result.
    ///
    /// While the labels of a service are invalid, its last known good *labels* serve with its *current*
    /// destinations. For [`ServiceContent::Labelled`] the runner makes that itself. For
    /// [`ServiceContent::Config`] it calls `build` with the last valid labels, on a thread that may block.
    /// Without `build`, the last known good clusters get the destinations of the clusters of the same name
    /// in this result.
    #[must_use]
    pub fn with_rebuild(
        mut self,
        labels: impl Into<Arc<Labels>>,
        build: impl Fn(&Labels) -> Parsed + Send + Sync + 'static,
    ) -> Self {
        self.rebuild = Some(Rebuild {
            labels: labels.into(),
            build: Arc::new(build),
        });
        self
    }

    /// Marks destinations whose ids begin with `beginning` as unreadable, while the rest of the service's
    /// configuration is known. Those that served last, in this run or the one before
    /// ([`persist`](crate::RunnerOptions::persist)), continue to serve in the clusters of the same id, with
    /// a warning that contains their age. After [`unread_grace`](crate::RunnerOptions::unread_grace) they
    /// are removed, with another warning. For services with [`ServiceContent::Config`], and for last known
    /// good rules.
    #[must_use]
    pub fn with_unread(mut self, beginning: impl Into<Arc<str>>) -> Self {
        self.unread.push(beginning.into());
        self
    }

    /// Marks the rules, routes and cluster settings, as an earlier form in whole or in part: the source
    /// itself rejected the current one for these reasons, and keeps what it can. The content serves, and the
    /// service is listed as quarantined.
    #[must_use]
    pub fn with_rejected(mut self, problems: Problems) -> Self {
        self.rejected.append(problems);
        self
    }

    /// Marks the destinations as those of before, like [`with_rejected`](Self::with_rejected).
    #[must_use]
    pub fn with_rejected_destinations(mut self, problems: Problems) -> Self {
        self.rejected_destinations.append(problems);
        self
    }

    /// Marks a service with instances of which none can be a destination of some cluster, for these reasons: their
    /// addresses are unusable. What serves is current: an earlier address is withdrawn, so it is not used instead. The
    /// service is listed as quarantined, since requests to that cluster get 503.
    #[must_use]
    pub fn with_unusable(mut self, problems: Problems) -> Self {
        let errors = problems.into_iter().map(|mut problem| {
            problem.severity = Severity::Error;
            problem
        });
        self.unusable.extend(errors);
        self
    }

    /// Returns true if a part of the content is an earlier form.
    pub(crate) fn is_earlier(&self) -> bool {
        !self.rejected.is_empty() || !self.rejected_destinations.is_empty()
    }

    /// Adds something that the source finds wrong with the service.
    #[must_use]
    pub fn with_problem(mut self, problem: Problem) -> Self {
        self.problems.push(problem);
        self
    }
}
