//! The response to a client: its body, and the account of its request, which is closed when the body ends.

mod account;
mod attempts;
mod body;
mod download;
mod exchange;
mod info;
mod open_account;
mod slot;
mod trailer_rules;

pub(crate) use self::account::Account;
pub(crate) use self::attempts::Attempts;
pub use self::body::{BodyEnd, BodyError, ProxyBody};
pub(crate) use self::download::Download;
pub(crate) use self::exchange::{Exchange, ExchangeBody};
pub use self::info::ExchangeInfo;
pub(crate) use self::open_account::OpenAccount;
pub(crate) use self::slot::Slot;
pub(crate) use self::trailer_rules::TrailerRules;
