//! The execution of active health checks and of agent checks over the clusters of the active configuration.

mod active;
mod agent;
mod grpc;
mod round;
#[cfg(test)]
mod tests;
mod upstream_probe;

pub(crate) use self::active::ActiveChecks;
pub(crate) use self::agent::AgentChecks;
pub(crate) use self::upstream_probe::UpstreamProbe;
