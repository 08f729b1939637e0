//! Labels, partitions and replicas of services.

use std::collections::BTreeMap;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures_util::FutureExt;
use proxy_model::Problem;
use tokio::time::Instant;

use super::listing::unreadable;
use super::memory::{KnownService, Memory, Read};
use super::parts::{NoneRead, Parts};
use super::probe::Probe;
use super::settling::{self, Cycle, Plan};
use super::{Listed, Topology, let_others_run};
use crate::cache::StaleAnswer;
use crate::extension::{LabelledBy, OptIn, ServiceLabels};
use crate::id::id_of;
use crate::model::Service;

impl Topology {
    /// Reads the parts of all services that are due.
    pub(super) async fn read_services(
        &self,
        cycle: &Cycle<'_>,
        memory: &mut Memory,
        listed: Vec<Listed>,
        probe: Option<Probe>,
    ) {
        let probe = probe.as_ref();
        let mut services = BTreeMap::new();
        let mut work = Vec::new();
        for (done, listed) in listed.into_iter().enumerate() {
            let_others_run(done).await;
            let before = memory.services.get(listed.info.name.as_str());
            match before.and_then(|before| kept(cycle, before, &listed, probe)) {
                Some(kept) => {
                    services.insert(Arc::clone(&kept.name), kept);
                }
                None => work.push((listed, before.cloned())),
            }
        }
        let read = self.all(work, |(listed, before)| {
            self.read_service(cycle, listed, before, probe)
        });
        for service in read.await {
            services.insert(Arc::clone(&service.name), Arc::new(service));
        }
        // Those of applications whose services could not be listed are as they were.
        for known in memory.services.values() {
            let list = memory.lists.get(&known.application.name);
            if list.is_some_and(|list| list.failed.is_some()) {
                services
                    .entry(Arc::clone(&known.name))
                    .or_insert_with(|| Arc::clone(known));
            }
        }
        memory.services = services;
    }

    async fn read_service(
        &self,
        cycle: &Cycle<'_>,
        listed: Listed,
        before: Option<Arc<KnownService>>,
        probe: Option<&Probe>,
    ) -> KnownService {
        let before = before.as_deref();
        let mut service = KnownService {
            name: before.map_or_else(
                || listed.info.name.as_str().into(),
                |before| Arc::clone(&before.name),
            ),
            application: listed.application,
            declared: listed.declared,
            info: listed.info,
            labels: before.and_then(|before| before.labels.clone()),
            read: before.and_then(|before| before.read.clone()),
            failed: None,
            none_read: before.and_then(|before| before.none_read.clone()),
            stale_labels: None,
        };
        if let Err(none) = self.fill(cycle, &mut service, before, probe).await {
            let before = before.and_then(|before| before.failed.as_ref());
            service.failed = Some(match none.lacked_time {
                true => cycle.without_time(before, none.problem),
                false => cycle.failed(before, none.problem),
            });
            if !none.unread.is_empty() {
                service.none_read = Some(Arc::new(none.unread));
            }
        } else {
            service.none_read = None;
        }
        service
    }

    /// Reads labels and, as far as that is due, partitions and replicas.
    async fn fill(
        &self,
        cycle: &Cycle<'_>,
        service: &mut KnownService,
        before: Option<&KnownService>,
        probe: Option<&Probe>,
    ) -> Result<(), NoneRead> {
        let service_id = service_id(&service.info);
        let labels = self
            .read_labels(cycle, service, &service_id, before)
            .await?;
        service.labels = Some(Arc::clone(&labels));
        // Where one is whose labels cannot be understood matters, too: it serves by those that were right before.
        if labels.enabled == OptIn::No {
            service.read = None;
            return Ok(());
        }
        let plan = match before.zip(service.read.as_deref()) {
            Some((before, read)) => cycle.plan(before, read, &service.info, probe),
            None => Plan::Read,
        };
        let kept = match plan {
            Plan::Keep => true,
            Plan::Resolve => self.is_resolved_as_before(service, &service_id).await,
            Plan::Read => false,
        };
        if kept {
            relabel(service, &labels);
            return Ok(());
        }
        let observed = self.calls.observe();
        let mut parts = self
            .read_parts(cycle, &observed, service, &service_id)
            .await?;
        parts.stale = StaleAnswer::older(parts.stale.take(), observed.stale());
        let read = finished(cycle, service, &labels, parts, before, probe);
        service.read = Some(Arc::new(read));
        Ok(())
    }

    async fn read_labels(
        &self,
        cycle: &Cycle<'_>,
        service: &mut KnownService,
        service_id: &str,
        before: Option<&KnownService>,
    ) -> Result<Arc<ServiceLabels>, Problem> {
        if let Some(before) = before
            && let Some(labels) = same_labels(cycle, before, service)
        {
            service.stale_labels.clone_from(&before.stale_labels);
            return Ok(labels);
        }
        let observed = self.calls.observe();
        let by = LabelledBy::new(
            &service.name,
            service_id,
            &service.declared,
            &service.application.parameters,
        );
        // This may be code of others. Its panic is the service's trouble alone.
        let call = async { self.limited(self.labels.labels(&observed, by)).await };
        let result = AssertUnwindSafe(call).catch_unwind().await;
        service.stale_labels = observed.stale();
        match result {
            Ok(Ok(labels)) => Ok(match before.and_then(|before| before.labels.as_ref()) {
                Some(before) if **before == labels => Arc::clone(before),
                _ => Arc::new(labels),
            }),
            Ok(Err(error)) => Err(unreadable("", "the labels of the service", &error)),
            Err(_) => {
                let message = "finding the labels of the service panicked";
                Err(Problem::error("", "labels_panicked", message))
            }
        }
    }
}

/// Returns the service unchanged, if it needs no read.
fn kept(
    cycle: &Cycle<'_>,
    before: &Arc<KnownService>,
    listed: &Listed,
    probe: Option<&Probe>,
) -> Option<Arc<KnownService>> {
    let is_same = Arc::ptr_eq(&before.application, &listed.application)
        && Arc::ptr_eq(&before.declared, &listed.declared);
    if !is_same {
        return None;
    }
    if let Some(failed) = before.failed.as_ref().filter(|of| of.retry_at.is_some()) {
        return cycle.leaves_alone(failed).then(|| Arc::clone(before));
    }
    if before.failed.is_some() {
        // What has failed for a while is not worth the hurry of others.
        let is_wanted = before.polls_fast() || cycle.unreachable.contains(&before.name);
        return (!cycle.is_whole && !is_wanted).then(|| Arc::clone(before));
    }
    if before.stale().is_some() && cycle.is_whole {
        return None;
    }
    let labels = before.labels.as_ref()?;
    if labels.dynamic && cycle.is_whole {
        return None;
    }
    let keep = match (&before.read, labels.enabled) {
        (Some(read), OptIn::Yes | OptIn::Unknown) => {
            cycle.plan(before, read, &listed.info, probe) == Plan::Keep
        }
        (None, OptIn::Yes | OptIn::Unknown) => false,
        (_, OptIn::No) => true,
    };
    keep.then(|| Arc::clone(before))
}

/// Returns the earlier labels, unless the data that they are made of has changed.
fn same_labels(
    cycle: &Cycle<'_>,
    before: &KnownService,
    now: &KnownService,
) -> Option<Arc<ServiceLabels>> {
    let labels = before.labels.as_ref()?;
    let may_change = labels.dynamic || before.stale_labels.is_some();
    let is_due = may_change && (cycle.is_whole || before.failed.is_some());
    let same = !is_due
        && Arc::ptr_eq(&before.declared, &now.declared)
        && before.application.parameters == now.application.parameters;
    same.then(|| Arc::clone(labels))
}

fn finished(
    cycle: &Cycle<'_>,
    service: &KnownService,
    labels: &ServiceLabels,
    parts: Parts,
    before: Option<&KnownService>,
    probe: Option<&Probe>,
) -> Read {
    let read = service.read.as_deref();
    let is_new = before.is_none() && cycle.before.is_some();
    let mut pending_read = settling::pending_read(
        &service.info,
        &parts.partitions,
        &parts.statuses,
        read,
        is_new,
    );
    if pending_read.is_none() {
        let is_draining = parts.resolved.values().any(|of| !of.drained.is_empty());
        let is_unread = parts.unread.values().any(|of| of.retry_at.is_none());
        let why = match (parts.stale.is_some() || is_unread, is_draining) {
            (true, _) => Some("calls fail"),
            (false, true) => Some("an instance is about to close"),
            (false, false) => None,
        };
        pending_read = why.map(|why| settling::counted(why, read, false));
    }
    let baseline = probe.and_then(|probe| probe.baseline(&service.name));
    // Between complete cycles there is no probe; the earlier result still counts.
    let kept = read.and_then(|read| read.baseline.clone());
    let description = service.described(labels, parts.partitions);
    Read {
        description: match read {
            Some(read) if *read.description == description => Arc::clone(&read.description),
            _ => Arc::new(description),
        },
        refresh_at: (parts.unread.values().filter_map(|failed| failed.retry_at))
            .fold(cycle.refresh_at(&service.name), Instant::min),
        baseline: if cycle.is_whole { baseline } else { kept },
        resolved: parts.resolved,
        pending_read,
        stale: parts.stale,
        unread: parts.unread,
    }
}

/// Applies the current labels to the partitions and replicas that were read before.
fn relabel(service: &mut KnownService, labels: &ServiceLabels) {
    let Some(read) = service.read.clone() else {
        return;
    };
    let description = service.described(labels, read.description.partitions.clone());
    if description != *read.description {
        service.read = Some(Arc::new(Read {
            description: Arc::new(description),
            ..Read::clone(&read)
        }));
    }
}

pub(crate) fn service_id(info: &Service) -> String {
    match info.id.is_empty() {
        true => id_of(&info.name),
        false => info.id.clone(),
    }
}
