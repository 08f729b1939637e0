//! What a discoverer answers.

use std::fmt;
use std::sync::Arc;

use indexmap::IndexMap;
use proxy_model::config::{DestinationConfig, ProxyConfig};
use proxy_model::{DestinationId, Problem, Problems};

use crate::error::DiscoverErrorKind;
use crate::labels::Parsed;
use crate::moment::Moment;

/// Free text by key, as registries attach it to services: labels, tags, annotations.
pub type Labels = IndexMap<String, String>;

/// Destinations by id.
pub type Destinations = IndexMap<DestinationId, DestinationConfig>;

/// Everything that a source offers at one moment.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Discovery {
    /// The services, each under a name of its own.
    pub services: Vec<DiscoveredService>,
    /// What is wrong with the answer as a whole, not with one service.
    pub problems: Problems,
    /// Groups whose services could not be listed.
    pub failed_groups: Vec<FailedGroup>,
    /// The oldest part of the answer that stands in for one that could not be read; `None`: all of it was read just now.
    pub outdated: Option<Outdated>,
}

impl Discovery {
    /// An answer with these services and nothing wrong.
    pub fn new(services: Vec<DiscoveredService>) -> Self {
        Self {
            services,
            ..Self::default()
        }
    }

    /// Adds something that is wrong with the answer as a whole.
    #[must_use]
    pub fn with_problem(mut self, problem: Problem) -> Self {
        self.problems.push(problem);
        self
    }

    /// Says that the services of `group` could not be listed, and why. Services that were last seen in this group
    /// ([`DiscoveredService::in_group`]) and are missing from this answer keep their last good form instead of being
    /// removed.
    #[must_use]
    pub fn group_failed(mut self, group: impl Into<Arc<str>>, problem: Problem) -> Self {
        self.failed_groups.push(FailedGroup {
            group: group.into(),
            problem,
        });
        self
    }

    /// Says that parts of the answer are as old as `since`, because they could not be read now. The source is then shown
    /// as [`SourceState::Partial`](crate::SourceState::Partial), with this age and this error.
    #[must_use]
    pub fn outdated(
        mut self,
        since: Moment,
        kind: DiscoverErrorKind,
        error: impl Into<String>,
    ) -> Self {
        let error = error.into();
        self.outdated = Some(Outdated { since, kind, error });
        self
    }
}

/// A part of an answer that the source gave earlier and could not be read now.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Outdated {
    /// When the source gave it.
    pub since: Moment,
    /// What kind of failure keeps it from being read.
    pub kind: DiscoverErrorKind,
    /// Why it could not be read, with all causes.
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
    /// Why.
    pub problem: Problem,
}

/// One service of a source.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct DiscoveredService {
    /// Its name, unique in the answer and compared exactly. What was good about the service is kept under this name.
    pub name: Arc<str>,
    /// The part of the source that it was listed in, if the source can list parts separately: an application, a
    /// datacenter, a namespace.
    pub group: Option<Arc<str>>,
    /// What it is.
    pub content: ServiceContent,
    /// What the source itself finds wrong with it, with pointers that mean something to the service's owner. An error
    /// quarantines the service.
    pub problems: Problems,
    /// The labels that the source made [`ServiceContent::Config`] of, and the way to make it again; see
    /// [`with_rebuild`](Self::with_rebuild).
    pub rebuild: Option<Rebuild>,
    /// What the ids of destinations begin with that the source could not look at; see
    /// [`with_unread`](Self::with_unread).
    pub unread: Vec<Arc<str>>,
}

/// The labels that a source made a service's configuration of, and how it makes configuration of other labels for what
/// the service consists of now.
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

/// What a [`DiscoveredService`] is.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum ServiceContent {
    /// Labels and destinations, which the runner's [`LabelsParser`](crate::LabelsParser) turns into configuration.
    Labelled(LabelledService),
    /// Configuration: any number of clusters and routes.
    Config(Arc<ProxyConfig>),
    /// The service is there, and does not ask to be served. Its last good form is dropped.
    NotEnlisted,
    /// The service is there, but could not be read. It keeps its last good form, with its current destinations if there
    /// is a way to [make it again](DiscoveredService::with_rebuild).
    Failed,
}

/// A service as registries describe it.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct LabelledService {
    /// The service's labels.
    pub labels: Labels,
    /// Where the service can be reached.
    pub destinations: Destinations,
}

impl LabelledService {
    /// A service with these labels and destinations.
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
        }
    }

    /// A service described by labels.
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

    /// A service whose configuration the source made itself.
    pub fn configured(name: impl Into<Arc<str>>, config: impl Into<Arc<ProxyConfig>>) -> Self {
        Self::new(name, ServiceContent::Config(config.into()))
    }

    /// A service that is there, and does not ask to be served.
    ///
    /// Unlike one that the answer leaves out, it is known to be there: what is wrong with it is reported, and neither
    /// [`RunnerOptions::confirm_removal`](crate::RunnerOptions::confirm_removal) nor a group that could not be listed
    /// keeps it.
    pub fn not_enlisted(name: impl Into<Arc<str>>) -> Self {
        Self::new(name, ServiceContent::NotEnlisted)
    }

    /// A service that is there, but could not be read.
    pub fn failed(name: impl Into<Arc<str>>, problem: Problem) -> Self {
        let mut service = Self::new(name, ServiceContent::Failed);
        service.problems.push(problem);
        service
    }

    /// Says in which part of the source the service was listed; see [`Discovery::group_failed`].
    #[must_use]
    pub fn in_group(mut self, group: impl Into<Arc<str>>) -> Self {
        self.group = Some(group.into());
        self
    }

    /// Tells how the source makes the service's configuration of its labels and of what the service consists of now:
    /// its instances and partitions. `labels` are those of this answer.
    ///
    /// While the labels of a service are wrong, its last good *labels* serve with its *current* destinations. For
    /// [`ServiceContent::Labelled`] the runner makes that itself. For [`ServiceContent::Config`] it calls `build` with
    /// the labels that were last right, on a thread where that may take its time. Without `build` the last good clusters
    /// get the destinations of the clusters of the same name in this answer.
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

    /// Says that the source could not look at destinations whose ids begin so, while it knows the rest of the service's
    /// configuration. Those of them that served last, in this run or the one before ([`persist`](crate::RunnerOptions::persist)),
    /// serve on in the clusters of the same id for [`unread_grace`](crate::RunnerOptions::unread_grace), with a warning that
    /// tells how old they are; after that they serve no more, which is a warning, too. For services that are told as
    /// [`ServiceContent::Config`], and for last good rules.
    #[must_use]
    pub fn with_unread(mut self, beginning: impl Into<Arc<str>>) -> Self {
        self.unread.push(beginning.into());
        self
    }

    /// Adds something that the source finds wrong with the service.
    #[must_use]
    pub fn with_problem(mut self, problem: Problem) -> Self {
        self.problems.push(problem);
        self
    }
}
