//! Execution of plans: each write after its prerequisites, against the state that was read, until a new plan
//! has no writes left.
//!
//! Writes carry the etag that they are based on. After a concurrent write (412), everything is read and
//! planned again. A write rejected because of one service does not block others: the rejection is attributed
//! to that service, and the next plan leaves its resources as they are.

mod executor;
mod follow;
mod graph;
mod options;
mod outcome;
mod read;
mod rejections;
mod run;
mod write;

pub use self::executor::{Executor, ReconcileError};
pub use self::follow::{FollowOptions, Observer, follow};
pub use self::options::ExecutorOptions;
pub use self::outcome::{ActionResult, Executed, Reconciled, ServiceError, WrittenAction};
pub use self::read::read_snapshot;
