mod places;
mod scripted;
mod versions;

pub(crate) use self::scripted::{Resetting, Scripted};
