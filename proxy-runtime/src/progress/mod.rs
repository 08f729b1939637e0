//! How far an exchange with a destination has come, how long it may take, and how it ends.

pub(crate) mod alarm;
#[cfg(feature = "server")]
mod client_read_limit;
mod continuation;
mod deadlines;
mod end;
mod outgoing_body;
mod shared_progress;
mod timeout;

#[cfg(feature = "server")]
pub(crate) use self::client_read_limit::ClientReadLimit;
pub(crate) use self::continuation::{Continuation, Gate};
pub(crate) use self::deadlines::{Deadlines, after, within};
pub(crate) use self::end::{End, Stage};
pub(crate) use self::outgoing_body::{OutgoingBody, UploadError, UploadLimits};
pub(crate) use self::shared_progress::SharedProgress;
pub(crate) use self::timeout::{Activity, HeadTimer, IdleTimer};
