//! A cluster in memory, for tests of programs that use this crate.

mod calls;
mod contents;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};

pub use self::contents::Contents;
#[cfg(test)]
pub(crate) use self::contents::{labels_xml, listener, replica};
use crate::calls::{CallError, CallErrorKind, HealthEntity};
use crate::model::{HealthInformation, ResolvedPartition};

/// A cluster whose contents and failures a test controls, and which counts its calls. Clones share
/// everything.
///
/// ```
/// use discovery_servicefabric::testing::FakeCluster;
/// use discovery_servicefabric::{ServiceFabric, ServiceFabricOptions};
///
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() {
/// let cluster = FakeCluster::new();
/// cluster.edit(|contents| {
///     contents
///         .application_type("ShopType", "1.0", [("Host", "shop.example")])
///         .service_type("ShopType", "1.0", "WebType", [
///             ("YARP.Enable", "true"),
///             ("YARP.Routes.main.Hosts", "[Host]"),
///         ])
///         .application("fabric:/Shop", "ShopType", "1.0", [])
///         .stateless("fabric:/Shop/Web", "WebType", [("p1", vec![(101, "https://10.0.0.1:443")])]);
/// });
///
/// let once = ServiceFabric::new(cluster.clone()).runner().run_once().await;
/// assert_eq!(once.state.config.as_ref().map(|config| config.routes.len()), Some(1));
/// assert_eq!(cluster.calls("replicas"), 1);
/// # }
/// ```
#[derive(Clone, Debug, Default)]
pub struct FakeCluster {
    state: Arc<Mutex<FakeState>>,
}

#[derive(Debug, Default)]
struct FakeState {
    contents: Contents,
    /// The calls that were made, as `replicas p1`.
    calls: Vec<String>,
    faults: Vec<Fault>,
    delay: Duration,
    /// Calls that take longer than others, and how long.
    slow: Vec<(String, Duration)>,
    /// Earlier results of the naming service, by partition, if the gateway answers from its cache.
    old_names: BTreeMap<String, ResolvedPartition>,
    /// True if the list of all replicas is empty.
    blind: bool,
    /// Seed of the order of lists. `None` for their own order.
    shuffle: Option<u64>,
    reports: Vec<(HealthEntity, HealthInformation, bool)>,
}

#[derive(Clone, Debug)]
struct Fault {
    call: String,
    kind: CallErrorKind,
    times: usize,
    retry_after: Option<Duration>,
}

impl FakeCluster {
    /// Creates an empty cluster.
    pub fn new() -> Self {
        Self::default()
    }

    /// Changes the content of the cluster.
    pub fn edit(&self, edit: impl FnOnce(&mut Contents)) {
        edit(&mut self.state().contents);
    }

    /// Makes calls fail until [`heal`](Self::heal): those that begin so, as `replicas` or `replicas p1`.
    pub fn fail(&self, call: &str, kind: CallErrorKind) {
        self.fail_times(call, kind, usize::MAX);
    }

    /// Makes the next `times` of these calls fail.
    pub fn fail_times(&self, call: &str, kind: CallErrorKind, times: usize) {
        self.state().faults.push(Fault {
            call: call.to_owned(),
            kind,
            times,
            retry_after: None,
        });
    }

    /// Makes these calls fail and request a wait.
    pub fn fail_patiently(&self, call: &str, kind: CallErrorKind, wait: Duration) {
        self.fail(call, kind);
        if let Some(fault) = self.state().faults.last_mut() {
            fault.retry_after = Some(wait);
        }
    }

    /// Ends all failures, and that calls are [`slow`](Self::slow).
    pub fn heal(&self) {
        let mut state = self.state();
        state.faults.clear();
        state.slow.clear();
    }

    /// Delays calls that begin with `call`, such as `replicas p1`, by `delay` until [`heal`](Self::heal).
    pub fn slow(&self, call: &str, delay: Duration) {
        self.state().slow.push((call.to_owned(), delay));
    }

    /// Makes the gateway respond with the current results of the naming service for each partition, until a
    /// newer result is requested.
    pub fn remember_names(&self) {
        let mut state = self.state();
        let FakeState {
            contents,
            old_names,
            ..
        } = &mut *state;
        *old_names = contents.named();
        for answer in old_names.values_mut() {
            answer.version.insert_str(0, "old-");
        }
    }

    /// Delays every call by `delay`.
    pub fn delay(&self, delay: Duration) {
        self.state().delay = delay;
    }

    /// Changes the order of all lists, as a number decides.
    pub fn shuffle(&self, seed: u64) {
        self.state().shuffle = Some(seed);
    }

    /// Makes the list of all replicas empty, as for a user without permission.
    pub fn blind(&self) {
        self.state().blind = true;
    }

    /// Number of calls that begin with `call` since [`forget_calls`](Self::forget_calls).
    pub fn calls(&self, call: &str) -> usize {
        let state = self.state();
        state.calls.iter().filter(|made| is(made, call)).count()
    }

    /// The calls that were made, in order, as `replicas p1`.
    pub fn all_calls(&self) -> Vec<String> {
        self.state().calls.clone()
    }

    /// Resets the count of calls.
    pub fn forget_calls(&self) {
        self.state().calls.clear();
    }

    /// Takes the reports since the last call.
    pub fn take_reports(&self) -> Vec<(HealthEntity, HealthInformation, bool)> {
        std::mem::take(&mut self.state().reports)
    }

    fn state(&self) -> MutexGuard<'_, FakeState> {
        self.state.lock()
    }

    /// Records a call, and waits and fails as configured.
    async fn called(&self, call: &str, arguments: &[&str]) -> Result<(), CallError> {
        let mut made = call.to_owned();
        for argument in arguments {
            made.push(' ');
            made.push_str(argument);
        }
        let delay = {
            let mut state = self.state();
            state.calls.push(made.clone());
            let slow = state.slow.iter().find(|(call, _)| is(&made, call));
            slow.map_or(state.delay, |(_, delay)| *delay)
        };
        if !delay.is_zero() {
            tokio::time::sleep(delay).await;
        }
        let mut state = self.state();
        let fault = state
            .faults
            .iter_mut()
            .find(|fault| fault.times > 0 && is(&made, &fault.call));
        let Some(fault) = fault else { return Ok(()) };
        fault.times -= 1;
        let error = CallError::new(fault.kind, made, "the test says so");
        Err(match fault.retry_after {
            Some(wait) => error.with_retry_after(wait),
            None => error,
        })
    }

    /// Returns the list in the configured order.
    fn ordered<T>(&self, mut list: Vec<T>) -> Vec<T> {
        if let Some(seed) = self.state().shuffle {
            fastrand::Rng::with_seed(seed).shuffle(&mut list);
        }
        list
    }
}

/// Returns true if the call is equal to `call`, such as `replicas p1`, or begins with its words.
fn is(made: &str, call: &str) -> bool {
    made.strip_prefix(call)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with(' '))
}
