//! What is known of a cluster from one round to the next.

use std::collections::BTreeMap;
use std::sync::Arc;

use proxy_model::Problem;
use tokio::time::Instant;

use super::parts::PARTITION_NOT_READ;
use super::probe::{Baseline, ProbeState};
use super::resolving::Resolved;
use crate::cache::StaleAnswer;
use crate::extension::{DeclaredLabels, DeclaredTypes, Enlisted, Parameters, ServiceLabels};
use crate::id::NameError;
use crate::model::{Parameter, Service};
use crate::service::{PartitionDescription, ServiceDescription};

/// What is known of a cluster. A round makes a new one of the old one, so that a round that is dropped half-way leaves
/// nothing half-done.
#[derive(Clone, Debug, Default)]
pub(crate) struct Memory {
    /// When the last round began that listed everything. `None`: there was none.
    pub(crate) listed_at: Option<Instant>,
    /// Whether the last round was such a one.
    pub(crate) was_whole: bool,
    /// By name.
    pub(crate) applications: BTreeMap<Arc<str>, Arc<KnownApplication>>,
    /// Applications that cannot be asked for, and why.
    pub(crate) unnameable: Vec<Unnameable>,
    /// Whether the list of applications was the cluster's own answer when everything was last listed, not an old one.
    pub(crate) is_live: bool,
    /// The old answers that the lists of applications and their types are made of.
    pub(crate) stale: Option<StaleAnswer>,
    pub(crate) types: BTreeMap<TypeKey, Arc<KnownType>>,
    /// By name of the application.
    pub(crate) lists: BTreeMap<Arc<str>, Arc<KnownList>>,
    /// By name.
    pub(crate) services: BTreeMap<Arc<str>, Arc<KnownService>>,
    pub(crate) probe: ProbeState,
}

/// Name and version of an application type.
pub(crate) type TypeKey = (Arc<str>, Arc<str>);

/// Something that cannot be asked for by its name.
pub(crate) type Unnameable = (Arc<str>, NameError);

#[derive(Debug)]
pub(crate) struct KnownApplication {
    pub(crate) name: Arc<str>,
    pub(crate) id: String,
    pub(crate) type_key: TypeKey,
    pub(crate) parameters: Arc<Parameters>,
}

#[derive(Debug, Default)]
pub(crate) struct KnownType {
    pub(crate) defaults: Arc<[Parameter]>,
    /// `None`: they were never read.
    pub(crate) declared: Option<Arc<DeclaredTypes>>,
    /// When they were last read.
    pub(crate) read_at: Option<Instant>,
    /// When they are read again. `None`: when everything is listed again.
    pub(crate) refresh_at: Option<Instant>,
    /// Why they could not be read, in this round.
    pub(crate) failed: Option<Problem>,
    pub(crate) stale: Option<StaleAnswer>,
}

/// The services of an application, as far as their types have labels.
#[derive(Clone, Debug, Default)]
pub(crate) struct KnownList {
    pub(crate) services: Vec<Arc<Service>>,
    /// Those that cannot be asked for, and why.
    pub(crate) unnameable: Vec<Unnameable>,
    /// Why they could not be listed, and how often in a row.
    pub(crate) failed: Option<Failed>,
    pub(crate) stale: Option<StaleAnswer>,
}

#[derive(Clone, Debug)]
pub(crate) struct Failed {
    pub(crate) problem: Problem,
    pub(crate) in_a_row: u32,
    /// How often in a row it was too slow.
    pub(crate) slow_in_a_row: u32,
    /// It was too slow, which the others must not pay for in every round: it is left alone until then.
    pub(crate) retry_at: Option<Instant>,
    /// Of when what is known of it is, or when it failed first.
    pub(crate) since: Instant,
}

impl Failed {
    /// One failure more than `before`.
    pub(crate) fn after(before: Option<&Self>, problem: Problem) -> Self {
        let in_a_row = before.map_or(0, |failed| failed.in_a_row);
        Self {
            problem,
            in_a_row: in_a_row.saturating_add(1),
            slow_in_a_row: 0,
            retry_at: None,
            since: before.map_or_else(Instant::now, |failed| failed.since),
        }
    }
}

#[derive(Clone, Debug)]
pub(crate) struct KnownService {
    pub(crate) name: Arc<str>,
    pub(crate) application: Arc<KnownApplication>,
    pub(crate) declared: Arc<DeclaredLabels>,
    pub(crate) info: Arc<Service>,
    /// `None`: they were never read.
    pub(crate) labels: Option<Arc<ServiceLabels>>,
    /// What was last read; `None`: nothing yet, or it does not ask to be served.
    pub(crate) read: Option<Arc<Read>>,
    /// Why it could not be read, in this round.
    pub(crate) failed: Option<Failed>,
    /// The old answers that its labels are made of.
    pub(crate) stale_labels: Option<StaleAnswer>,
}

/// What was read of a service.
#[derive(Clone, Debug)]
pub(crate) struct Read {
    pub(crate) description: Arc<ServiceDescription>,
    /// When it is read again, whatever happens.
    pub(crate) refresh_at: Instant,
    /// Which replicas there were shortly before.
    pub(crate) baseline: Option<Baseline>,
    /// What the naming service said, by partition.
    pub(crate) resolved: BTreeMap<String, Resolved>,
    /// Why it is likely to change soon; `None`: it is not.
    pub(crate) unsettled: Option<Unsettled>,
    /// The old answers that this is made of.
    pub(crate) stale: Option<StaleAnswer>,
    /// Partitions that could not be read, by id, and why.
    pub(crate) unread: BTreeMap<String, Failed>,
}

impl Read {
    /// Since when a partition has not been read that fails for the first time now: since the old answer that stood in
    /// for it, if there was one.
    pub(crate) fn last_read(&self) -> Option<Instant> {
        self.stale.as_ref().map(|stale| stale.at)
    }
}

/// Why a service is likely to change soon.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Unsettled {
    pub(crate) why: &'static str,
    /// How often it has been read since without a change.
    pub(crate) unchanged: u32,
}

impl KnownService {
    /// The oldest of the old answers that it is made of.
    pub(crate) fn stale(&self) -> Option<&StaleAnswer> {
        let read = self.read.as_ref().and_then(|read| read.stale.as_ref());
        let both = self.stale_labels.iter().chain(read);
        both.min_by_key(|stale| stale.at)
    }

    /// The partitions that could not be read.
    pub(crate) fn unread_parts(&self) -> impl Iterator<Item = &Failed> {
        let read = self.read.iter();
        read.flat_map(|read| read.unread.values())
    }

    /// A warning for each partition that could not be read, which the rest of the service does not wait for.
    pub(crate) fn unread(&self) -> impl Iterator<Item = Problem> {
        self.unread_parts().map(|failed| {
            let message = format!(
                "{}; the other partitions are served",
                failed.problem.message
            );
            Problem::warning("", PARTITION_NOT_READ, message)
        })
    }

    /// Whether it asked to be served when it was last read, as far as that is known.
    pub(crate) fn was_served(&self) -> bool {
        let labels = self.labels.as_ref();
        labels.is_none_or(|labels| labels.enlisted != Enlisted::No)
    }

    /// What is known of it, with these labels and these partitions.
    pub(crate) fn described(
        &self,
        labels: &ServiceLabels,
        partitions: Vec<PartitionDescription>,
    ) -> ServiceDescription {
        ServiceDescription {
            name: Arc::clone(&self.name),
            application: Arc::clone(&self.application.name),
            application_type: Arc::clone(&self.application.type_key.0),
            service_type: self.info.type_name.as_str().into(),
            kind: self.info.service_kind.clone(),
            labels: Arc::clone(&labels.labels),
            partitions,
        }
    }
}
