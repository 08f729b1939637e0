#![doc = include_str!("../README.md")]

mod compile;
pub mod compiled;
pub mod config;
mod diff;
mod foreign;
mod head;
mod id;
pub mod json;
pub mod matching;
mod problem;
#[cfg(feature = "schema")]
mod schema;
mod snapshot;
mod suggest;
mod time_span;
pub mod transform;
#[cfg(feature = "yaml")]
pub mod yaml;

pub use self::compile::{CompileOptions, MAX_PRIORITY, MAX_WEIGHT};
pub use self::diff::{Change, FieldChange, apply, diff, for_each_change};
pub use self::head::RequestHead;
pub use self::id::{ClusterId, DestinationId, RouteId, same_id};
pub use self::problem::{Problem, Problems, Severity, pointer_to};
#[cfg(feature = "schema")]
pub use self::schema::schema;
pub use self::snapshot::{ParseRevisionError, Revision, Snapshot};
pub use self::suggest::nearest;
pub use self::time_span::{ParseTimeSpanError, TimeSpan};
