//! Queries that wait for a change.

mod follower;
mod index;
mod token_bucket;

pub use self::follower::{FollowOptions, Followed, Follower};
pub use self::index::{BlockingIndex, Moved};
