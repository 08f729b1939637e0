//! Probes of active health checks.

use std::error::Error as StdError;
use std::time::Duration;

use async_trait::async_trait;
use http::StatusCode;
use proxy_model::compiled::{Cluster, Destination};

/// Probes destinations.
///
/// The default sends `GET` to the health address of the destination, with the path [for the
/// destination](proxy_model::compiled::ActiveCheck::path_at) and the query of the check. Tests
/// replace it with a script.
#[async_trait]
pub trait Probe: Send + Sync {
    /// Probes a destination once, and returns the status of its response.
    ///
    /// Must be cancel safe: the check drops the future at its timeout, or when the destination is
    /// removed or its health address, `Host`, path or query changes. An implementation needs no
    /// timeout of its own.
    async fn probe(
        &self,
        cluster: &Cluster,
        destination: &Destination,
    ) -> Result<StatusCode, ProbeError>;
}

/// The reason why a probe has no response.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ProbeError {
    /// The destination did not answer in time.
    #[error("no answer within {0:?}")]
    TimedOut(Duration),
    /// The destination could not be reached, or did not speak HTTP.
    #[error("no answer")]
    NoAnswer(#[source] Box<dyn StdError + Send + Sync>),
    /// The destination answered that it, or its service, is not well.
    #[error("answered {0}")]
    Rejected(String),
    /// The program's own probe panicked.
    #[error("the probe panicked: {0}")]
    Panicked(String),
}

impl ProbeError {
    /// A short name, the same for every probe that fails so.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::TimedOut(_) => "timed_out",
            Self::NoAnswer(_) => "no_answer",
            Self::Rejected(_) => "rejected",
            Self::Panicked(_) => "panicked",
        }
    }
}
