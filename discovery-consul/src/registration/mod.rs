//! Registration of a service: an instance at the agent beside it.
//!
//! A [`Registration`] describes an instance. [`register`](Registration::register) sends it to the agent,
//! renews the instance's check, and registers it again if the agent has lost it, while the [`Registered`]
//! lives.
//!
//! ```no_run
//! use discovery_consul::client::{ConsulClient, ConsulError, ServiceDefinition};
//! use discovery_consul::registration::Registration;
//!
//! # async fn until_asked_to_stop() {}
//! # async fn example(client: ConsulClient) -> Result<(), ConsulError> {
//! let orders = ServiceDefinition::new("orders", 5000)
//!     .with_id("orders-1")
//!     .with_tag("proxy.enable=true")
//!     .with_tag("proxy.routes.main.hosts=orders.example");
//! let registered = Registration::new(orders).register(&client).await?;
//!
//! until_asked_to_stop().await;
//!
//! // Nothing new for this instance, then no trace of it. Proxies learn of each within a second: serve meanwhile.
//! registered.drain().await?;
//! registered.deregister().await?;
//! # Ok(())
//! # }
//! ```
//!
//! A program that ends without deregistering renews nothing: after [`ttl`](Registration::ttl) its check is
//! critical, and some time later the agent removes the instance from the catalog.

mod keeper;
#[cfg(test)]
mod tests;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::AbortHandle;

use self::keeper::{Command, Keeper, Order};
use crate::client::{CheckDefinition, ConsulClient, ConsulError, HealthStatus, ServiceDefinition};

/// The shortest time to live: three renewals have to fit in.
const SHORTEST_TTL: Duration = Duration::from_secs(1);

/// The description of one instance of a service.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use = "nothing is registered until it is asked for"]
pub struct Registration {
    service: ServiceDefinition,
    ttl: Duration,
    deregister_after: Option<Duration>,
}

impl Registration {
    /// Creates the registration of an instance. Its check is created and renewed here, in place of a check
    /// of its own.
    pub fn new(service: ServiceDefinition) -> Self {
        Self {
            service,
            ttl: Duration::from_secs(15),
            deregister_after: Some(Duration::from_secs(600)),
        }
    }

    /// Sets the time for which a silent instance counts as healthy. It is renewed three times as often. At
    /// least 1 s. Default: 15 s.
    pub fn ttl(mut self, ttl: Duration) -> Self {
        self.ttl = ttl.max(SHORTEST_TTL);
        self
    }

    /// Sets the time in a critical state after which it is removed from the catalog. Consul uses at least a
    /// minute. `None` to keep it. Default: 10 min.
    pub fn deregister_after(mut self, critical: Option<Duration>) -> Self {
        self.deregister_after = critical;
        self
    }

    /// The service with its check in this state.
    fn definition(&self, status: HealthStatus) -> ServiceDefinition {
        let mut check = CheckDefinition::ttl(self.check_id(), self.ttl).with_status(status);
        check.deregister_after = self.deregister_after;
        self.service.clone().with_check(check)
    }

    fn check_id(&self) -> String {
        format!("{}:ttl", self.service.effective_id())
    }

    /// Registers the instance, and keeps it registered over restarts of the agent.
    ///
    /// # Errors
    ///
    /// Returns an error if the agent cannot be reached or rejects the registration. The registration is not
    /// kept then: call again.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped, the instance may be registered or not, and is not kept.
    ///
    /// # Panics
    ///
    /// Panics outside of a tokio runtime.
    pub async fn register(self, client: &ConsulClient) -> Result<Registered, ConsulError> {
        client
            .register(&self.definition(HealthStatus::Passing))
            .await?;
        let (orders, receiver) = mpsc::channel(1);
        let (sender, state) = watch::channel(RegistrationState::Registered);
        let id: Arc<str> = self.service.effective_id().into();
        let keeper = Keeper::new(self, client.clone(), receiver, sender);
        let task = tokio::spawn(keeper.run()).abort_handle();
        Ok(Registered {
            id,
            orders,
            state,
            task,
        })
    }
}

/// The state of a registration at its agent.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RegistrationState {
    /// The agent has the registration.
    Registered,
    /// The agent is unavailable or rejects the registration, which is retried.
    Waiting {
        /// The reason, with a hint for the operator.
        reason: Arc<str>,
    },
    /// The instance was deregistered, or its runtime has ended.
    Ended,
}

/// A registered instance.
///
/// The work is done by a task of the runtime that it was registered on. When this is dropped the task ends and the
/// *instance stays* until its check runs out, as after a crash; [`deregister`](Self::deregister) takes it back.
#[must_use = "the check is not renewed when this is dropped"]
pub struct Registered {
    id: Arc<str>,
    orders: mpsc::Sender<Order>,
    state: watch::Receiver<RegistrationState>,
    task: AbortHandle,
}

impl Registered {
    /// The id of the instance.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The current state.
    pub fn state(&self) -> RegistrationState {
        self.state.borrow().clone()
    }

    /// [`state`](Self::state), and when it changes.
    pub fn states(&self) -> watch::Receiver<RegistrationState> {
        self.state.clone()
    }

    /// Sets the health status of the instance.
    ///
    /// # Errors
    ///
    /// Returns an error if the agent could not be reached. It gets the status as soon as it is available
    /// again.
    ///
    /// # Cancel safety
    ///
    /// The order is executed even if the future is dropped.
    pub async fn set_status(
        &self,
        status: HealthStatus,
        note: impl Into<String>,
    ) -> Result<(), ConsulError> {
        self.order(Command::Status(status, note.into())).await
    }

    /// Stops new requests by making the check critical. The instance stays, with its current requests.
    ///
    /// # Errors and cancel safety
    ///
    /// The same as of [`set_status`](Self::set_status).
    pub async fn drain(&self) -> Result<(), ConsulError> {
        self.set_status(HealthStatus::Critical, "draining").await
    }

    /// Removes the instance from the catalog.
    ///
    /// # Errors
    ///
    /// Returns an error if the agent could not be reached. The check is not renewed any longer in any case.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped, the instance may still be in the catalog or not; it is not kept.
    pub async fn deregister(self) -> Result<(), ConsulError> {
        self.order(Command::Deregister).await
    }

    async fn order(&self, command: Command) -> Result<(), ConsulError> {
        let (done, outcome) = oneshot::channel();
        let order = Order { command, done };
        // Either fails only when the runtime of the task has ended.
        self.orders.send(order).await.map_err(|_| ended())?;
        outcome.await.map_err(|_| ended())?
    }
}

fn ended() -> ConsulError {
    let message = "the runtime that the instance was registered on has ended";
    ConsulError::new(
        crate::client::ConsulErrorKind::Unreachable,
        "a registration",
        message,
    )
}

impl Drop for Registered {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl fmt::Debug for Registered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Registered")
            .field("id", &self.id)
            .field("state", &*self.state.borrow())
            .finish_non_exhaustive()
    }
}
