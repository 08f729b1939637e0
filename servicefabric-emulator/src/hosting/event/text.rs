//! The text of events, for people.

use std::fmt;

use super::{DeactivationTarget, Deferral, Event, Logged, Phase, Rejection};
use crate::hosting::health::HealthReport;
use crate::hosting::timestamp::Timestamp;

impl fmt::Display for Logged {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:>10}  {}", self.at, self.event)
    }
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Download => "download",
            Self::Activation => "activation",
        })
    }
}

impl fmt::Display for DeactivationTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Application(name) => write!(f, "application {name}"),
            Self::Package(key) => write!(f, "package {key}"),
        }
    }
}

impl fmt::Display for Deferral {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::PackageStarting => "the package is being downloaded or activated",
            Self::TypeNotRegistered => "the type is not registered",
            Self::TypeDisabled => "the type is disabled",
            Self::Closing => "the package is being deactivated",
        })
    }
}

impl fmt::Display for Rejection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::TypeDisabled => "the type is disabled",
            Self::TooManyRetries => "too many retries",
            Self::HostKeepsFailing => "its host keeps failing",
            Self::NodeStopped => "the node stopped",
        })
    }
}

/// `at 15s` or `never`.
struct When(Option<Timestamp>);

impl fmt::Display for When {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(at) => write!(f, "at {at}"),
            None => f.write_str("never"),
        }
    }
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NodeStarted => f.write_str("node started"),
            Self::NodeStopped => f.write_str("node stopped"),
            Self::ReplicaPlaced {
                replica,
                package,
                service_type,
            } => {
                write!(f, "replica {replica} placed: {package}:{service_type}")
            }
            Self::PlacementDeferred {
                replica,
                reason,
                retry_at,
            } => {
                write!(
                    f,
                    "replica {replica} waits: {reason}; asked again {}",
                    When(*retry_at)
                )
            }
            Self::PlacementRejected { replica, reason } => {
                write!(f, "replica {replica} rejected: {reason}")
            }
            Self::ReplicaOpened {
                replica,
                process,
                process_id,
            } => {
                write!(
                    f,
                    "replica {replica} opened in {process} (process {process_id})"
                )
            }
            Self::ReplicaDown { replica, process } => {
                write!(f, "replica {replica} down with {process}")
            }
            Self::ReplicaClosed { replica } => write!(f, "replica {replica} closed"),
            Self::ApplicationActivated { application } => {
                write!(f, "application {application} activated")
            }
            Self::AttemptStarted {
                package,
                version,
                phase,
                attempt,
            } => {
                write!(f, "package {package} {version}: {phase} attempt {attempt}")
            }
            Self::AttemptFailed {
                package,
                version,
                phase,
                failures,
                retry_at,
            } => write!(
                f,
                "package {package} {version}: {phase} failed ({failures} so far); next attempt {}",
                When(*retry_at)
            ),
            Self::OperationAbandoned {
                package,
                version,
                phase,
                failures,
            } => {
                write!(
                    f,
                    "package {package} {version}: {phase} given up after {failures} failures"
                )
            }
            Self::PackageDownloaded { package, version } => {
                write!(f, "package {package} {version} downloaded")
            }
            Self::PackageActivated { package, version } => {
                write!(f, "package {package} {version} activated")
            }
            Self::UpgradeStarted { package, from, to } => {
                write!(f, "package {package}: upgrade from {from} to {to}")
            }
            Self::UpgradeAbandoned { package, version } => {
                write!(f, "package {package}: upgrade given up, {version} runs on")
            }
            Self::SetupStarted { process } => write!(f, "setup {process} started"),
            Self::SetupFinished { process, exit_code } => {
                write!(f, "setup {process} ended with {exit_code}")
            }
            Self::ProcessStarted {
                process,
                process_id,
            } => write!(f, "process {process} started as {process_id}"),
            Self::ProcessStartFailed { process } => write!(f, "process {process} failed to start"),
            Self::ProcessExited {
                process,
                process_id,
                exit_code,
            } => {
                write!(
                    f,
                    "process {process} ({process_id}) exited with {exit_code}"
                )
            }
            Self::ProcessBackingOff {
                process,
                failures,
                wait,
                restart_at,
            } => write!(
                f,
                "process {process} backs off {wait} after failure {failures}; next start {}",
                When(*restart_at)
            ),
            Self::ProcessStopping {
                process,
                process_id,
            } => write!(f, "process {process} ({process_id}) gets Ctrl+C"),
            Self::FailuresForgotten { process } => {
                write!(f, "process {process} is well: failures forgotten")
            }
            Self::TypeRegistered { service_type } => write!(f, "type {service_type} registered"),
            Self::TypeUnregistered { service_type } => {
                write!(f, "type {service_type} unregistered")
            }
            Self::TypeRegistrationTimedOut { service_type } => {
                write!(f, "type {service_type} not registered in time")
            }
            Self::TypeDisableScheduled {
                service_type,
                disable_at,
            } => {
                write!(f, "type {service_type} will be disabled at {disable_at}")
            }
            Self::TypeDisableCancelled { service_type } => {
                write!(f, "type {service_type} will not be disabled")
            }
            Self::TypeDisabled { service_type } => write!(f, "type {service_type} disabled"),
            Self::TypeEnabled { service_type } => write!(f, "type {service_type} enabled"),
            Self::DeactivationScheduled { target, due } => {
                write!(f, "{target} will be deactivated at {due}")
            }
            Self::DeactivationCancelled { target } => write!(f, "{target} will not be deactivated"),
            Self::DeactivationStarted { target } => write!(f, "{target} is being deactivated"),
            Self::DeactivationFailed {
                package,
                failures,
                retry_at,
            } => write!(
                f,
                "package {package}: deactivation failed ({failures} so far); next attempt {}",
                When(*retry_at)
            ),
            Self::Deactivated { target } => write!(f, "{target} deactivated"),
            Self::Health {
                entity,
                property,
                report,
            } => match report {
                HealthReport::State { state, description } => {
                    write!(f, "health {entity} {property}: {state}: {description}")
                }
                HealthReport::Removed => write!(f, "health {entity} {property}: removed"),
            },
        }
    }
}
