//! Plans, carried out: each write after those that it waits for, over what was read and nothing else, until a new plan has
//! nothing left to write.
//!
//! Writes say which etag they are for. When somebody else has written meanwhile (412) everything is read and planned anew; what is
//! refused for one service does not keep others from having theirs: it is found out whom a write is refused for, and the next plan
//! leaves what that one has as it is.

mod executor;
mod follow;
mod graph;
mod options;
mod outcome;
mod read;
mod refusals;
mod run;
mod write;

pub use self::executor::{Executor, ReconcileError};
pub use self::follow::{FollowOptions, Observer, follow};
pub use self::options::ExecutorOptions;
pub use self::outcome::{ActionResult, Executed, Reconciled, ServiceError, WrittenAction};
pub use self::read::read_snapshot;
