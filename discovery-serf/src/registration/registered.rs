use std::fmt;
use std::sync::Arc;

use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::AbortHandle;

use super::Registration;
use super::agent::Agent;
use super::error::RegistrationError;
use super::keeper::{Command, Keeper, Order};

/// A registered instance: its tags are set, and are set again whenever its agent was away.
///
/// The work is done by a task of the runtime that it was registered on. When this is dropped the task ends and *the tags
/// stay*, as they do after a crash of the program; [`withdraw`](Self::withdraw) takes them back.
#[must_use = "the tags are not kept over a restart of the agent when this is dropped"]
pub struct Registered {
    node: Arc<str>,
    orders: mpsc::Sender<Order>,
    state: watch::Receiver<RegistrationState>,
    task: AbortHandle,
}

/// Whether an agent has what it was told.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum RegistrationState {
    /// It has it.
    Announced,
    /// It cannot be told: it is away, or refuses. It is asked again and again, at the latest every 2 s.
    Waiting {
        /// What the last attempt ended with; `None`: it has just gone away.
        error: Option<RegistrationError>,
    },
    /// The service was withdrawn or the agent has left, or its runtime has ended.
    Ended,
}

impl RegistrationState {
    /// Whether the agent has what it was told.
    pub fn is_announced(&self) -> bool {
        matches!(self, Self::Announced)
    }
}

impl Registered {
    pub(super) async fn start(
        registration: Registration,
        agent: Agent,
    ) -> Result<Self, RegistrationError> {
        registration.check()?;
        let (keeper, started) = Keeper::start(registration, agent).await?;
        let task = tokio::spawn(keeper.run()).abort_handle();
        Ok(Self {
            node: started.node,
            orders: started.orders,
            state: started.state,
            task,
        })
    }

    /// The node that announces the service.
    pub fn node(&self) -> &str {
        &self.node
    }

    /// Whether the agent has what it was told.
    pub fn state(&self) -> RegistrationState {
        self.state.borrow().clone()
    }

    /// [`state`](Self::state), and when it changes.
    pub fn states(&self) -> watch::Receiver<RegistrationState> {
        self.state.clone()
    }

    /// Says something else about the instance from now on: another weight, another version.
    ///
    /// # Errors
    ///
    /// As [`Registration::register`]. What is wrong in itself or too long changes nothing. If the agent could not be told
    /// for another reason, it will be as soon as it lets itself be told.
    ///
    /// # Cancel safety
    ///
    /// What was asked for is done even if nobody waits for it.
    pub async fn update(&self, registration: Registration) -> Result<(), RegistrationError> {
        registration.check()?;
        self.order(Command::Update(registration)).await
    }

    /// Sets the instance's share of the requests, in relation to the others of the service: 0 to 1000.
    ///
    /// # Errors and cancel safety
    ///
    /// As [`update`](Self::update).
    pub async fn set_weight(&self, weight: u32) -> Result<(), RegistrationError> {
        self.order(Command::SetWeight(weight)).await
    }

    /// Asks for no new requests: weight 0. The instance stays, with those that it has.
    ///
    /// # Errors and cancel safety
    ///
    /// As [`update`](Self::update).
    pub async fn drain(&self) -> Result<(), RegistrationError> {
        self.set_weight(0).await
    }

    /// Takes the service's tags back; the node stays in the cluster.
    ///
    /// Proxies learn of it in a second or two; serve them meanwhile.
    ///
    /// # Errors
    ///
    /// The agent could not be told. The registration is not kept any longer in any case.
    ///
    /// # Cancel safety
    ///
    /// When the future is dropped the tags may be there still or not; they are not kept.
    pub async fn withdraw(self) -> Result<(), RegistrationError> {
        self.order(Command::Withdraw).await
    }

    /// Makes the agent leave its cluster and end, and the service with it: for an agent that is there for this instance
    /// alone.
    ///
    /// # Errors
    ///
    /// The agent could not be told. The registration is not kept any longer in any case.
    ///
    /// # Cancel safety
    ///
    /// When the future is dropped the agent may leave or not; the tags are not kept.
    pub async fn leave(self) -> Result<(), RegistrationError> {
        self.order(Command::Leave).await
    }

    async fn order(&self, command: Command) -> Result<(), RegistrationError> {
        let (done, outcome) = oneshot::channel();
        let order = Order { command, done };
        // Either fails when the task is gone, which without this handle's drop only the end of its runtime explains.
        let sent = self.orders.send(order).await;
        sent.map_err(|_| RegistrationError::Ended)?;
        outcome.await.map_err(|_| RegistrationError::Ended)?
    }
}

impl Drop for Registered {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl fmt::Debug for Registered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Registered")
            .field("node", &self.node)
            .field("state", &*self.state.borrow())
            .finish_non_exhaustive()
    }
}
