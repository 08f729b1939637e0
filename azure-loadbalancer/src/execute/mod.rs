//! Plans, carried out: each write after those that it waits for, over what was read and nothing else, until a new plan has
//! nothing left to write.
//!
//! Writes say which etag they are for. When somebody else has written meanwhile (412) everything is read and planned anew; what is
//! refused for one service does not keep others from having theirs.

mod executor;
mod follow;
mod graph;
mod options;
mod outcome;
mod read;
mod write;

pub use self::executor::{Executor, ReconcileError};
pub use self::follow::{FollowOptions, follow};
pub use self::options::ExecutorOptions;
pub use self::outcome::{Reconciled, ServiceError, WrittenAction};
pub use self::read::read_snapshot;
