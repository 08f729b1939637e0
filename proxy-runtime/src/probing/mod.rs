//! The execution of active health checks over the clusters of the active configuration.

mod active;
mod grpc;
mod round;
#[cfg(test)]
mod tests;
mod upstream_probe;

pub(crate) use self::active::ActiveChecks;
pub(crate) use self::upstream_probe::UpstreamProbe;
