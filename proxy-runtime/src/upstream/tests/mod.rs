mod places;
mod scripted;
mod versions;

pub(crate) use self::scripted::{Counted, Resetting, Scripted};
