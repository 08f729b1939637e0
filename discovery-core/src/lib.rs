#![doc = include_str!("../README.md")]

pub mod address;
mod backoff;
mod contain;
mod discoverer;
mod discovery;
mod endpoints;
mod error;
mod filter;
pub mod labels;
pub mod merge;
mod persist;
mod provider;
pub mod providers;
mod replace;
mod report;
pub mod resolver;
pub mod runner;
mod status;
mod summary;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
pub mod text;
mod timestamp;
mod unreachable;
mod validator;
pub mod validators;

pub use self::backoff::Backoff;
pub use self::discoverer::Discoverer;
pub use self::discovery::{
    Destinations, DiscoveredService, Discovery, FailedGroup, LabelledService, Labels, Outdated,
    Rebuild, ServiceContent,
};
pub use self::error::{DiscoverError, DiscoverErrorKind};
pub use self::filter::{ConfigFilter, FilterContext};
pub use self::labels::{KeyValueLabels, LabelsParser, Parsed};
pub use self::merge::{Merge, Merged, MergedState};
pub use self::provider::{ConfigProvider, ProviderState, Strictness};
#[cfg(feature = "file")]
pub use self::providers::FileProvider;
pub use self::providers::StaticProvider;
pub use self::replace::{Replacement, check_directory};
pub use self::report::{CycleReport, FinishedCycle, ServiceOutcome, ServiceReport};
pub use self::resolver::DestinationResolver;
pub use self::runner::{DiscoveryProvider, Runner, RunnerOptions};
pub use self::status::{
    Failure, PersistenceStatus, ProviderStatus, QuarantinedService, SourceState, rough_age,
};
pub use self::timestamp::Timestamp;
pub use self::unreachable::{Unreachable, UnreachableClusters, UnreachableService};
pub use self::validator::{Candidate, ConfigValidator, Scope};
