//! A small and simple resource manager for tests of plans.
#![allow(dead_code, reason = "each test uses its part")]

mod azure;
mod echo;
mod fixture;
pub(crate) mod leases;
mod rejections;

pub(crate) use self::azure::Azure;
pub(crate) use self::echo::Echo;
pub(crate) use self::fixture::*;
