//! Checks of agents on the destinations.

use std::collections::HashSet;
use std::io;
use std::pin::Pin;
use std::sync::Arc;

use discovery_core::text::with_causes;
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use log_sink::Seldom;
use proxy_model::compiled::{
    AgentCheck, Cluster, ClusterIndex, Destination, DestinationAddress, DestinationIndex,
};
use proxy_model::{ClusterId, DestinationId};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::Semaphore;
use tokio::time::{Instant, sleep_until, timeout};

use super::active::JITTER;
use crate::BoxError;
use crate::health::{AgentChange, Announcement, LONGEST_LINE};
use crate::live::{DestinationKey, DestinationState};
use crate::observe::{LOG_PAUSE, targets};
use crate::progress::after;
use crate::proxy::Shared;
use crate::state::Generation;
use crate::upstream::Upstreams;

/// Maximum of checks in flight over all clusters. The timeout of a check does not include the wait for a slot.
const CHECKS: usize = 512;

type BoxedCheck<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// The checks of all agents. All work runs in the task that polls it; dropping it ends all checks.
pub(crate) struct AgentChecks {
    shared: Arc<Shared>,
    upstreams: Arc<Upstreams>,
    turns: Arc<Semaphore>,
    /// Destinations that `checks` covers.
    watched: HashSet<DestinationKey>,
    checks: FuturesUnordered<BoxedCheck<DestinationKey>>,
}

impl AgentChecks {
    pub(crate) fn new(shared: Arc<Shared>, upstreams: Arc<Upstreams>) -> Self {
        Self {
            shared,
            upstreams,
            turns: Arc::new(Semaphore::new(CHECKS)),
            watched: HashSet::new(),
            checks: FuturesUnordered::new(),
        }
    }

    /// Starts checks for the destinations of the current generation that need one and have none.
    pub(crate) fn follow(&mut self) {
        let generation = self.shared.load_full();
        for (cluster, state) in generation.clusters() {
            if cluster.agent_check().is_none() {
                continue;
            }
            for (destination, live) in cluster.destinations().iter().zip(state.destinations()) {
                if !self.watched.insert(live.key()) {
                    continue;
                }
                let checker = Checker {
                    shared: Arc::clone(&self.shared),
                    upstreams: Arc::clone(&self.upstreams),
                    turns: Arc::clone(&self.turns),
                    cluster: cluster.id().clone(),
                    destination: destination.id().clone(),
                    key: live.key(),
                };
                self.checks.push(Box::pin(checker.run()));
            }
        }
    }

    /// Runs the checks; never returns. Cancel safe: work in flight continues with the next call.
    pub(crate) async fn run(&mut self) {
        loop {
            let Some(ended) = self.checks.next().await else {
                // No destination has a check. `follow` adds one after this future was dropped.
                return std::future::pending().await;
            };
            self.watched.remove(&ended);
            // The check may have been enabled again while it was ending.
            self.follow();
        }
    }
}

/// The check of one agent.
struct Checker {
    shared: Arc<Shared>,
    upstreams: Arc<Upstreams>,
    turns: Arc<Semaphore>,
    cluster: ClusterId,
    destination: DestinationId,
    key: DestinationKey,
}

/// A destination in the generation in which it was found.
struct FoundAgent {
    generation: Arc<Generation>,
    cluster: ClusterIndex,
    destination: DestinationIndex,
}

impl FoundAgent {
    fn cluster(&self) -> &Cluster {
        self.generation.snapshot().cluster_at(self.cluster)
    }

    fn destination(&self) -> &Destination {
        &self.cluster().destinations()[self.destination.0 as usize]
    }

    fn state(&self) -> &DestinationState {
        self.generation
            .cluster(self.cluster)
            .destination(self.destination)
    }
}

/// The place of an agent and the settings of its check.
struct AgentTarget {
    address: Arc<DestinationAddress>,
    port: Option<u16>,
    check: AgentCheck,
}

impl AgentTarget {
    /// `None` if the check is disabled.
    fn of(found: &FoundAgent) -> Option<Self> {
        let check = found.cluster().agent_check()?;
        let destination = found.destination();
        Some(Self {
            address: Arc::new(destination.health_address().clone()),
            port: check.port_at(destination),
            check: check.clone(),
        })
    }

    fn is_of(&self, found: &FoundAgent) -> bool {
        let destination = found.destination();
        found.cluster().agent_check() == Some(&self.check)
            && self.check.port_at(destination) == self.port
            && destination.health_address().host() == self.address.host()
    }
}

impl Checker {
    /// Checks the agent until its destination is removed or the check is disabled.
    async fn run(self) -> DestinationKey {
        let mut generations = self.shared.generations();
        // Later changes wake the loop below.
        generations.borrow_and_update();
        while let Some(target) = self.find().and_then(|found| AgentTarget::of(&found)) {
            // A result of settings that have changed meanwhile does not count.
            let changed = async {
                while generations.changed().await.is_ok() {
                    if !self.find().is_some_and(|found| target.is_of(&found)) {
                        return;
                    }
                }
                // The proxy has ended: no further generation comes.
                std::future::pending().await
            };
            tokio::select! {
                biased;
                () = changed => {}
                () = self.check_and_wait(&target) => {}
            }
        }
        self.key
    }

    /// The destination in the current generation.
    fn find(&self) -> Option<FoundAgent> {
        let generation = self.shared.load_full();
        let snapshot = generation.snapshot();
        let index = snapshot.cluster_index(&self.cluster)?;
        let (destination, _) = snapshot.cluster_at(index).destination(&self.destination)?;
        let is_same = generation.cluster(index).destination(destination).key() == self.key;
        is_same.then_some(FoundAgent {
            generation,
            cluster: index,
            destination,
        })
    }

    /// Checks once, and waits until the next check is due.
    async fn check_and_wait(&self, target: &AgentTarget) {
        let turn = self.turns.acquire().await;
        let limit = target.check.timeout();
        let heard = match timeout(limit, self.ask(target)).await {
            Ok(Ok(line)) => Ok(line),
            Ok(Err(error)) => Err(with_causes(&*error)),
            Err(_) => Err(format!("no line within {limit:?}")),
        };
        drop(turn);
        if let Some(found) = self.find() {
            match heard {
                Ok(line) => self.apply(&found, &line),
                // Nothing changes: only the agent takes back what it said.
                Err(why) => found.state().agent().missed(&why),
            }
        }
        let wait = self.shared.random().jitter(target.check.interval(), JITTER);
        sleep_until(after(Instant::now(), wait)).await;
    }

    /// Returns the line of an agent.
    async fn ask(&self, target: &AgentTarget) -> Result<Vec<u8>, BoxError> {
        let port = target.port.ok_or("the agent has no port")?;
        let connecting = self
            .upstreams
            .connect_port(&self.cluster, &target.address, port);
        let mut stream = connecting.await?;
        let send = target.check.send();
        if !send.is_empty() {
            stream.write_all(send.as_bytes()).await?;
        }
        Ok(read_line(&mut stream).await?)
    }

    fn apply(&self, found: &FoundAgent, line: &[u8]) {
        let said = Announcement::parse(line);
        if let Some(word) = &said.unknown {
            static SELDOM: Seldom = Seldom::new(LOG_PAUSE);
            if let Some(left_out) = SELDOM.pass() {
                tracing::warn!(
                    target: targets::HEALTH,
                    cluster = %self.cluster,
                    destination = %self.destination,
                    word,
                    left_out,
                    "the agent of a destination says a word that is none"
                );
            }
        }
        let (cluster, state) = (found.cluster(), found.state());
        let Some(change) = state.agent().heard(line, said) else {
            return;
        };
        if cluster.affinity().is_some() {
            state.drain(state.is_drained(cluster, found.destination()));
        }
        let live = found.generation.cluster(found.cluster).live();
        live.health_changed();
        self.log(&change);
    }

    fn log(
        &self,
        AgentChange {
            before,
            now,
            reason,
        }: &AgentChange,
    ) {
        // One event per change, not one per check.
        macro_rules! event {
            ($level:ident) => {
                tracing::$level!(
                    target: targets::HEALTH,
                    cluster = %self.cluster,
                    destination = %self.destination,
                    health = now.health,
                    mode = now.mode.word(),
                    weight = now.weight.map(tracing::field::display),
                    max_connections = now.max_connections,
                    reason = reason.as_deref(),
                    "the agent of a destination has changed what it may get"
                )
            };
        }
        match now.is_down() && !before.is_down() {
            true => event!(warn),
            false => event!(info),
        }
    }
}

/// Reads up to the end of the first line, which is not returned.
async fn read_line(stream: &mut TcpStream) -> io::Result<Vec<u8>> {
    let mut line = Vec::new();
    let mut buffer = [0; LONGEST_LINE];
    loop {
        let count = stream.read(&mut buffer).await?;
        let read = &buffer[..count];
        let end = read.iter().position(|byte| b"\r\n".contains(byte));
        line.extend_from_slice(&read[..end.unwrap_or(count)]);
        if line.len() > LONGEST_LINE {
            let text = format!("the line has more than {LONGEST_LINE} bytes");
            return Err(io::Error::new(io::ErrorKind::InvalidData, text));
        }
        match end {
            Some(_) => return Ok(line),
            None if count == 0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            None => {}
        }
    }
}
