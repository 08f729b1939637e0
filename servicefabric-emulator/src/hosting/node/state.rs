//! The state of a node.

use std::sync::Arc;

use super::process::is_success;
use super::timers::TimerId;
use crate::hosting::deployed::{EntryPointStatistics, SlotStatus, TypeStatus};
use crate::hosting::description::{CodePackageDescription, PackageDescription, Placement};
use crate::hosting::event::{Deferral, Phase};
use crate::hosting::health::HealthState;
use crate::hosting::timestamp::Timestamp;

/// An application that is tracked for deactivation.
#[derive(Debug, Clone)]
pub(super) struct TrackedApplication {
    /// The number of open replicas of all its packages.
    pub(super) usage: u32,
    /// The time since which there is none.
    pub(super) unused_since: Option<Timestamp>,
    /// True while the application is being deactivated.
    pub(super) closing: bool,
    /// The timer of the scheduled deactivation.
    pub(super) deactivation: Option<TimerId>,
}

/// A package instance. An inactive one is absent.
#[derive(Debug, Clone)]
pub(super) struct Package {
    /// The description of the version that runs or is being activated.
    pub(super) description: Arc<PackageDescription>,
    pub(super) state: PackageState,
    /// The download or activation in progress. On an active package: that of a newer version.
    pub(super) operation: Option<Operation>,
    /// The number of open replicas.
    pub(super) usage: u32,
    /// The time since which there is none. Tracked only from the end of the download.
    pub(super) unused_since: Option<Timestamp>,
    /// The timer of the scheduled deactivation.
    pub(super) deactivation: Option<TimerId>,
    /// True if an upgrade has put the deactivation off. It is scheduled afterwards, unless the package is
    /// used then.
    pub(super) put_off: bool,
    /// The number of failed deactivations.
    pub(super) deactivation_failures: u32,
    /// The timer for the end of stopping processes, or for the retry of a failed deactivation.
    pub(super) stopping: Option<TimerId>,
    pub(super) codes: Vec<Code>,
    pub(super) types: Vec<TrackedServiceType>,
}

impl Package {
    pub(super) fn new(description: Arc<PackageDescription>) -> Self {
        let mut package = Self {
            description: Arc::clone(&description),
            state: PackageState::Starting,
            operation: Some(Operation::new(description)),
            usage: 0,
            unused_since: None,
            deactivation: None,
            put_off: false,
            deactivation_failures: 0,
            stopping: None,
            codes: Vec::new(),
            types: Vec::new(),
        };
        package.reset_components();
        package
    }

    /// Resets code packages and service types to those of the description.
    pub(super) fn reset_components(&mut self) {
        let description = &self.description;
        self.codes = description
            .code_packages
            .iter()
            .map(|_| Code::default())
            .collect();
        self.types = description
            .code_packages
            .iter()
            .enumerate()
            .flat_map(|(code, about)| {
                about
                    .types()
                    .iter()
                    .map(move |name| TrackedServiceType::new(name, code))
            })
            .collect();
    }

    pub(super) fn code_index(&self, name: &str) -> Option<usize> {
        self.description
            .code_packages
            .iter()
            .position(|code| *code.name == *name)
    }

    pub(super) fn service_type(&self, name: &str) -> Option<&TrackedServiceType> {
        self.types.iter().find(|known| *known.name == *name)
    }

    pub(super) fn about(&self, code: usize) -> &CodePackageDescription {
        &self.description.code_packages[code]
    }

    /// Returns true if a new version is replacing a running one.
    pub(super) fn is_upgrading(&self) -> bool {
        self.operation
            .as_ref()
            .is_some_and(|operation| operation.upgrade)
    }
}

/// The state of a package instance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PackageState {
    /// The package is being downloaded and activated.
    Starting,
    /// The processes run or are being restarted.
    Active,
    /// The processes are being stopped so that a downloaded newer version can replace them.
    Replacing,
    /// The package is being removed, and cannot return before that is done.
    Deactivating,
}

/// A download, then an activation, with their retries.
#[derive(Debug, Clone)]
pub(super) struct Operation {
    pub(super) target: Arc<PackageDescription>,
    pub(super) upgrade: bool,
    pub(super) phase: Phase,
    /// The number of attempts of the phase.
    pub(super) attempts: u32,
    /// The failed attempts that count.
    pub(super) failures: u32,
    /// The failed attempts that do not count: internal errors.
    pub(super) internal_errors: u32,
    /// The timer of the next attempt, or of the end of the present one.
    pub(super) timer: Option<TimerId>,
    /// True while an attempt is in progress, false while it is awaited.
    pub(super) attempting: bool,
}

impl Operation {
    pub(super) fn new(target: Arc<PackageDescription>) -> Self {
        Self {
            target,
            upgrade: false,
            phase: Phase::Download,
            attempts: 0,
            failures: 0,
            internal_errors: 0,
            timer: None,
            attempting: false,
        }
    }

    /// Enters the next phase, whose counts begin at zero.
    pub(super) fn enter(&mut self, phase: Phase) {
        *self = Self {
            upgrade: self.upgrade,
            phase,
            ..Self::new(Arc::clone(&self.target))
        };
    }
}

/// A code package.
#[derive(Debug, Clone, Default)]
pub(super) struct Code {
    pub(super) state: CodeState,
    pub(super) setup: EntryPoint,
    pub(super) main: EntryPoint,
    /// The timer of the next start of the setup or the main entry point, or of the end of the setup.
    pub(super) timer: Option<TimerId>,
    /// The timer for the registration of its types.
    pub(super) registration: Option<TimerId>,
    /// The timer that resets its failures.
    pub(super) reset: Option<TimerId>,
    /// The timer for the scripted end of its life.
    pub(super) life: Option<TimerId>,
}

/// The state of the processes of a code package.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum CodeState {
    #[default]
    NotStarted,
    /// The setup entry point runs.
    Setup,
    /// The setup entry point failed and will be retried.
    SetupBackingOff,
    /// The main entry point runs.
    Running,
    /// The main entry point failed and will be retried.
    BackingOff,
    /// The main entry point was sent Ctrl+C.
    Stopping,
    /// The process has completed and need not run again.
    Completed,
    /// The process was stopped for good.
    Stopped,
}

/// An entry point and its counts.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct EntryPoint {
    pub(super) process_id: Option<u64>,
    pub(super) instance_id: u64,
    pub(super) statistics: EntryPointStatistics,
    /// The last reported health state. `None` if it never failed.
    pub(super) health: Option<HealthState>,
}

impl EntryPoint {
    /// Returns the number of consecutive failures: exits with an error and failed starts.
    pub(super) fn failures(&self) -> u32 {
        let statistics = &self.statistics;
        statistics
            .continuous_exit_failure_count
            .saturating_add(statistics.continuous_activation_failure_count)
    }

    pub(super) fn started(&mut self, process_id: u64, now: Timestamp) {
        self.process_id = Some(process_id);
        self.instance_id = process_id;
        let statistics = &mut self.statistics;
        statistics.activation_count = statistics.activation_count.saturating_add(1);
        statistics.last_activation = Some(now);
        statistics.last_successful_activation = Some(now);
    }

    pub(super) fn start_failed(&mut self, now: Timestamp) {
        let statistics = &mut self.statistics;
        statistics.last_activation = Some(now);
        for count in [
            &mut statistics.activation_count,
            &mut statistics.activation_failure_count,
            &mut statistics.continuous_activation_failure_count,
        ] {
            *count = count.saturating_add(1);
        }
    }

    pub(super) fn exited(&mut self, exit_code: i32, now: Timestamp) {
        self.process_id = None;
        let statistics = &mut self.statistics;
        statistics.last_exit_code = exit_code;
        statistics.last_exit = Some(now);
        statistics.exit_count = statistics.exit_count.saturating_add(1);
        if is_success(exit_code) {
            statistics.last_successful_exit = Some(now);
            return;
        }
        for count in [
            &mut statistics.exit_failure_count,
            &mut statistics.continuous_exit_failure_count,
        ] {
            *count = count.saturating_add(1);
        }
    }

    pub(super) fn forget_failures(&mut self) {
        self.statistics.continuous_exit_failure_count = 0;
        self.statistics.continuous_activation_failure_count = 0;
    }
}

/// The cause for disabling a service type, or for scheduling that.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FailureSource {
    /// The download or the activation of its package.
    Operation,
    /// The code package of the service type.
    CodePackage,
}

/// A service type.
#[derive(Debug, Clone)]
pub(super) struct TrackedServiceType {
    pub(super) name: Arc<str>,
    /// The index of the code package that hosts it.
    pub(super) code: usize,
    pub(super) status: TypeStatus,
    /// The unresolved failure, while the type is disabled or scheduled for that.
    pub(super) failure: Option<FailureSource>,
    /// The timer of the scheduled disabling.
    pub(super) disable: Option<TimerId>,
    /// The timer for the registration timeout.
    pub(super) timeout: Option<TimerId>,
}

impl TrackedServiceType {
    fn new(name: &Arc<str>, code: usize) -> Self {
        Self {
            name: Arc::clone(name),
            code,
            status: TypeStatus::Enabled,
            failure: None,
            disable: None,
            timeout: None,
        }
    }
}

/// A replica that is placed on the node.
#[derive(Debug, Clone)]
pub(super) struct Slot {
    pub(super) placement: Placement,
    pub(super) status: SlotStatus,
    /// The timer of the next poll.
    pub(super) poll: Option<TimerId>,
    /// The number of consecutive deferrals.
    pub(super) deferrals: u32,
    /// The last reason for a deferral.
    pub(super) deferral: Option<Deferral>,
}
