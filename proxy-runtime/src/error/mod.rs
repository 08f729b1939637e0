//! Errors of requests.

mod allowance;
mod cause;
mod client_body;
mod ending;
mod forward;
#[cfg(feature = "server")]
mod request_body;

pub(crate) use self::allowance::{Allowance, TOO_LARGE};
pub use self::cause::Cause;
pub(crate) use self::cause::is_of_machine;
pub(crate) use self::client_body::status_of;
pub(crate) use self::ending::Dropping;
pub use self::forward::{ForwardError, ForwardErrorKind, Side};
#[cfg(feature = "server")]
pub use self::request_body::RequestBodyError;
