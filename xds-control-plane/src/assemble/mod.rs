//! What the services of all sources want to be served becomes one [`Snapshot`](crate::snapshot::Snapshot).

mod options;
mod outcome;
mod services;

pub use self::options::AssembleOptions;
pub use self::outcome::{Assembled, Quarantined, Reason, Warning};
pub use self::services::{Owner, ServiceResources};
