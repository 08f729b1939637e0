use std::fmt;
use std::sync::Arc;

use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::AbortHandle;

use super::Registration;
use super::agent::Agent;
use super::error::RegistrationError;
use super::keeper::{Command, Keeper, Order};

/// A registered instance. Its tags are set, and are set again after each outage of its agent.
///
/// A task of the runtime on which it was registered does the work. When this is dropped, the task ends and
/// *the tags stay*, as they do after a crash of the program; [`withdraw`](Self::withdraw) removes them.
#[must_use = "the tags are not kept over a restart of the agent when this is dropped"]
pub struct Registered {
    node: Arc<str>,
    orders: mpsc::Sender<Order>,
    state: watch::Receiver<RegistrationState>,
    task: AbortHandle,
}

/// The state of a registration at its agent.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum RegistrationState {
    /// The agent has the tags.
    Announced,
    /// The agent is unavailable or rejects the tags. They are sent again at least every 2 s.
    Waiting {
        /// The error of the last attempt. `None` if the agent has just become unavailable.
        error: Option<RegistrationError>,
    },
    /// The service was withdrawn, the agent has left, or its runtime has ended.
    Ended,
}

impl RegistrationState {
    /// Returns true if the agent has the tags.
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

    /// The current state.
    pub fn state(&self) -> RegistrationState {
        self.state.borrow().clone()
    }

    /// The current [`state`](Self::state) and its changes.
    pub fn states(&self) -> watch::Receiver<RegistrationState> {
        self.state.clone()
    }

    /// Replaces the description of the instance: another weight, another version.
    ///
    /// # Errors
    ///
    /// The errors of [`Registration::register`]. An invalid or too long registration changes nothing. After
    /// any other error, the agent gets the new tags as soon as it can be reached.
    ///
    /// # Cancel safety
    ///
    /// The order is executed even if the future is dropped.
    pub async fn update(&self, registration: Registration) -> Result<(), RegistrationError> {
        registration.check()?;
        self.order(Command::Update(registration)).await
    }

    /// Sets the instance's share of the requests, relative to the other instances of the service: 0 to
    /// 1000.
    ///
    /// # Errors and cancel safety
    ///
    /// The same as of [`update`](Self::update).
    pub async fn set_weight(&self, weight: u32) -> Result<(), RegistrationError> {
        self.order(Command::SetWeight(weight)).await
    }

    /// Stops new requests by setting the weight to 0. The instance stays, with its current requests.
    ///
    /// # Errors and cancel safety
    ///
    /// The same as of [`update`](Self::update).
    pub async fn drain(&self) -> Result<(), RegistrationError> {
        self.set_weight(0).await
    }

    /// Removes the service's tags; the node stays in the cluster.
    ///
    /// Proxies receive the change within a second or two. Keep serving until then.
    ///
    /// # Errors
    ///
    /// Returns an error if the agent could not be reached. The registration ends in any case.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped, the tags may still be set or not; they are not kept.
    pub async fn withdraw(self) -> Result<(), RegistrationError> {
        self.order(Command::Withdraw).await
    }

    /// Makes the agent leave its cluster and end, and the service with it, for an agent that serves only
    /// this instance.
    ///
    /// # Errors
    ///
    /// Returns an error if the agent could not be reached. The registration ends in any case.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped, the agent may leave or not; the tags are not kept.
    pub async fn leave(self) -> Result<(), RegistrationError> {
        self.order(Command::Leave).await
    }

    async fn order(&self, command: Command) -> Result<(), RegistrationError> {
        let (done, outcome) = oneshot::channel();
        let order = Order { command, done };
        // Either fails when the task has ended; without a drop of this handle, only its runtime's end
        // explains that.
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
