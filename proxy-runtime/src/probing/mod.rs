//! Active health checks at work: rounds of probes over the clusters of the configuration that serves.

mod active;
mod round;
#[cfg(test)]
mod tests;
mod upstream_probe;

pub(crate) use self::active::ActiveChecks;
pub(crate) use self::upstream_probe::UpstreamProbe;
