//! Progress, time limits and end of an exchange with a destination.

pub(crate) mod alarm;
#[cfg_attr(
    not(feature = "server"),
    expect(dead_code, reason = "for the clients of a server")
)]
mod client_read_limit;
#[cfg_attr(
    not(feature = "server"),
    expect(dead_code, unreachable_pub, reason = "for the clients of a server")
)]
mod data_rate;
mod deadlines;
mod end;
mod pace;
#[cfg_attr(
    not(feature = "server"),
    expect(dead_code, reason = "for the clients of a server")
)]
mod read_timeout;
mod timeout;

pub(crate) use self::client_read_limit::ClientReadLimit;
#[cfg(feature = "server")]
pub use self::data_rate::DataRate;
#[cfg(not(feature = "server"))]
pub(crate) use self::data_rate::DataRate;
pub(crate) use self::deadlines::{Deadlines, after, within};
pub(crate) use self::end::{End, Stage};
pub(crate) use self::pace::Pace;
pub(crate) use self::read_timeout::ClientReadTimeout;
pub(crate) use self::timeout::{Activity, IdleTimer, Timer};
