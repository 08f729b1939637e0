//! The response to a client: its body, and the recorder of its request, which is closed when the body ends.

mod attempts;
mod body;
mod cause_header;
mod exchange;
mod info;
mod open_recorder;
mod recorder;
mod slot;
mod trailer_rules;

pub(crate) use self::attempts::LayerAttempts;
pub use self::body::{BodyEnd, BodyError, ProxyBody};
pub(crate) use self::cause_header::CauseHeader;
pub(crate) use self::exchange::{Exchange, ExchangeBody};
pub use self::info::ExchangeInfo;
pub(crate) use self::open_recorder::OpenRecorder;
pub(crate) use self::recorder::ExchangeRecorder;
pub(crate) use self::slot::ResponseSlot;
pub(crate) use self::trailer_rules::TrailerRules;
