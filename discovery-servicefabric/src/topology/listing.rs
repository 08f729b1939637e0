//! Applications, their types, and the services of those whose types have labels.

use std::collections::{BTreeMap, HashMap};
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use discovery_core::DiscoverError;
use futures_util::FutureExt;
use proxy_model::{Problem, pointer_to};

use super::memory::{Failed, KnownApplication, KnownList, KnownType, Memory, TypeKey, Unnameable};
use super::settling::Cycle;
use super::{Topology, rejected, type_key};
use crate::cache::StaleAnswer;
use crate::calls::{CallError, CallErrorKind, ClusterCalls};
use crate::extension::{DeclaredTypes, Parameters};
use crate::id::{check_name, id_of};
use crate::model::{Application, Parameter};

/// The application that is the cluster itself.
const SYSTEM: &str = "fabric:/System";

/// The code of a part that the gateway forbids to read.
pub(crate) const DENIED: &str = "denied";

/// The code of a part that was not read in time.
pub(super) const TIMED_OUT: &str = "timed_out";

impl Topology {
    /// Lists the applications, and reads those of their types that are due.
    pub(super) async fn list_applications(
        &self,
        cycle: &Cycle<'_>,
        memory: &mut Memory,
    ) -> Result<(), DiscoverError> {
        let observed = self.calls.observe();
        // The types after the applications, so that they cannot lack one that an application already has.
        let applications = self
            .gated(observed.applications())
            .await
            .map_err(rejected)?;
        memory.is_live = observed.stale().is_none();
        let types = self.gated(observed.application_types()).await;
        memory.stale = observed.stale();

        let defaults = match &types {
            Ok(types) => types
                .iter()
                .map(|of| (type_key(&of.name, &of.version), &of.default_parameter_list))
                .collect(),
            Err(_) => HashMap::new(),
        };
        let mut applications: Vec<Application> = applications
            .into_iter()
            .filter(|application| !application.name.is_empty() && !is_system(&application.name))
            .collect();
        memory.unnameable = without_unnameable(&mut applications, |application| &application.name);
        let mut known_types = BTreeMap::new();
        for application in &applications {
            let key = type_key(&application.type_name, &application.type_version);
            if known_types.contains_key(&key) {
                continue;
            }
            let before = memory.types.get(&key);
            let known = match (defaults.get(&key), before) {
                (Some(defaults), before) => with_defaults(before, defaults),
                (None, Some(before)) => KnownType {
                    stale: types.as_ref().err().map(|error| cycle.stale(None, error)),
                    ..copy(before)
                },
                (None, None) => KnownType {
                    failed: Some(unknown_type(&key, types.as_ref().err())),
                    ..KnownType::default()
                },
            };
            known_types.insert(key, Arc::new(known));
        }
        memory.types = known_types;
        self.read_types(cycle, memory).await;

        let mut by_name = BTreeMap::new();
        for application in applications {
            let key = type_key(&application.type_name, &application.type_version);
            let defaults: &[Parameter] =
                memory.types.get(&key).map_or(&[], |known| &known.defaults);
            let before = memory.applications.get(application.name.as_str());
            let known = known_application(application, key, defaults, before);
            by_name.entry(Arc::clone(&known.name)).or_insert(known);
        }
        memory.applications = by_name;
        Ok(())
    }

    /// Reads the service types of the application types that are due.
    async fn read_types(&self, cycle: &Cycle<'_>, memory: &mut Memory) {
        let due = memory.types.iter().filter(|(_, known)| {
            known.failed.is_none()
                && (known.declared.is_none() || known.refresh_at.is_none_or(|at| cycle.now >= at))
        });
        let due = due.map(|(key, known)| (key.clone(), Arc::clone(known)));
        let read = self
            .all(due.collect(), |(key, known)| async move {
                let read = self.read_type(cycle, &key, &known).await;
                (key, Arc::new(read))
            })
            .await;
        memory.types.extend(read);
    }

    async fn read_type(&self, cycle: &Cycle<'_>, key: &TypeKey, before: &KnownType) -> KnownType {
        let observed = self.calls.observe();
        let read = async {
            let types = observed.service_types(&key.0, &key.1).await?;
            self.labels
                .declared(&observed, &key.0, &key.1, &types)
                .await
        };
        // This may be code of others. Its panic is the trouble of the type alone.
        let read = AssertUnwindSafe(self.gated(read)).catch_unwind().await;
        let panicked = |_| {
            Err(CallError::new(
                CallErrorKind::Failed,
                "reading labels",
                "it panicked",
            ))
        };
        match read.unwrap_or_else(panicked) {
            Ok(declared) => {
                let stale = observed.stale();
                let due = cycle.refresh_at(&format!("{}:{}", key.0, key.1));
                KnownType {
                    declared: Some(unchanged_parts(declared, before.declared.as_deref())),
                    read_at: Some(stale.as_ref().map_or(cycle.now, |stale| stale.at)),
                    refresh_at: stale.is_none().then_some(due),
                    stale: StaleAnswer::older(stale, before.stale.clone()),
                    failed: None,
                    defaults: Arc::clone(&before.defaults),
                }
            }
            // A provisioned version is immutable: the earlier data is still correct.
            Err(error) if before.declared.is_some() => KnownType {
                stale: Some(cycle.stale(before.read_at, &error)),
                refresh_at: None,
                ..copy(before)
            },
            Err(error) => {
                let what = format!("the service types of `{}` {}", key.0, key.1);
                KnownType {
                    failed: Some(unreadable("", &what, &error)),
                    ..copy(before)
                }
            }
        }
    }

    /// Lists the services of the applications that are due.
    pub(super) async fn list_services(&self, cycle: &Cycle<'_>, memory: &mut Memory) {
        let hurrying: std::collections::HashSet<&str> = memory
            .services
            .values()
            .filter(|known| known.polls_fast())
            .map(|known| &*known.application.name)
            .collect();
        let mut work = Vec::new();
        let mut lists = BTreeMap::new();
        for (name, application) in &memory.applications {
            let before = memory.lists.get(name);
            let Some(known) = memory.types.get(&application.type_key) else {
                continue;
            };
            let Some(declared) = &known.declared else {
                if let Some(problem) = &known.failed {
                    let mut list = failed_list(before, problem.clone().at(name));
                    // Types are read when everything is listed; until then there is nothing to hurry for.
                    if let Some(failed) = &mut list.failed {
                        failed.in_a_row = u32::MAX;
                    }
                    lists.insert(Arc::clone(name), Arc::new(list));
                }
                continue;
            };
            if declared.is_empty() {
                continue;
            }
            let is_due = cycle.is_whole
                || before.is_none_or(|list| list.failed.is_some())
                || hurrying.contains(&**name);
            match before.filter(|_| !is_due) {
                Some(before) => {
                    lists.insert(Arc::clone(name), Arc::clone(before));
                }
                None => work.push((
                    Arc::clone(application),
                    Arc::clone(declared),
                    before.cloned(),
                )),
            }
        }
        let read = self
            .all(work, |(application, declared, before)| async move {
                self.list_of(&application, &declared, before.as_ref()).await
            })
            .await;
        lists.extend(read.into_iter().flatten());
        memory.lists = lists;
    }

    /// Returns the services of one application. `None` if it no longer exists.
    async fn list_of(
        &self,
        application: &Arc<KnownApplication>,
        declared: &DeclaredTypes,
        before: Option<&Arc<KnownList>>,
    ) -> Option<(Arc<str>, Arc<KnownList>)> {
        let observed = self.calls.observe();
        let list = match self.limited(observed.services(&application.id)).await {
            Ok(mut services) => {
                services.retain(|service| {
                    !service.name.is_empty()
                        && !is_system(&service.name)
                        && declared.contains_key(&service.type_name)
                });
                services.sort_by(|a, b| a.name.cmp(&b.name));
                services.dedup_by(|a, b| a.name == b.name);
                let unnameable = without_unnameable(&mut services, |service| &service.name);
                KnownList {
                    services: services.into_iter().map(Arc::new).collect(),
                    unnameable,
                    failed: None,
                    stale: observed.stale(),
                }
            }
            Err(error) if error.is_gone() => return None,
            Err(error) => {
                let what = format!("the services of `{}`", application.name);
                let problem = unreadable("", &what, &error).at(&application.name);
                failed_list(before, problem)
            }
        };
        Some((Arc::clone(&application.name), Arc::new(list)))
    }
}

/// A problem of an application.
trait At {
    fn at(self, application: &str) -> Self;
}

impl At for Problem {
    fn at(mut self, application: &str) -> Self {
        self.pointer = pointer_to("/Applications", application);
        self
    }
}

/// Returns the earlier list, with the reason why the list could not be read now.
fn failed_list(before: Option<&Arc<KnownList>>, problem: Problem) -> KnownList {
    let failed = before.and_then(|before| before.failed.as_ref());
    KnownList {
        failed: Some(Failed::after(failed, problem)),
        stale: None,
        ..before
            .map(|before| KnownList::clone(before))
            .unwrap_or_default()
    }
}

/// Removes entities that cannot be requested by their name: the gateway would return another one.
fn without_unnameable<T>(all: &mut Vec<T>, name: impl Fn(&T) -> &str) -> Vec<Unnameable> {
    let mut rejected = Vec::new();
    all.retain(|one| match check_name(name(one)) {
        Ok(()) => true,
        Err(error) => {
            rejected.push((name(one).into(), error));
            false
        }
    });
    rejected.sort_by(|(a, _): &Unnameable, (b, _)| a.cmp(b));
    rejected
}

fn is_system(name: &str) -> bool {
    name.strip_prefix(SYSTEM)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Returns the type with the newly listed defaults.
fn with_defaults(before: Option<&Arc<KnownType>>, defaults: &[Parameter]) -> KnownType {
    let same = before.filter(|before| *before.defaults == *defaults);
    KnownType {
        defaults: same.map_or_else(|| defaults.into(), |before| Arc::clone(&before.defaults)),
        ..before.map(|before| copy(before)).unwrap_or_default()
    }
}

/// Returns the same type, without results of this cycle.
fn copy(before: &KnownType) -> KnownType {
    KnownType {
        defaults: Arc::clone(&before.defaults),
        declared: before.declared.clone(),
        read_at: before.read_at,
        refresh_at: before.refresh_at,
        failed: None,
        stale: None,
    }
}

fn known_application(
    application: Application,
    type_key: TypeKey,
    defaults: &[Parameter],
    before: Option<&Arc<KnownApplication>>,
) -> Arc<KnownApplication> {
    let parameters = Parameters::new(&application.parameters, defaults);
    let id = match application.id.is_empty() {
        true => id_of(&application.name),
        false => application.id,
    };
    match before {
        Some(before)
            if before.type_key == type_key
                && before.id == id
                && *before.parameters == parameters =>
        {
            Arc::clone(before)
        }
        _ => Arc::new(KnownApplication {
            name: application.name.into(),
            id,
            type_key,
            parameters: Arc::new(parameters),
        }),
    }
}

/// `declared`, sharing with `before` what did not change, so that it can be compared by address.
fn unchanged_parts(
    mut declared: DeclaredTypes,
    before: Option<&DeclaredTypes>,
) -> Arc<DeclaredTypes> {
    for (name, labels) in &mut declared {
        let known = before.and_then(|before| before.get(name));
        if let Some(known) = known.filter(|known| *known == labels) {
            *labels = Arc::clone(known);
        }
    }
    Arc::new(declared)
}

fn unknown_type(key: &TypeKey, error: Option<&CallError>) -> Problem {
    match error {
        Some(error) => unreadable("", "the types of the applications", error),
        None => {
            let message = format!("the cluster does not list the type `{}` {}", key.0, key.1);
            Problem::error("", "unknown_application_type", message)
        }
    }
}

/// Returns the problem of something that could not be read.
pub(super) fn unreadable(pointer: &str, what: &str, error: &CallError) -> Problem {
    let message = format!("{what} could not be read: {}", error.chain());
    let code = match error.kind() {
        CallErrorKind::Denied => DENIED,
        CallErrorKind::TimedOut => TIMED_OUT,
        _ => "not_read",
    };
    Problem::error(pointer, code, message)
}
