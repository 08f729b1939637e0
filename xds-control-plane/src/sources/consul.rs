//! Consul: the instances of all services in all datacenters, and the settings of all clusters under a key.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use discovery_consul::client::{
    ConsulClient, ConsulErrorKind, FollowOptions, Followed, Follower, HealthStatus, KvPair, Query,
};
use discovery_consul::watch::{
    ConsulWatch, DatacenterState, ServiceInstance, ServiceState, WatchOptions, WatchState,
};
use tokio::sync::watch;
use tokio::time::{Instant, sleep, sleep_until};

use super::reading::Reading;
use crate::translate::{Catalog, CatalogService, Defaults, Instance, UNLISTED};

/// The time limit for the first complete read of a large datacenter that responds.
const FIRST_WHOLE: Duration = Duration::from_secs(60);

/// The time after which missing settings are read once more.
const SECOND_LOOK: Duration = Duration::from_secs(5);

/// The options of the Consul source.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ConsulSourceOptions {
    /// The options of the watch, and the watched datacenters.
    pub watch: WatchOptions,
    /// The key with the settings of all clusters. `None` for the built-in settings. Default:
    /// `envoy/defaultSettings`.
    pub defaults_key: Option<String>,
    /// True to serve instances with a warning too. Default: false.
    pub include_warning: bool,
    /// True to use the `wan` address of instances in other datacenters, if they have one. Default: true.
    pub wan_addresses: bool,
    /// The time for which the first result waits for failing other datacenters, and for their list if that
    /// fails. A datacenter that responds and is still being read is waited for up to 60 s, if that is
    /// longer. Datacenters that are not read by then are unknown: resources served before stay. Default: 5
    /// s.
    pub patience: Duration,
}

impl Default for ConsulSourceOptions {
    fn default() -> Self {
        Self {
            watch: WatchOptions::default(),
            defaults_key: Some("envoy/defaultSettings".to_owned()),
            include_warning: false,
            wan_addresses: true,
            patience: Duration::from_secs(5),
        }
    }
}

/// Follows the catalog while it is polled.
pub(super) async fn follow_catalog(
    client: ConsulClient,
    options: ConsulSourceOptions,
    published: watch::Sender<Reading<Catalog>>,
) {
    let watch = ConsulWatch::start(client, options.watch.clone());
    let mut states = watch.states();
    let mut reader = CatalogReader::new(options);
    let begun = Instant::now();
    let patience = [
        reader.options.patience,
        reader.options.patience.max(FIRST_WHOLE),
    ];
    loop {
        let state = Arc::clone(&states.borrow_and_update());
        let waited = begun.elapsed();
        published.send_if_modified(|reading| reader.take(&state, waited, reading));
        let next = patience.into_iter().find(|patience| *patience > waited);
        tokio::select! {
            changed = states.changed() => if changed.is_err() { return },
            () = sleep_until(begun + next.unwrap_or_default()), if next.is_some() => {}
        }
    }
}

/// A service in a datacenter as the watch knows it, and its instances.
type Read = (Arc<ServiceState>, Arc<[Instance]>);

/// Makes catalogs from the state of a watch. Unchanged parts stay identical.
struct CatalogReader {
    options: ConsulSourceOptions,
    /// The instances, by datacenter and name.
    instances: BTreeMap<(Arc<str>, Arc<str>), Read>,
    services: BTreeMap<Arc<str>, Arc<CatalogService>>,
    unlisted: Option<Arc<CatalogService>>,
}

impl CatalogReader {
    fn new(options: ConsulSourceOptions) -> Self {
        Self {
            options,
            instances: BTreeMap::new(),
            services: BTreeMap::new(),
            unlisted: None,
        }
    }

    /// Records the state. Returns true if it should be published.
    fn take(
        &mut self,
        state: &WatchState,
        waited: Duration,
        reading: &mut Reading<Catalog>,
    ) -> bool {
        let is_first = reading.value.is_none();
        if let Some(failure) = not_ready(state) {
            let own = state.datacenters.first();
            let is_being_read = own.is_some_and(|own| !own.is_complete && own.failure.is_none());
            return match is_being_read || (own.is_none() && state.failure.is_none()) {
                true => reading.waits(failure),
                false => reading.failed(failure),
            };
        }
        if is_first && let Some(reason) = still_waited_for(state, waited, self.options.patience) {
            return reading.waits(reason);
        }
        let catalog = self.catalog(state);
        let mut problems: Vec<_> =
            state
                .datacenters
                .iter()
                .flat_map(|datacenter| {
                    let name = &datacenter.datacenter;
                    let failure = datacenter
                        .failure
                        .iter()
                        .map(move |why| format!("{name}: {why}"));
                    let held = (datacenter.held > 0).then(|| {
                format!("{name}: {} missing instances are kept until a second poll has confirmed \
                    it", datacenter.held)
            });
                    let hidden = datacenter.is_hidden.then(|| {
                        format!(
                            "{name}: the token seems to have lost \
                its rights; nothing is removed"
                        )
                    });
                    let incomplete = (!datacenter.is_complete)
                        .then(|| format!("{name} was not read yet; its services stay unchanged"));
                    let unread = datacenter
                        .unread
                        .iter()
                        .take(10)
                        .map(move |(service, why)| format!("{name}: {service}: {why}"));
                    failure
                        .chain(incomplete)
                        .chain(held)
                        .chain(hidden)
                        .chain(unread)
                })
                .collect();
        problems.extend(state.failure.iter().map(ToString::to_string));
        let own = state.datacenters.first();
        let is_news = reading.read(catalog, problems);
        reading.last_ok = own.and_then(|own| own.last_ok);
        // What is known of it stays; that it is not the newest is to be seen.
        if let Some(failure) = own.and_then(|own| own.failure.clone()) {
            return reading.failed(failure) || is_news;
        }
        is_news
    }

    fn catalog(&mut self, state: &WatchState) -> Catalog {
        let own = state.own.clone().unwrap_or_else(|| "".into());
        let before = std::mem::take(&mut self.instances);
        let mut services: BTreeMap<Arc<str>, CatalogService> = BTreeMap::new();
        for datacenter in &state.datacenters {
            let zone = &datacenter.datacenter;
            for name in &datacenter.unknown {
                let entry = services.entry(Arc::clone(name)).or_default();
                entry.unknown.insert(Arc::clone(zone));
            }
            for (name, service) in &datacenter.services {
                let key = (Arc::clone(zone), Arc::clone(name));
                let instances = match before.get(&key) {
                    Some((known, instances)) if Arc::ptr_eq(known, service) => {
                        Arc::clone(instances)
                    }
                    _ => self.instances_of(service, *zone != own),
                };
                self.instances
                    .insert(key, (Arc::clone(service), Arc::clone(&instances)));
                let entry = services.entry(Arc::clone(name)).or_default();
                entry.datacenters.insert(Arc::clone(zone), instances);
            }
        }
        let unread = unread_datacenters(state);
        for zone in &unread {
            for service in services.values_mut() {
                // Some of a datacenter may have been read.
                if !service.datacenters.contains_key(zone) && !service.unknown.contains(zone) {
                    service.unread.insert(Arc::clone(zone));
                }
            }
        }
        if self
            .unlisted
            .as_ref()
            .is_none_or(|known| known.unread != unread)
        {
            self.unlisted = (!unread.is_empty()).then(|| {
                Arc::new(CatalogService {
                    unread,
                    ..CatalogService::default()
                })
            });
        }
        let renewed = services.into_iter().map(|(name, service)| {
            let known = self.services.get(&name);
            let same = known.filter(|known| is_same(known, &service)).cloned();
            (name, same.unwrap_or_else(|| Arc::new(service)))
        });
        self.services = renewed.collect();
        Catalog {
            own,
            services: self.services.clone(),
            unlisted: self.unlisted.clone(),
        }
    }

    fn instances_of(&self, service: &ServiceState, is_far: bool) -> Arc<[Instance]> {
        let instances = service.instances.iter();
        instances
            .map(|instance| self.instance(instance, is_far))
            .collect()
    }

    fn instance(&self, instance: &ServiceInstance, is_far: bool) -> Instance {
        let wan = instance
            .wan
            .as_ref()
            .filter(|_| is_far && self.options.wan_addresses);
        let (address, port) = match wan {
            Some(wan) => (
                wan.address.as_str(),
                if wan.port == 0 {
                    instance.port
                } else {
                    wan.port
                },
            ),
            None => (instance.address.as_str(), instance.port),
        };
        Instance {
            node: instance.node.as_str().into(),
            id: instance.id.as_str().into(),
            address: address.into(),
            port,
            tags: instance
                .tags
                .iter()
                .map(|tag| tag.as_str().into())
                .collect(),
            is_live: match instance.status {
                HealthStatus::Passing => true,
                HealthStatus::Warning => self.options.include_warning,
                _ => false,
            },
        }
    }
}

fn is_same(one: &CatalogService, other: &CatalogService) -> bool {
    let is_known_the_same = one.unknown == other.unknown && one.unread == other.unread;
    let (one, other) = (&one.datacenters, &other.datacenters);
    is_known_the_same
        && one.len() == other.len()
        && one.iter().all(|(datacenter, instances)| {
            let same = other.get(datacenter);
            same.is_some_and(|same| Arc::ptr_eq(same, instances))
        })
}

/// Returns the reason why the known state does not suffice for a first result.
fn not_ready(state: &WatchState) -> Option<Arc<str>> {
    let Some(own) = state.datacenters.first() else {
        let why = state.failure.clone();
        return Some(why.unwrap_or_else(|| "the datacenter of the agent is not known yet".into()));
    };
    if !own.is_complete {
        return Some(still_reading(own));
    }
    if own.is_blank && own.services.is_empty() {
        let advice = ConsulErrorKind::Denied.advice();
        return Some(
            format!(
                "{} shows no service, not even itself: {advice}",
                own.datacenter
            )
            .into(),
        );
    }
    None
}

/// Returns the reason why a first result must wait for some datacenters: clusters would be published
/// without their distant endpoints, which may be the only ones.
fn still_waited_for(state: &WatchState, waited: Duration, patience: Duration) -> Option<Arc<str>> {
    if !state.are_listed && waited < patience {
        let why = state.failure.clone();
        return Some(
            why.unwrap_or_else(|| "it is not known yet which datacenters there are".into()),
        );
    }
    let mut unread = state.datacenters.iter().filter(|dc| !dc.is_complete);
    let waited_for = unread.find(|dc| match dc.failure {
        // One that has failed just now may respond to a retry.
        Some(_) => waited < patience,
        None => waited < patience.max(FIRST_WHOLE),
    });
    waited_for.map(|dc| still_reading(dc))
}

/// Returns the datacenters that may have unread instances.
fn unread_datacenters(state: &WatchState) -> BTreeSet<Arc<str>> {
    let incomplete = state.datacenters.iter().filter(|dc| !dc.is_complete);
    let incomplete = incomplete.map(|dc| Arc::clone(&dc.datacenter));
    let unlisted = (!state.are_listed).then(|| UNLISTED.into());
    incomplete.chain(unlisted).collect()
}

/// Returns the reason why a datacenter is not known yet, with its correction.
fn still_reading(datacenter: &DatacenterState) -> Arc<str> {
    let name = &datacenter.datacenter;
    if let Some(failure) = &datacenter.failure {
        return format!("{name}: {failure}; which datacenter is the own one is said by `Datacenter`, and which others are watched by `Datacenters`").into();
    }
    let unread = datacenter.unread.iter().next();
    let why = unread.map(|(service, why)| {
        let more = datacenter.unread.len() - 1;
        format!(": {service}: {why}, and {more} others")
    });
    format!("{name} is still being read{}", why.unwrap_or_default()).into()
}

/// Follows the key with the settings while it is polled.
///
/// A missing key means the built-in settings. A key that disappears means them after a second read has
/// confirmed it, since this changes every cluster. After an unusable value, or a failed read, the last
/// known good settings stay.
pub(super) async fn follow_defaults(
    client: ConsulClient,
    follow: FollowOptions,
    key: String,
    published: watch::Sender<Reading<Defaults>>,
) {
    let shown = key.clone();
    let asking = client.clone();
    let mut follower = Follower::new(follow, Query::new(), move |query| {
        let (client, key) = (asking.clone(), key.clone());
        async move { client.kv_get(&key, &query).await }
    });
    loop {
        let followed = follower.next().await;
        let is_gone = follower.last().is_some_and(|last| last.is_none());
        let is_otherwise = |reading: &Reading<Defaults>| {
            let known = reading.value.as_deref();
            known.is_some_and(|known| *known != Defaults::default())
        };
        if is_gone && is_otherwise(&published.borrow()) {
            let doubt = format!(
                "{shown}: it is missing; it is removed when a second poll has confirmed that"
            );
            published.send_if_modified(|reading| reading.failed(doubt));
            sleep(SECOND_LOOK).await;
            if !matches!(client.kv_get(&shown, &Query::new()).await, Ok(answer) if answer.value.is_none())
            {
                // It is back, which the follower reports, or it is unknown.
                continue;
            }
        }
        published.send_if_modified(|reading| match followed {
            Followed::Changed { answer, .. } => {
                take_defaults(reading, answer.value.as_ref().as_ref(), &shown)
            }
            Followed::Failed(error)
                if error.kind() == ConsulErrorKind::Denied && reading.value.is_none() =>
            {
                // It is unknown when that will be corrected, and the built-in settings are good.
                let problem = format!(
                    "{shown}: {}; the built-in settings apply",
                    error.explained()
                );
                reading.read(Defaults::default(), vec![problem])
            }
            Followed::Failed(error) => reading.failed(format!("{shown}: {}", error.explained())),
            // As before, after a failure perhaps.
            _ => match follower.last() {
                Some(last) => take_defaults(reading, (*last).as_ref(), &shown),
                None => false,
            },
        });
    }
}

fn take_defaults(reading: &mut Reading<Defaults>, pair: Option<&KvPair>, key: &str) -> bool {
    let Some(pair) = pair else {
        return reading.read(Defaults::default(), Vec::new());
    };
    match Defaults::from_json(&pair.value) {
        Ok((defaults, problems)) => {
            let problems = problems
                .into_iter()
                .map(|problem| format!("{key}: {problem}"));
            reading.read(defaults, problems.collect())
        }
        Err(why) => {
            let last = reading.value.as_deref().cloned();
            let applies = if last.is_some() {
                "those that were last known good"
            } else {
                "the built-in settings"
            };
            let problem = format!("{key}: {why}; {applies} apply");
            reading.read(last.unwrap_or_default(), vec![problem])
        }
    }
}
