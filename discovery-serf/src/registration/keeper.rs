//! The task that keeps a registration: it detects that the agent was unavailable, and sends the tags again.

use std::sync::Arc;
use std::time::Duration;

use discovery_core::Backoff;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::Instant;

use super::Registration;
use super::agent::Agent;
use super::announce::{Earlier, Node};
use super::error::RegistrationError;
use super::registered::RegistrationState;
use crate::client::{ClientErrorKind, SerfClient};

/// The target of log lines.
const TARGET: &str = "discovery::serf";

/// The waits before an unavailable agent is retried. They are short: the agent usually runs on the same
/// machine, and until it has the tags, the service cannot be found.
const PAUSES: Backoff = Backoff::new(Duration::from_millis(100), Duration::from_secs(2));

/// The interval at which an idle connection is checked: the other end may have disappeared without notice,
/// or may have read its configuration again (SIGHUP), and then has only the tags in it.
const HEARTBEAT: Duration = Duration::from_secs(10);

/// The time after a connection at which the tags are sent once more. An agent that has just started joins
/// its cluster meanwhile, and contradicts nodes that consider it failed. It may do that with its earlier
/// tags under a later number, and then the cluster uses those until nodes next compare their full state, 15
/// to 30 s later.
const ONCE_MORE: Duration = Duration::from_secs(2);

/// A command, and the channel that reports its result.
pub(super) struct Order {
    pub(super) command: Command,
    pub(super) done: oneshot::Sender<Result<(), RegistrationError>>,
}

pub(super) enum Command {
    Update(Registration),
    SetWeight(u32),
    Withdraw,
    Leave,
}

/// The messages to an agent.
#[derive(Clone, Copy)]
enum Message {
    Announce,
    /// Announces the tags again, to an agent that may have them already.
    AnnounceAgain,
    Withdraw,
    Leave,
}

/// The other end of a keeper.
pub(super) struct Started {
    pub(super) node: Arc<str>,
    pub(super) orders: mpsc::Sender<Order>,
    pub(super) state: watch::Receiver<RegistrationState>,
}

pub(super) struct Keeper {
    agent: Agent,
    wanted: Registration,
    earlier: Earlier,
    /// The connection. `None` if the agent is unavailable, or has rejected the registration.
    client: Option<SerfClient>,
    orders: mpsc::Receiver<Order>,
    state: watch::Sender<RegistrationState>,
    /// Number of consecutive failures: the agent was unavailable or rejected the tags.
    failures: u32,
    /// The time of the next check of the agent.
    next: Instant,
    /// The time at which the tags are sent once more; never later than `next`.
    once_more: Option<Instant>,
}

impl Keeper {
    /// Registers for the first time.
    pub(super) async fn start(
        wanted: Registration,
        agent: Agent,
    ) -> Result<(Self, Started), RegistrationError> {
        let (orders, receiver) = mpsc::channel(1);
        let (state, states) = watch::channel(RegistrationState::Announced);
        let mut keeper = Self {
            agent,
            wanted,
            earlier: Earlier::default(),
            client: None,
            orders: receiver,
            state,
            failures: 0,
            next: Instant::now() + HEARTBEAT,
            once_more: None,
        };
        let node = keeper.say(Message::Announce).await?.into();
        let service = keeper.wanted.service();
        tracing::info!(target: TARGET, %node, %service, "the service is registered");
        let started = Started {
            node,
            orders,
            state: states,
        };
        Ok((keeper, started))
    }

    /// Runs until the service is withdrawn, or all handles are dropped.
    pub(super) async fn run(mut self) {
        loop {
            tokio::select! {
                order = self.orders.recv() => {
                    let Some(Order { command, done }) = order else { break };
                    let last = matches!(command, Command::Withdraw | Command::Leave);
                    let outcome = self.obey(command).await;
                    // The caller may have been dropped.
                    let _ = done.send(outcome);
                    if last {
                        break;
                    }
                }
                () = ended(self.client.as_ref()) => self.lost(None),
                () = tokio::time::sleep_until(self.once_more.unwrap_or(self.next)) => self.look_after().await,
            }
        }
        self.state.send_replace(RegistrationState::Ended);
    }

    async fn obey(&mut self, command: Command) -> Result<(), RegistrationError> {
        match command {
            Command::Update(wanted) => self.want(wanted).await,
            Command::SetWeight(weight) => {
                let wanted = self.wanted.clone().weight(weight);
                wanted.check()?;
                self.want(wanted).await
            }
            Command::Withdraw => self.say(Message::Withdraw).await.map(drop),
            Command::Leave => self.say(Message::Leave).await.map(drop),
        }
    }

    async fn want(&mut self, wanted: Registration) -> Result<(), RegistrationError> {
        let before = std::mem::replace(&mut self.wanted, wanted);
        let announced = self.say(Message::Announce).await;
        match &announced {
            Ok(_) => self.told(),
            // It may not have the tags, or may have them without a reply: send them once more.
            Err(error @ RegistrationError::Agent(_)) => self.lost(Some(error.clone())),
            // It never will be.
            Err(_) => self.wanted = before,
        }
        announced.map(drop)
    }

    /// Checks that the agent has the tags.
    async fn look_after(&mut self) {
        match self.client.clone() {
            Some(client) => {
                let seen = match self.once_more.take() {
                    Some(_) => self.say(Message::AnnounceAgain).await.map(drop),
                    None => self.remind(&client).await,
                };
                match seen {
                    Ok(()) => self.next = Instant::now() + HEARTBEAT,
                    Err(error) => self.lost(Some(error)),
                }
            }
            None => match self.say(Message::Announce).await {
                Ok(node) => {
                    let service = self.wanted.service();
                    tracing::info!(target: TARGET, node, %service, "the service is registered again");
                    self.told();
                }
                Err(error) => self.lost(Some(error)),
            },
        }
    }

    /// Sends the tags again to an agent that has lost them.
    async fn remind(&mut self, agent: &SerfClient) -> Result<(), RegistrationError> {
        let node = Node::of(agent).await?;
        if !node.has_forgotten() {
            return Ok(());
        }
        let service = self.wanted.service();
        tracing::info!(target: TARGET, node = node.name, %service, "the agent has forgotten the \
            service; registering it again");
        self.say(Message::Announce).await.map(drop)
    }

    /// Sends a message to the agent. Returns the node's name.
    async fn say(&mut self, message: Message) -> Result<String, RegistrationError> {
        match self.try_to_say(message).await {
            // The end of the connection was not known before. Every message may be sent twice.
            Err(RegistrationError::Agent(error)) if error.kind() == ClientErrorKind::Closed => {
                self.client = None;
                self.try_to_say(message).await
            }
            outcome => outcome,
        }
    }

    async fn try_to_say(&mut self, message: Message) -> Result<String, RegistrationError> {
        let is_new = self.client.as_ref().is_none_or(SerfClient::is_closed);
        let client = self.connected().await?;
        let node = Node::of(&client).await?;
        match message {
            Message::Announce => {
                let change = node.change_to(&self.wanted, &self.earlier)?;
                self.earlier.add(&self.wanted);
                change.tell(&client).await?;
                self.earlier.only(&self.wanted);
                if is_new && !change.is_empty() {
                    self.once_more = Some(Instant::now() + ONCE_MORE);
                }
            }
            Message::AnnounceAgain => {
                let mut change = node.change_to(&self.wanted, &self.earlier)?;
                change.set = self.wanted.tags.clone();
                change.tell(&client).await?;
            }
            Message::Withdraw => node.change_from(&self.earlier).tell(&client).await?,
            Message::Leave => client.leave().await?,
        }
        Ok(node.name)
    }

    /// Returns the connection, a new one if necessary.
    async fn connected(&mut self) -> Result<SerfClient, RegistrationError> {
        if let Some(client) = self.client.as_ref().filter(|client| !client.is_closed()) {
            return Ok(client.clone());
        }
        let client = self.agent.connect().await?;
        self.client = Some(client.clone());
        Ok(client)
    }

    /// Records that the agent has the current tags.
    fn told(&mut self) {
        self.failures = 0;
        self.next = Instant::now() + HEARTBEAT;
        self.state.send_replace(RegistrationState::Announced);
    }

    /// Records that the agent is unavailable, or rejected the message. It is retried after a pause.
    fn lost(&mut self, error: Option<RegistrationError>) {
        // Logged once, and not for each attempt.
        if self.state.borrow().is_announced() {
            let service = self.wanted.service();
            let error = error.as_ref().map(tracing::field::display);
            tracing::warn!(target: TARGET, %service, error, "the agent is away; the service is registered again when it is back");
        }
        self.client = None;
        self.once_more = None;
        self.failures = self.failures.saturating_add(1);
        // All services beside an agent see it go at the same moment.
        self.next = Instant::now() + PAUSES.wait(self.failures, fastrand::f64());
        self.state
            .send_replace(RegistrationState::Waiting { error });
    }
}

/// Returns when there was a connection and it has ended.
async fn ended(client: Option<&SerfClient>) {
    match client {
        Some(client) => client.closed().await,
        None => std::future::pending().await,
    }
}
