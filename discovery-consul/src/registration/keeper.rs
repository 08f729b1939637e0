//! The task that keeps a registration: it renews the check, and registers the instance again after the
//! agent has lost it.

use std::time::Duration;

use discovery_core::Backoff;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::{Instant, sleep_until};

use super::{Registration, RegistrationState};
use crate::client::{ConsulClient, ConsulError, ConsulErrorKind, HealthStatus};

/// The target of log lines.
const TARGET: &str = "discovery::consul";

/// The first pause before an unavailable agent is retried. It doubles with each further one, up to a third
/// of the time to live.
const FIRST_PAUSE: Duration = Duration::from_millis(200);

/// A command, and the channel that reports its result.
pub(super) struct Order {
    pub(super) command: Command,
    pub(super) done: oneshot::Sender<Result<(), ConsulError>>,
}

pub(super) enum Command {
    Status(HealthStatus, String),
    Deregister,
}

pub(super) struct Keeper {
    registration: Registration,
    client: ConsulClient,
    orders: mpsc::Receiver<Order>,
    state: watch::Sender<RegistrationState>,
    status: HealthStatus,
    note: String,
    /// Attempts that failed in a row.
    failures: u32,
    next: Instant,
}

impl Keeper {
    pub(super) fn new(
        registration: Registration,
        client: ConsulClient,
        orders: mpsc::Receiver<Order>,
        state: watch::Sender<RegistrationState>,
    ) -> Self {
        Self {
            next: Instant::now() + registration.ttl / 3,
            registration,
            client,
            orders,
            state,
            status: HealthStatus::Passing,
            note: String::new(),
            failures: 0,
        }
    }

    /// Runs until the instance is deregistered, or all handles are dropped.
    pub(super) async fn run(mut self) {
        loop {
            tokio::select! {
                order = self.orders.recv() => {
                    let Some(Order { command, done }) = order else { break };
                    let is_last = matches!(command, Command::Deregister);
                    let outcome = self.obey(command).await;
                    // The caller may have been dropped.
                    let _ = done.send(outcome);
                    if is_last {
                        break;
                    }
                }
                () = sleep_until(self.next) => {
                    // What is wrong is in the state.
                    let _ = self.renew().await;
                }
            }
        }
        self.state.send_replace(RegistrationState::Ended);
    }

    async fn obey(&mut self, command: Command) -> Result<(), ConsulError> {
        match command {
            Command::Status(status, note) => {
                self.status = status;
                self.note = note;
                self.renew().await
            }
            Command::Deregister => {
                let id = self.registration.service.effective_id();
                self.client.deregister(id).await
            }
        }
    }

    /// Renews the check. An agent that has lost the instance gets its registration again.
    async fn renew(&mut self) -> Result<(), ConsulError> {
        let check = self.registration.check_id();
        let renewed = self
            .client
            .update_check(&check, self.status, &self.note)
            .await;
        let outcome = match renewed {
            Err(error) if has_forgotten(&error) => {
                let service = self.registration.service.effective_id();
                tracing::info!(target: TARGET, service, "the agent does not know the service; \
                    registering it again");
                let definition = self.registration.definition(self.status);
                self.client.register(&definition).await
            }
            outcome => outcome,
        };
        match &outcome {
            Ok(()) => self.told(),
            Err(error) => self.lost(error),
        }
        outcome
    }

    fn told(&mut self) {
        self.failures = 0;
        self.next = Instant::now() + self.registration.ttl / 3;
        self.state.send_if_modified(|state| {
            let was_away = *state != RegistrationState::Registered;
            *state = RegistrationState::Registered;
            was_away
        });
    }

    fn lost(&mut self, error: &ConsulError) {
        let reason = error.explained();
        // Logged once, and not for each attempt.
        if *self.state.borrow() == RegistrationState::Registered {
            let service = self.registration.service.effective_id();
            tracing::warn!(target: TARGET, service, reason, "the agent cannot be reached; the \
                registration is retried");
        }
        // All services beside an agent see it go at the same moment.
        self.failures = self.failures.saturating_add(1);
        let backoff = Backoff::new(FIRST_PAUSE, self.registration.ttl / 3);
        self.next = Instant::now() + backoff.wait(self.failures, fastrand::f64());
        let reason = reason.into();
        self.state
            .send_replace(RegistrationState::Waiting { reason });
    }
}

/// Returns true if the agent does not know the check: 404, or 500 with this text from an old agent.
fn has_forgotten(error: &ConsulError) -> bool {
    let status = error.status().map(|status| status.as_u16());
    match status {
        Some(404) => true,
        Some(500) => error.kind() == ConsulErrorKind::Server && error.to_string().contains("TTL"),
        _ => false,
    }
}
