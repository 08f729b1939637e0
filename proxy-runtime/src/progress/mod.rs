//! Progress, time limits and end of an exchange with a destination.

pub(crate) mod alarm;
mod continuation;
mod deadlines;
mod end;
mod outgoing_body;
mod shared_progress;
mod timeout;
#[cfg(feature = "server")]
mod uptake_limit;

pub(crate) use self::continuation::{Continuation, Gate};
pub(crate) use self::deadlines::{Deadlines, after, within};
pub(crate) use self::end::{End, Stage};
pub(crate) use self::outgoing_body::{OutgoingBody, UploadError, UploadLimits};
pub(crate) use self::shared_progress::SharedProgress;
pub(crate) use self::timeout::{Activity, HeadTimer, IdleTimer};
#[cfg(feature = "server")]
pub(crate) use self::uptake_limit::UptakeLimit;
