//! A shared emulator.

use std::fmt;
use std::future::{Ready, ready};
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{Request, Response};
use parking_lot::{Mutex, MutexGuard};
use tower_service::Service;

use super::machine::Machine;
use super::options::EmulatorOptions;

/// A [`Machine`] that clients share: clones are the same emulator.
///
/// As a `tower` service it handles the requests of a client in the same process, without a socket.
#[derive(Clone)]
pub struct Emulator {
    machine: Arc<Mutex<Machine>>,
}

/// The error for a response that a fault withholds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the connection ended before the answer")]
pub struct Lost;

impl Emulator {
    /// Creates an empty emulator.
    pub fn new(options: EmulatorOptions) -> Self {
        Self::from(Machine::new(options))
    }

    /// Reads or changes the state. Requests wait meanwhile.
    pub fn with<R>(&self, look: impl FnOnce(&mut Machine) -> R) -> R {
        look(&mut self.lock())
    }

    fn lock(&self) -> MutexGuard<'_, Machine> {
        // A panic of a test in `with` leaves a usable state.
        self.machine.lock()
    }
}

impl From<Machine> for Emulator {
    fn from(machine: Machine) -> Self {
        Self {
            machine: Arc::new(Mutex::new(machine)),
        }
    }
}

impl fmt::Debug for Emulator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Emulator").finish_non_exhaustive()
    }
}

impl Service<Request<Bytes>> for Emulator {
    type Response = Response<Bytes>;
    type Error = Lost;
    type Future = Ready<Result<Self::Response, Self::Error>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Bytes>) -> Self::Future {
        ready(self.lock().answer(&request).ok_or(Lost))
    }
}
