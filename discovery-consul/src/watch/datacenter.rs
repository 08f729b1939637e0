//! One datacenter: two blocking queries detect the changes, and the changed services are read.

use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;
use std::time::Duration;

use discovery_core::{Backoff, Timestamp};
use futures_util::future::BoxFuture;
use futures_util::stream::{self, BoxStream, FuturesUnordered};
use futures_util::{FutureExt, StreamExt};
use tokio::sync::{Notify, Semaphore, watch};
use tokio::time::{Instant, sleep_until};

use super::guard::{Guard, Sight};
use super::instance::{ServiceInstance, instances_of};
use super::options::WatchOptions;
use super::read::believable;
use super::resync::Resync;
use super::schedule::ReadSchedule;
use super::state::{DatacenterState, ServiceState, Services};
use super::tables::{CheckTable, ServiceTable};
use super::unread::{Completion, UnreadServices};
use crate::client::{
    Answer, Check, ConsulClient, ConsulError, ConsulErrorKind, Followed, Follower, Query,
    ServiceTags,
};

/// The target of log lines.
const TARGET: &str = "discovery::consul";

/// The context of one datacenter's watch.
#[derive(Clone)]
pub(super) struct Watching {
    pub(super) client: ConsulClient,
    pub(super) options: Arc<WatchOptions>,
    pub(super) datacenter: Arc<str>,
    /// The reads of all datacenters.
    pub(super) pool: Arc<Semaphore>,
    /// The notification of changes.
    pub(super) changed: Arc<Notify>,
}

/// The reason why a query fails.
#[derive(Debug, Clone, PartialEq)]
struct Failure {
    reason: Arc<str>,
    /// True if the agent rejects the token.
    is_rejected: bool,
}

/// The watch of one datacenter, between two events.
struct Watch {
    watching: Watching,
    services: ServiceTable,
    checks: CheckTable,
    schedule: ReadSchedule,
    resync: Resync,
    guard: Guard,
    /// The services as the servers describe them.
    said: Services,
    /// The reason why each of the two queries fails.
    failures: [Option<Failure>; 2],
    unread: UnreadServices,
    was_listed: bool,
    /// The services of the first list that no read has attempted yet. The set only shrinks: in a datacenter
    /// with constant changes there is always something to read.
    untried: HashSet<Arc<str>>,
    /// True for each of the two queries if it has ended once, with or without success.
    have_ended: [bool; 2],
    completion: Completion,
    last_ok: Option<Timestamp>,
    /// True if there are changes to publish.
    is_dirty: bool,
    /// True if no read was pending at the last publication.
    was_settled: bool,
    published: watch::Sender<Arc<DatacenterState>>,
}

/// The two queries.
#[derive(Clone, Copy)]
enum Source {
    Services = 0,
    Checks = 1,
}

type Read = (Arc<str>, Result<Vec<ServiceInstance>, ConsulError>);

/// Watches a datacenter while it is polled.
pub(super) async fn watch(watching: Watching, published: watch::Sender<Arc<DatacenterState>>) {
    let mut services = follow_services(&watching);
    let mut checks = follow_checks(&watching);
    let mut reads: FuturesUnordered<BoxFuture<'static, Read>> = FuturesUnordered::new();
    let mut watch = Watch::new(watching, published);
    loop {
        while let Some(name) = watch.next_read() {
            reads.push(watch.watching.read(name).boxed());
        }
        watch.publish();
        let due = watch.next_due();
        tokio::select! {
            Some(followed) = services.next() => watch.services_followed(followed),
            Some(followed) = checks.next() => watch.checks_followed(followed),
            Some((name, outcome)) = reads.next(), if !reads.is_empty() => watch.read(&name, outcome),
            () = async { sleep_until(due.unwrap_or_else(Instant::now)).await }, if due.is_some() => watch.due(),
        }
    }
}

fn follow_services(watching: &Watching) -> BoxStream<'static, Followed<ServiceTags>> {
    let client = watching.client.clone();
    let token = watching.client.clone();
    let follower = Follower::new(
        watching.options.follow.clone(),
        watching.query(),
        move |query| {
            let client = client.clone();
            async move {
                let ask = |query| {
                    let client = client.clone();
                    async move { client.services(&query).await }
                };
                believable(query, ServiceTags::is_empty, ask).await
            }
        },
    )
    .woken_by(move || token.token_changed());
    followed(follower)
}

fn follow_checks(watching: &Watching) -> BoxStream<'static, Followed<Vec<Check>>> {
    let client = watching.client.clone();
    let token = watching.client.clone();
    let follower = Follower::new(
        watching.options.follow.clone(),
        watching.query(),
        move |query| {
            let client = client.clone();
            async move {
                let ask = |query| {
                    let client = client.clone();
                    async move { client.checks(&query).await }
                };
                believable(query, Vec::is_empty, ask).await
            }
        },
    )
    .woken_by(move || token.token_changed());
    followed(follower)
}

/// Follows a query in a stream. A call of `next` would be dropped when other events happen, but a query
/// must stay in flight.
fn followed<T: PartialEq + Send + Sync + 'static>(
    follower: Follower<T>,
) -> BoxStream<'static, Followed<T>> {
    stream::unfold(follower, |mut follower| async move {
        Some((follower.next().await, follower))
    })
    .boxed()
}

impl Watching {
    fn query(&self) -> Query {
        Query::new()
            .in_datacenter(Arc::clone(&self.datacenter))
            .with_consistency(self.options.consistency)
    }

    /// Reads one service when it is its turn.
    fn read(&self, name: Arc<str>) -> impl Future<Output = Read> + Send + 'static {
        let this = self.clone();
        async move {
            let _turn = this.pool.acquire().await.expect("nobody closes it");
            let ask = |query| {
                let (client, name) = (this.client.clone(), Arc::clone(&name));
                async move { client.health_service(&name, &query).await }
            };
            let answer = believable(this.query(), Vec::is_empty, ask).await;
            let instances = answer.map(|answer: Answer<Vec<_>>| instances_of(answer.value));
            (name, instances)
        }
    }

    /// One datacenter may hang, and must leave some reads to the others.
    fn most_reads(&self) -> usize {
        (self.options.reads / 2).max(1)
    }
}

impl Watch {
    fn new(watching: Watching, published: watch::Sender<Arc<DatacenterState>>) -> Self {
        Self {
            services: ServiceTable::default(),
            checks: CheckTable::default(),
            schedule: ReadSchedule::default(),
            resync: Resync::new(watching.options.resync_gap),
            guard: Guard::new(watching.options.shrink),
            said: Services::new(),
            failures: [None, None],
            unread: UnreadServices::default(),
            was_listed: false,
            untried: HashSet::new(),
            have_ended: [false, false],
            completion: Completion::new(watching.options.unread_grace),
            last_ok: None,
            is_dirty: true,
            was_settled: true,
            published,
            watching,
        }
    }

    fn services_followed(&mut self, followed: Followed<ServiceTags>) {
        match followed {
            Followed::Changed { answer, is_anew } => {
                let touched = self.services.replace(answer.value);
                self.note_unaddressable();
                if is_anew && self.was_listed {
                    self.resync.request_after_gap(Instant::now());
                    self.guard.doubt();
                }
                if !self.was_listed {
                    let names = self.services.names();
                    self.untried = names.filter(|name| is_addressable(name)).collect();
                }
                self.was_listed = true;
                self.touch(touched);
                self.answered(Source::Services);
            }
            Followed::Woken { meta, is_anew } => {
                // An instance of a known service: if it has a check, that shows which.
                match meta.index.filter(|_| !is_anew) {
                    Some(index) => self.resync.request_unless_explained(index, Instant::now()),
                    None => {
                        self.resync.request_after_gap(Instant::now());
                        if is_anew {
                            self.guard.doubt();
                        }
                    }
                }
                self.answered(Source::Services);
            }
            Followed::Quiet => self.answered(Source::Services),
            Followed::Failed(error) => self.failed(Source::Services, &error),
        }
    }

    fn checks_followed(&mut self, followed: Followed<Vec<Check>>) {
        match followed {
            Followed::Changed { answer, is_anew } => {
                if is_anew && self.have_ended[Source::Checks as usize] {
                    self.guard.doubt();
                }
                let mut touched = self.checks.replace(&answer.value);
                let on_nodes: Vec<_> = self.checks.services_on(&touched.nodes).collect();
                let known_there = self.services_on(&touched.nodes);
                let is_empty = touched.is_empty();
                if let Some(index) = answer.meta.index {
                    self.resync.explained(&touched, index);
                }
                touched.services.extend(on_nodes);
                touched.services.extend(known_there);
                if is_empty {
                    self.resync.request_after_gap(Instant::now());
                }
                self.touch(touched.services);
                self.answered(Source::Checks);
            }
            Followed::Woken { is_anew, .. } => {
                if is_anew {
                    self.guard.doubt();
                }
                self.resync.request_after_gap(Instant::now());
                self.answered(Source::Checks);
            }
            Followed::Quiet => self.answered(Source::Checks),
            Followed::Failed(error) => self.failed(Source::Checks, &error),
        }
    }

    /// The services that are known to be on these nodes, with or without checks of their own.
    fn services_on(&self, nodes: &BTreeSet<String>) -> Vec<Arc<str>> {
        if nodes.is_empty() {
            return Vec::new();
        }
        let on = |service: &ServiceState| {
            let mut instances = service.instances.iter();
            instances.any(|instance| nodes.contains(&instance.node))
        };
        let known = self.said.iter().filter(|(_, service)| on(service));
        known.map(|(name, _)| Arc::clone(name)).collect()
    }

    fn touch(&mut self, names: impl IntoIterator<Item = Arc<str>>) {
        for name in names.into_iter().filter(|name| is_addressable(name)) {
            self.schedule.touch(name);
        }
    }

    /// Records the listed services that no URL can name.
    fn note_unaddressable(&mut self) {
        for name in UNADDRESSABLE.map(Arc::<str>::from) {
            if self.services.lists(&name) {
                let reason = "no URL can contain this name: give the service another one";
                self.unread.hopeless(&name, reason.into());
            } else {
                self.unread.read(&name);
            }
        }
    }

    fn touch_all(&mut self) {
        let believed = Arc::clone(&self.published.borrow());
        let mut all: BTreeSet<_> = self.services.names().collect();
        all.extend(self.said.keys().cloned());
        all.extend(believed.services.keys().cloned());
        self.touch(all);
    }

    fn answered(&mut self, source: Source) {
        self.have_ended[source as usize] = true;
        self.is_dirty = true;
        self.last_ok = Some(Timestamp::now());
        if self.failures[source as usize].take().is_some() && self.failures == [None, None] {
            let datacenter = &*self.watching.datacenter;
            tracing::info!(target: TARGET, datacenter, "the datacenter answers again");
        }
    }

    fn failed(&mut self, source: Source, error: &ConsulError) {
        self.have_ended[source as usize] = true;
        self.is_dirty = true;
        // Logged once, and not for each attempt.
        if self.failures == [None, None] {
            let datacenter = &*self.watching.datacenter;
            let error = error.explained();
            tracing::warn!(target: TARGET, datacenter, error, "the datacenter does not respond; its \
                last known state is kept");
        }
        self.failures[source as usize] = Some(Failure {
            reason: error.explained().into(),
            is_rejected: error.kind() == ConsulErrorKind::Denied,
        });
    }

    /// Returns the next service to read. During an outage reads would fail too, and services read before
    /// both queries have returned would have to be read again.
    fn next_read(&mut self) -> Option<Arc<str>> {
        let is_away = self.failures.iter().all(Option::is_some);
        let most = self.watching.most_reads();
        (!is_away && self.have_ended == [true, true])
            .then(|| self.schedule.take(most))
            .flatten()
    }

    fn read(&mut self, name: &Arc<str>, outcome: Result<Vec<ServiceInstance>, ConsulError>) {
        let now = Instant::now();
        self.is_dirty |= self.untried.remove(name) && self.untried.is_empty();
        match outcome {
            Ok(instances) => {
                self.last_ok = Some(Timestamp::now());
                self.is_dirty |= self.unread.read(name);
                let is_there = !instances.is_empty();
                // At most after this time, and not all services at once.
                let reread = self.watching.options.reread.mul_f64(between(0.6, 0.98));
                self.schedule.finished(name, is_there.then(|| now + reread));
                self.store(name, instances);
            }
            // The service is not known any more.
            Err(_) if !self.services.lists(name) && !self.said.contains_key(name) => {
                self.is_dirty |= self.unread.read(name);
                self.schedule.finished(name, None);
            }
            Err(error) => {
                let attempts = self.unread.failed(name, error.explained().into());
                let wait = backoff(&self.watching.options, attempts);
                self.is_dirty = true;
                self.schedule.finished(name, Some(now + wait));
            }
        }
    }

    fn store(&mut self, name: &Arc<str>, instances: Vec<ServiceInstance>) {
        if instances.is_empty() {
            // The two come from different responses. If the list is right it stays, and if it is late its
            // next response touches the service again.
            if !self.services.lists(name) {
                self.is_dirty |= self.said.remove(name).is_some();
            }
            return;
        }
        let state = ServiceState { instances };
        if self.said.get(name).is_none_or(|known| **known != state) {
            self.said.insert(Arc::clone(name), Arc::new(state));
            self.is_dirty = true;
        }
    }

    /// Returns the time of the next action that needs no event.
    fn next_due(&self) -> Option<Instant> {
        let dues = [
            self.schedule.next_due(),
            self.resync.due(),
            self.guard.look_at(),
            self.guard.decide_at().filter(|_| !self.is_beginning()),
            self.completion.due(),
        ];
        dues.into_iter().flatten().min()
    }

    fn due(&mut self) {
        let now = Instant::now();
        self.schedule.wake(now);
        if self.resync.take(now) {
            self.touch_all();
        }
        if self.guard.look_at().is_some_and(|at| at <= now) {
            self.guard.look(now);
            self.touch_all();
        }
        // The decision, and whether enough is known, are made at publication.
        let dues = [self.guard.decide_at(), self.completion.due()];
        self.is_dirty |= dues.into_iter().flatten().any(|at| at <= now);
    }

    /// Returns true if publication waits for the rest of a first complete read.
    fn is_beginning(&self) -> bool {
        let is_settled = self.schedule.is_settled();
        !self.completion.is_complete()
            && !self.was_tried()
            && !is_settled
            && self.failures == [None, None]
    }

    /// Returns true if every listed service has been read, or its read has failed.
    fn was_tried(&self) -> bool {
        self.was_listed && self.untried.is_empty()
    }

    /// Number of trusted instances of services that are no longer listed and still to be read.
    fn going(&self, believed: &Services) -> usize {
        let unsettled = self.schedule.unsettled();
        let unlisted = unsettled.filter(|name| !self.services.lists(name));
        unlisted
            .filter(|name| self.said.contains_key(*name))
            .filter_map(|name| believed.get(name))
            .map(|service| service.instances.len())
            .sum()
    }

    /// Publishes the current state if it has changed.
    fn publish(&mut self) {
        let is_settled = self.schedule.is_settled();
        // It checks every service, which is not worth it for reads without changes, nor at the start, which
        // is published as a whole.
        if self.is_beginning() || (!self.is_dirty && is_settled == self.was_settled) {
            return;
        }
        self.is_dirty = false;
        self.was_settled = is_settled;
        let now = Instant::now();
        let unknown = self
            .unread
            .unknown(&self.said, |name| self.services.lists(name));
        if self.was_tried() {
            let is_waited_for = unknown.iter().any(|name| is_addressable(name));
            self.completion.tried(is_waited_for, now);
        }
        let believed = Arc::clone(&self.published.borrow());
        let is_hidden = self.services.is_hidden();
        let sight = Sight {
            is_settled,
            is_resync_due: self.resync.due().is_some(),
            going: self.going(&believed.services),
            is_whole: !self.unread.may_pass() && self.failures == [None, None],
            is_hidden,
            now,
        };
        let verdict = self.guard.decide(&believed.services, &self.said, &sight);
        if verdict.held > 0 && believed.held == 0 {
            let datacenter = &*self.watching.datacenter;
            tracing::warn!(
                target: TARGET, datacenter, instances = verdict.held, is_hidden,
                "many instances disappeared at once, and are kept until that is confirmed",
            );
        }
        let failure = self.failures.iter().flatten().next();
        let state = DatacenterState {
            datacenter: Arc::clone(&self.watching.datacenter),
            services: verdict.services,
            is_complete: self.completion.is_complete(),
            failure: failure.map(|failure| Arc::clone(&failure.reason)),
            is_rejected: failure.is_some_and(|failure| failure.is_rejected),
            unread: self.unread.reasons(),
            unknown,
            held: verdict.held,
            is_hidden,
            is_blank: self.was_listed && self.services.is_blank(),
            last_ok: self.last_ok,
        };
        let is_news = self.published.send_if_modified(|published| {
            let is_news = state.differs_from(published);
            *published = Arc::new(state);
            is_news
        });
        if is_news {
            self.watching.changed.notify_one();
        }
    }
}

/// The names that Consul accepts and no URL can contain as a part of its path.
const UNADDRESSABLE: [&str; 2] = [".", ".."];

fn is_addressable(name: &str) -> bool {
    !UNADDRESSABLE.contains(&name)
}

/// Returns the wait before an unreadable service is read again, which is never later than a readable one would be.
fn backoff(options: &WatchOptions, attempts: u32) -> Duration {
    let longest = options.follow.rejected.min(options.reread);
    let policy = Backoff::new(options.follow.backoff.min(longest), longest);
    policy.wait(attempts.saturating_add(1), fastrand::f64())
}

fn between(low: f64, high: f64) -> f64 {
    low + fastrand::f64() * (high - low)
}
