//! Injected faults.

mod action;
mod pattern;

#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

use self::pattern::matches;
use super::admin::is_own;
use super::wire::PageFaults;

pub use self::action::FaultAction;

/// The maximum number of pending faults.
const MAX_FAULTS: usize = 1_000;

/// A fault of the next calls that match. Also the JSON of `POST /emulator/faults`.
///
/// ```
/// use servicefabric_emulator::gateway::{Fault, FaultAction};
///
/// let fault = Fault::new("/Applications*", FaultAction::fail(503, "FABRIC_E_NOT_READY")).times(2);
/// let json = serde_json::to_string(&fault)?;
/// assert_eq!(serde_json::from_str::<Fault>(&json)?, fault);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
#[non_exhaustive]
pub struct Fault {
    /// The method of matching calls. Default: all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub method: Option<String>,
    /// The raw path of the call without its query; `*` stands for anything. `/emulator/…` is never matched.
    pub path: String,
    /// The number of matching calls that pass before the first fault. Default: 0.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub skip: u32,
    /// The number of calls that fail. Default: all, until the faults are cleared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub times: Option<u32>,
    /// The effect on these calls.
    pub action: FaultAction,
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde passes a reference"
)]
fn is_zero(number: &u32) -> bool {
    *number == 0
}

impl Fault {
    /// Creates a fault of every call of this path, until the faults are cleared.
    pub fn new(path: impl Into<String>, action: FaultAction) -> Self {
        Self {
            method: None,
            path: path.into(),
            skip: 0,
            times: None,
            action,
        }
    }

    /// Limits the number of calls that fail.
    #[must_use]
    pub fn times(mut self, times: u32) -> Self {
        self.times = Some(times);
        self
    }

    /// Lets this number of matching calls pass first.
    #[must_use]
    pub fn after(mut self, calls: u32) -> Self {
        self.skip = calls;
        self
    }

    /// Restricts the fault to calls with this method.
    #[must_use]
    pub fn method(mut self, method: impl Into<String>) -> Self {
        self.method = Some(method.into());
        self
    }
}

/// The faults of an emulator. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct Faults {
    state: Arc<Mutex<FaultState>>,
}

#[derive(Debug, Default)]
struct FaultState {
    faults: Vec<Fault>,
    page_size: Option<usize>,
    hits: u64,
}

/// The reason for rejecting a fault.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FaultError {
    /// The status is not one of a final response.
    #[error("{0} is not a status of a final answer: 200 to 599 are")]
    Status(u16),
    /// The delay exceeds an hour.
    #[error("a delay of {0} ms is longer than an hour")]
    Delay(u64),
    /// No call can have such a path.
    #[error("no call ever has the path `{0}`: {1}")]
    Path(String, &'static str),
    /// The fault would affect no call.
    #[error("a fault that hits no call is none; without Times it hits all, until it is cleared")]
    Times,
    /// Too many faults are pending.
    #[error("there are {MAX_FAULTS} faults already")]
    TooMany,
}

/// Checks that a call can have a path that matches the pattern.
fn check_path(path: &str) -> Result<(), FaultError> {
    let hint = if !path.starts_with(['/', '*']) {
        "it begins with / or *"
    } else if path.contains(['?', '#']) {
        "the query is no part of it"
    } else if is_own(path) {
        "no fault hits the calls below /emulator"
    } else {
        return Ok(());
    };
    Err(FaultError::Path(path.to_owned(), hint))
}

impl Faults {
    /// Adds a fault of later calls.
    ///
    /// # Errors
    ///
    /// A status outside 200 to 599, a delay of more than an hour, a path that no call has, no calls to
    /// affect, and the 1,001st fault.
    pub fn inject(&self, fault: Fault) -> Result<(), FaultError> {
        fault.action.check()?;
        check_path(&fault.path)?;
        if fault.times == Some(0) {
            return Err(FaultError::Times);
        }
        let mut state = self.lock();
        if state.faults.len() >= MAX_FAULTS {
            return Err(FaultError::TooMany);
        }
        state.faults.push(fault);
        Ok(())
    }

    /// Lets the next `times` calls of this path (`*` stands for any text) fail with this status and code.
    ///
    /// # Errors
    ///
    /// Those of [`inject`](Self::inject).
    pub fn fail_next(
        &self,
        times: u32,
        path: &str,
        status: u16,
        code: &str,
    ) -> Result<(), FaultError> {
        self.inject(Fault::new(path, FaultAction::fail(status, code)).times(times))
    }

    /// Delays the responses to the next `times` calls of this path, in real time.
    ///
    /// # Errors
    ///
    /// Those of [`inject`](Self::inject).
    pub fn delay_next(&self, times: u32, path: &str, delay: Duration) -> Result<(), FaultError> {
        let milliseconds = u64::try_from(delay.as_millis()).unwrap_or(u64::MAX);
        self.inject(Fault::new(path, FaultAction::Delay { milliseconds }).times(times))
    }

    /// Limits the number of items of all pages. `None`: no limit.
    pub fn set_page_size(&self, items: Option<usize>) {
        self.lock().page_size = items;
    }

    /// Returns the value of the last [`set_page_size`](Self::set_page_size).
    pub fn page_size(&self) -> Option<usize> {
        self.lock().page_size
    }

    /// Removes all faults. The page size stays.
    pub fn clear(&self) {
        self.lock().faults.clear();
    }

    /// Returns the pending faults, in the order in which they were injected.
    pub fn waiting(&self) -> Vec<Fault> {
        self.lock().faults.clone()
    }

    /// Returns the number of calls that faults have affected.
    pub fn hits(&self) -> u64 {
        self.lock().hits
    }

    /// Takes the fault of this call. Only the first fault that matches applies.
    pub(crate) fn take(&self, method: &str, path: &str) -> Option<FaultAction> {
        let mut state = self.lock();
        let at = state.faults.iter_mut().position(|fault| {
            let hit = fault
                .method
                .as_deref()
                .is_none_or(|wanted| wanted.eq_ignore_ascii_case(method))
                && matches(&fault.path, path);
            if hit && fault.skip > 0 {
                fault.skip -= 1;
                return false;
            }
            hit
        })?;
        state.hits += 1;
        let fault = state.faults.get_mut(at)?;
        let action = fault.action.clone();
        if let Some(times) = &mut fault.times {
            *times -= 1;
            if *times == 0 {
                state.faults.remove(at);
            }
        }
        Some(action)
    }

    /// Returns the paging of a call with this fault.
    pub(crate) fn pages(&self, action: Option<&FaultAction>) -> PageFaults {
        let forced = self.page_size();
        match action {
            Some(FaultAction::ShortPage { items }) => PageFaults {
                at_most: Some(forced.map_or(*items, |forced| forced.min(*items))),
                repeat_token: false,
            },
            Some(FaultAction::RepeatToken) => PageFaults {
                at_most: forced,
                repeat_token: true,
            },
            _ => PageFaults {
                at_most: forced,
                repeat_token: false,
            },
        }
    }

    /// Locks the state. Every change is atomic, so a panic of another thread leaves it consistent.
    fn lock(&self) -> parking_lot::MutexGuard<'_, FaultState> {
        self.state.lock()
    }
}
