//! All datacenters: their list, and one watch for each.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use discovery_core::Backoff;
use futures_util::StreamExt;
use futures_util::stream::{self, BoxStream};
use tokio::sync::{Notify, Semaphore, watch};
use tokio::task::AbortHandle;
use tokio::time::{Instant, sleep};

use super::datacenter::{self, Watching};
use super::options::{Datacenters, WatchOptions};
use super::state::DatacenterState;
use crate::client::{Answer, ConsulClient, ConsulError, ConsulErrorKind, Query, Retry};

/// The known state of all datacenters.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct WatchState {
    /// The agent's own datacenter. `None` if it is not known yet.
    pub own: Option<Arc<str>>,
    /// The datacenters: the own one first, then the others in the order in which they were listed, or by name.
    pub datacenters: Vec<Arc<DatacenterState>>,
    /// True if the datacenters to watch are known. This is immediate, unless they are
    /// [all](Datacenters::All) datacenters.
    pub are_listed: bool,
    /// The reason why the list of datacenters cannot be read. Those that were known stay.
    pub failure: Option<Arc<str>>,
    /// True if the reason is that the agent rejects the token.
    pub(crate) is_rejected: bool,
}

/// Watches the services of datacenters: two blocking queries for each, and reads of what they touch.
///
/// Tasks of the current runtime do the work, and end when this is dropped. The watch never ends by itself,
/// and parts that cannot be read keep their last known good state.
///
/// ```no_run
/// use discovery_consul::client::ConsulClient;
/// use discovery_consul::watch::{ConsulWatch, WatchOptions};
///
/// # async fn example(client: ConsulClient) {
/// let watch = ConsulWatch::start(client, WatchOptions::default());
/// let mut states = watch.states();
/// while states.changed().await.is_ok() {
///     for datacenter in &states.borrow_and_update().datacenters {
///         println!("{}: {} services", datacenter.datacenter, datacenter.services.len());
///     }
/// }
/// # }
/// ```
pub struct ConsulWatch {
    states: watch::Receiver<Arc<WatchState>>,
    _task: OwnTask,
}

/// A task that ends with its owner.
struct OwnTask(AbortHandle);

impl OwnTask {
    fn spawn(work: impl Future<Output = ()> + Send + 'static) -> Self {
        Self(tokio::spawn(work).abort_handle())
    }
}

impl Drop for OwnTask {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl ConsulWatch {
    /// Begins to watch.
    ///
    /// # Panics
    ///
    /// Panics outside of a tokio runtime.
    pub fn start(client: ConsulClient, options: WatchOptions) -> Self {
        let (published, states) = watch::channel(Arc::default());
        let options = options.bounded();
        let watching = AllWatching {
            client,
            pool: Arc::new(Semaphore::new(options.reads)),
            options: Arc::new(options),
            changed: Arc::new(Notify::new()),
            running: BTreeMap::new(),
            state: WatchState::default(),
            published,
        };
        Self {
            states,
            _task: OwnTask::spawn(watching.run()),
        }
    }

    /// The state and its changes. Ages may change without a notification.
    pub fn states(&self) -> watch::Receiver<Arc<WatchState>> {
        self.states.clone()
    }

    /// The current state.
    pub fn state(&self) -> Arc<WatchState> {
        Arc::clone(&self.states.borrow())
    }
}

impl fmt::Debug for ConsulWatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.states.borrow();
        f.debug_struct("ConsulWatch")
            .field("own", &state.own)
            .field("datacenters", &state.datacenters.len())
            .finish_non_exhaustive()
    }
}

/// The watch of one datacenter while it runs.
struct Running {
    state: watch::Receiver<Arc<DatacenterState>>,
    /// The position among the watched datacenters.
    position: usize,
    /// The time since which it is no longer in the list.
    missing_since: Option<Instant>,
    _task: OwnTask,
}

type Listed = Result<Answer<Vec<String>>, ConsulError>;

struct AllWatching {
    client: ConsulClient,
    options: Arc<WatchOptions>,
    pool: Arc<Semaphore>,
    changed: Arc<Notify>,
    running: BTreeMap<Arc<str>, Running>,
    state: WatchState,
    published: watch::Sender<Arc<WatchState>>,
}

impl AllWatching {
    async fn run(mut self) {
        let own = self.own_datacenter().await;
        self.state.own = Some(Arc::clone(&own));
        self.watch(&own, 0);
        if let Datacenters::Listed(listed) = &self.options.datacenters {
            for (nth, name) in listed.clone().iter().enumerate() {
                self.watch(name, nth + 1);
            }
        }
        self.state.are_listed = self.options.datacenters != Datacenters::All;
        let mut lists = self.lists();
        let changed = Arc::clone(&self.changed);
        loop {
            self.publish();
            tokio::select! {
                () = changed.notified() => {}
                Some(listed) = lists.next() => self.listed(listed, &own),
            }
        }
    }

    /// Lists the datacenters repeatedly, if the lists are needed. A hanging list delays nothing else.
    fn lists(&self) -> BoxStream<'static, Listed> {
        if self.options.datacenters != Datacenters::All {
            return stream::pending().boxed();
        }
        let client = self.client.clone();
        let interval = self.options.datacenters_interval;
        let backoff = Backoff::new(self.options.follow.backoff, interval);
        // How long to wait before the next, and how many have failed in a row.
        stream::unfold((Duration::ZERO, 0_u32), move |(wait, failures)| {
            let client = client.clone();
            async move {
                sleep(wait.mul_f64(0.9 + fastrand::f64() / 5.0)).await;
                let listed = client.datacenters().await;
                let next = match &listed {
                    Ok(_) => (interval, 0),
                    Err(_) => {
                        let failures = failures.saturating_add(1);
                        (backoff.limit(failures), failures)
                    }
                };
                Some((listed, next))
            }
        })
        .boxed()
    }

    /// Returns the datacenter of the agent, which is queried until it responds.
    async fn own_datacenter(&mut self) -> Arc<str> {
        if let Some(own) = &self.options.own_datacenter {
            return Arc::clone(own);
        }
        let mut failures = 0_u32;
        loop {
            let token_changed = self.client.token_changed();
            let error = match self.client.agent_self().await {
                Ok(agent) => return agent.datacenter.into(),
                Err(error) => error,
            };
            // A token that may read services need not be one that may read agents.
            let of_catalog = match error.kind() {
                ConsulErrorKind::Denied => Some(self.datacenter_of_servers().await),
                _ => None,
            };
            if let Some(Ok(Some(own))) = of_catalog {
                return own;
            }
            failures = failures.saturating_add(1);
            let wait = self.options.follow.wait_after(&error, failures);
            let is_rejected = error.retry() == Retry::Slowly;
            let last = match &of_catalog {
                Some(Err(of_catalog)) => of_catalog,
                _ => &error,
            };
            self.state.is_rejected = last.kind() == ConsulErrorKind::Denied;
            self.state.failure = Some(match of_catalog {
                Some(Ok(_)) => hidden(&error),
                Some(Err(error)) => without_own(&error),
                None => without_own(&error),
            });
            self.publish();
            tokio::select! {
                () = sleep(wait) => {}
                () = token_changed, if is_rejected => {}
            }
        }
    }

    /// Returns the datacenter of the agent's servers in the catalog. `None` if the token sees none of them.
    async fn datacenter_of_servers(&self) -> Result<Option<Arc<str>>, ConsulError> {
        let servers = self.client.health_service(SERVERS, &Query::new()).await?;
        let mut names = servers
            .value
            .into_iter()
            .map(|server| server.node.datacenter);
        Ok(names.find(|name| !name.is_empty()).map(Arc::from))
    }

    fn watch(&mut self, name: &Arc<str>, position: usize) {
        if let Some(running) = self.running.get_mut(name) {
            running.missing_since = None;
            return;
        }
        let unknown = DatacenterState::unknown(Arc::clone(name));
        let (sender, state) = watch::channel(Arc::new(unknown));
        let watching = Watching {
            client: self.client.clone(),
            options: Arc::clone(&self.options),
            datacenter: Arc::clone(name),
            pool: Arc::clone(&self.pool),
            changed: Arc::clone(&self.changed),
        };
        let running = Running {
            state,
            position,
            missing_since: None,
            _task: OwnTask::spawn(datacenter::watch(watching, sender)),
        };
        self.running.insert(Arc::clone(name), running);
    }

    /// Applies a list. A datacenter that is no longer in it is kept for a while.
    fn listed(&mut self, listed: Listed, own: &Arc<str>) {
        let listed = match listed {
            Ok(answer) => answer.value,
            Err(error) => {
                self.state.is_rejected = error.kind() == ConsulErrorKind::Denied;
                self.state.failure = Some(error.explained().into());
                return;
            }
        };
        self.state.failure = None;
        self.state.is_rejected = false;
        self.state.are_listed = true;
        // The order is by distance, which changes by itself: they are taken by name.
        for name in &listed {
            self.watch(&name.as_str().into(), 1);
        }
        let (now, grace) = (Instant::now(), self.options.datacenter_grace);
        self.running.retain(|name, running| {
            if name == own || listed.iter().any(|listed| **listed == **name) {
                return true;
            }
            let since = *running.missing_since.get_or_insert(now);
            now.duration_since(since) < grace
        });
    }

    fn publish(&mut self) {
        let mut running: Vec<_> = self.running.iter().collect();
        running.sort_by_key(|(name, running)| (running.position, Arc::clone(name)));
        let states = running
            .iter()
            .map(|(_, running)| Arc::clone(&running.state.borrow()));
        self.state.datacenters = states.collect();
        self.published.send_if_modified(|published| {
            let is_news = **published != self.state;
            if is_news {
                *published = Arc::new(self.state.clone());
            }
            is_news
        });
    }
}

fn without_own(error: &ConsulError) -> Arc<str> {
    let text = format!(
        "it is not known which datacenter the agent is in: {}",
        error.explained()
    );
    text.into()
}

/// The token may read neither the agent nor its servers.
fn hidden(error: &ConsulError) -> Arc<str> {
    let text = format!(
        "it is not known which datacenter the agent is in: {error}; and the token sees no `{SERVERS}` in the catalog: give it \
         `service_prefix \"\" {{ policy = \"read\" }}` and `node_prefix \"\" {{ policy = \"read\" }}`, or `agent_prefix \"\" \
         {{ policy = \"read\" }}`, or say which datacenter it is (`Datacenter`)"
    );
    text.into()
}

/// The service that the servers of a datacenter are.
const SERVERS: &str = "consul";

/// Minimum of all intervals.
const SHORTEST: Duration = Duration::from_millis(10);

impl WatchOptions {
    /// Returns the options with all numbers in usable ranges.
    fn bounded(mut self) -> Self {
        self.reads = self.reads.clamp(2, 1024);
        for time in [
            &mut self.reread,
            &mut self.unread_grace,
            &mut self.resync_gap,
            &mut self.datacenters_interval,
            &mut self.follow.wait,
            &mut self.follow.min_gap,
            &mut self.follow.idle_gap,
            &mut self.follow.poll,
            &mut self.follow.backoff,
            &mut self.follow.backoff_max,
            &mut self.follow.rejected,
        ] {
            *time = (*time).max(SHORTEST);
        }
        self
    }
}
