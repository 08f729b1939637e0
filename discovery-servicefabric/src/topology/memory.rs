//! The state of a cluster that is kept from one cycle to the next.

use std::collections::BTreeMap;
use std::sync::Arc;

use proxy_model::Problem;
use tokio::time::Instant;

use super::parts::PARTITION_NOT_READ;
use super::probe::{Baseline, ProbeState};
use super::resolving::Resolved;
use crate::cache::StaleAnswer;
use crate::extension::{DeclaredLabels, DeclaredTypes, OptIn, Parameters, ServiceLabels};
use crate::id::NameError;
use crate::model::{Parameter, Service};
use crate::service::{PartitionDescription, ServiceDescription};

/// The known state of a cluster. A cycle makes a new one from the old one, so that a cycle that is dropped
/// half-way leaves no partial state.
#[derive(Clone, Debug, Default)]
pub(crate) struct Memory {
    /// The start of the last cycle that listed everything. `None` if there was none.
    pub(crate) listed_at: Option<Instant>,
    /// True if the last cycle listed everything.
    pub(crate) was_whole: bool,
    /// The applications, by name.
    pub(crate) applications: BTreeMap<Arc<str>, Arc<KnownApplication>>,
    /// Applications that cannot be requested, and the reasons.
    pub(crate) unnameable: Vec<Unnameable>,
    /// True if the list of applications in the last complete cycle was a current response of the cluster,
    /// not an old one.
    pub(crate) is_live: bool,
    /// The old responses that the lists of applications and their types are based on.
    pub(crate) stale: Option<StaleAnswer>,
    pub(crate) types: BTreeMap<TypeKey, Arc<KnownType>>,
    /// The lists of services, by name of the application.
    pub(crate) lists: BTreeMap<Arc<str>, Arc<KnownList>>,
    /// The services, by name.
    pub(crate) services: BTreeMap<Arc<str>, Arc<KnownService>>,
    pub(crate) probe: ProbeState,
}

/// Name and version of an application type.
pub(crate) type TypeKey = (Arc<str>, Arc<str>);

/// An entity that cannot be requested by its name.
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
    /// The labels. `None` if they were never read.
    pub(crate) declared: Option<Arc<DeclaredTypes>>,
    /// The time at which they were last read.
    pub(crate) read_at: Option<Instant>,
    /// The time of the next refresh. `None` if that is the next complete cycle.
    pub(crate) refresh_at: Option<Instant>,
    /// The reason why they could not be read in this cycle.
    pub(crate) failed: Option<Problem>,
    pub(crate) stale: Option<StaleAnswer>,
}

/// The services of an application whose types have labels.
#[derive(Clone, Debug, Default)]
pub(crate) struct KnownList {
    pub(crate) services: Vec<Arc<Service>>,
    /// Services that cannot be requested, and the reasons.
    pub(crate) unnameable: Vec<Unnameable>,
    /// The reason why they could not be listed, and the number of consecutive failures.
    pub(crate) failed: Option<Failed>,
    pub(crate) stale: Option<StaleAnswer>,
}

#[derive(Clone, Debug)]
pub(crate) struct Failed {
    pub(crate) problem: Problem,
    pub(crate) in_a_row: u32,
    /// Number of consecutive time-outs.
    pub(crate) slow_in_a_row: u32,
    /// The time until which the entity is skipped. It was too slow, which would delay the other entities in
    /// every cycle.
    pub(crate) retry_at: Option<Instant>,
    /// The time of its last known state, or of the first failure.
    pub(crate) since: Instant,
}

impl Failed {
    /// Returns a failure that follows `before`.
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
    /// The labels. `None` if they were never read.
    pub(crate) labels: Option<Arc<ServiceLabels>>,
    /// The last read state. `None` if nothing was read yet, or if the service has not opted in.
    pub(crate) read: Option<Arc<Read>>,
    /// The reason why it could not be read in this cycle.
    pub(crate) failed: Option<Failed>,
    /// The partitions that could not be read, by id, of a service without a readable partition. `None` if the
    /// service was read.
    pub(crate) none_read: Option<Arc<BTreeMap<String, Failed>>>,
    /// The old responses that its labels are based on.
    pub(crate) stale_labels: Option<StaleAnswer>,
}

/// The read state of a service.
#[derive(Clone, Debug)]
pub(crate) struct Read {
    pub(crate) description: Arc<ServiceDescription>,
    /// The time after which it is read again in any case.
    pub(crate) refresh_at: Instant,
    /// The replicas that existed shortly before.
    pub(crate) baseline: Option<Baseline>,
    /// The results of the naming service, by partition.
    pub(crate) resolved: BTreeMap<String, Resolved>,
    /// The reason why it is likely to change soon. `None` if it is not.
    pub(crate) pending_read: Option<PendingRead>,
    /// The old responses that the state is based on.
    pub(crate) stale: Option<StaleAnswer>,
    /// Partitions that could not be read, by id, and the reasons.
    pub(crate) unread: BTreeMap<String, Failed>,
}

impl Read {
    /// Returns the time of the old response that replaced a failed call, if there was one. A partition that
    /// becomes unreadable now was last read then.
    pub(crate) fn last_read(&self) -> Option<Instant> {
        self.stale.as_ref().map(|stale| stale.at)
    }
}

/// The reason why a service is likely to change soon.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PendingRead {
    pub(crate) why: &'static str,
    /// Number of reads since then without a change.
    pub(crate) unchanged: u32,
}

impl KnownService {
    /// The oldest of the old responses that it is based on.
    pub(crate) fn stale(&self) -> Option<&StaleAnswer> {
        let read = self.read.as_ref().and_then(|read| read.stale.as_ref());
        let both = self.stale_labels.iter().chain(read);
        both.min_by_key(|stale| stale.at)
    }

    /// Returns the partitions that could not be read.
    pub(crate) fn unread_parts(&self) -> impl Iterator<Item = &Failed> {
        let read = self.read.iter();
        read.flat_map(|read| read.unread.values())
    }

    /// Returns a warning for each partition that could not be read. The rest of the service does not wait
    /// for it.
    pub(crate) fn unread(&self) -> impl Iterator<Item = Problem> {
        self.unread_parts().map(|failed| {
            let message = format!(
                "{}; the other partitions are served",
                failed.problem.message
            );
            Problem::warning("", PARTITION_NOT_READ, message)
        })
    }

    /// Returns the last failure of the partition, if it could not be read.
    pub(crate) fn unread_part(&self, id: &str) -> Option<&Failed> {
        let of_none = self.none_read.as_ref().and_then(|none| none.get(id));
        of_none.or_else(|| self.read.as_ref()?.unread.get(id))
    }

    /// Returns true if the service had opted in when it was last read, as far as known.
    pub(crate) fn was_served(&self) -> bool {
        let labels = self.labels.as_ref();
        labels.is_none_or(|labels| labels.enabled != OptIn::No)
    }

    /// Returns the description of the service, with these labels and these partitions.
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
