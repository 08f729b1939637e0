//! How a destination is asked whether it is well.

use std::error::Error as StdError;
use std::time::Duration;

use async_trait::async_trait;
use http::StatusCode;
use proxy_model::compiled::{Cluster, Destination};

/// Asks destinations whether they are well.
///
/// The proxy's own sends `GET` to the destination's health address with the path that the check has
/// [for the destination](proxy_model::compiled::ActiveCheck::path_at), and the check's query. Tests put a script in its
/// place.
#[async_trait]
pub trait Probe: Send + Sync {
    /// Asks once, and gives the status of the answer.
    ///
    /// The check drops the future when its timeout has passed, or when the destination is gone or has another health
    /// address, `Host`, path or query, so an implementation needs none of its own; whatever the
    /// future holds must be released then.
    async fn probe(
        &self,
        cluster: &Cluster,
        destination: &Destination,
    ) -> Result<StatusCode, ProbeError>;
}

/// Why a probe brought no answer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ProbeError {
    /// The destination did not answer in time.
    #[error("no answer within {0:?}")]
    TimedOut(Duration),
    /// The destination could not be reached, or did not speak HTTP.
    #[error("no answer")]
    NoAnswer(#[source] Box<dyn StdError + Send + Sync>),
    /// The program's own probe panicked.
    #[error("the probe panicked: {0}")]
    Panicked(String),
}
