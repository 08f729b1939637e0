//! The clock of a node.

use super::Node;
use super::timers::{Timer, TimerId};
use crate::hosting::timestamp::Timestamp;

impl Node {
    /// Returns the time.
    pub fn now(&self) -> Timestamp {
        self.now
    }

    /// Returns the time of the next timer. `None` if no timer is set.
    pub fn next_due(&self) -> Option<Timestamp> {
        self.timers.next_due()
    }

    /// Advances the clock to `to`. All timers that are due until then, `to` included, fire in order. A time
    /// that is not later than now fires only the timers that are due now.
    pub fn advance(&mut self, to: Timestamp) {
        while self.step(to) {}
    }

    /// Fires the next timer that is due until `to`, and returns true. Without one, sets the clock to `to` and
    /// returns false. For callers that limit the work: [`advance`](Self::advance) to a distant time can fire
    /// any number of timers.
    pub fn step(&mut self, to: Timestamp) -> bool {
        let to = to.max(self.now);
        let Some((id, timer)) = self.timers.pop(to) else {
            self.now = to;
            return false;
        };
        self.now = self.now.max(id.due());
        self.fire(id, timer);
        true
    }

    fn fire(&mut self, id: TimerId, timer: Timer) {
        // An owner that no longer waits for this very timer has moved on, so the timer is ignored.
        if !self.is_awaited(id, &timer) {
            return;
        }
        match timer {
            Timer::SetupEnds(process) => self.setup_ended(&process),
            Timer::Start(process) => self.start_again(&process),
            Timer::Register(process) => self.register(&process),
            Timer::ProcessesStopped(package) => self.processes_stopped(&package),
            Timer::AttemptStarts(package) => self.attempt(&package),
            Timer::AttemptEnds(package) => self.attempt_ended(&package),
            Timer::Poll(replica) => self.poll(&replica),
            Timer::Disable(service_type) => self.disable(&service_type),
            Timer::RegistrationTimeout(service_type) => self.registration_timed_out(&service_type),
            Timer::Reset(process) => self.forget_failures(&process),
            Timer::DeactivatePackage(package) => self.deactivate_package(&package),
            Timer::DeactivateApplication(application) => self.deactivate_application(&application),
            Timer::RetryDeactivation(package) => self.stop_and_wait(&package),
            Timer::Scan => self.scan(),
            Timer::LifeEnds(process, exit_code) => self.life_ended(&process, exit_code),
        }
    }

    /// Returns true if the owner of a timer waits for it, and clears the owner's timer.
    fn is_awaited(&mut self, id: TimerId, timer: &Timer) -> bool {
        let owned = match timer {
            Timer::SetupEnds(process) | Timer::Start(process) => {
                self.code_mut(process).map(|code| &mut code.timer)
            }
            Timer::Register(process) => self.code_mut(process).map(|code| &mut code.registration),
            Timer::Reset(process) => self.code_mut(process).map(|code| &mut code.reset),
            Timer::LifeEnds(process, _) => self.code_mut(process).map(|code| &mut code.life),
            Timer::ProcessesStopped(package) | Timer::RetryDeactivation(package) => self
                .packages
                .get_mut(package)
                .map(|package| &mut package.stopping),
            Timer::AttemptStarts(package) | Timer::AttemptEnds(package) => self
                .packages
                .get_mut(package)
                .and_then(|package| package.operation.as_mut())
                .map(|operation| &mut operation.timer),
            Timer::Poll(replica) => self.slots.get_mut(replica).map(|slot| &mut slot.poll),
            Timer::Disable(key) => self
                .type_mut(key)
                .map(|service_type| &mut service_type.disable),
            Timer::RegistrationTimeout(key) => self
                .type_mut(key)
                .map(|service_type| &mut service_type.timeout),
            Timer::DeactivatePackage(package) => self
                .packages
                .get_mut(package)
                .map(|package| &mut package.deactivation),
            Timer::DeactivateApplication(name) => self
                .applications
                .get_mut(name)
                .map(|application| &mut application.deactivation),
            Timer::Scan => Some(&mut self.scan),
        };
        match owned {
            Some(owned) if *owned == Some(id) => {
                *owned = None;
                true
            }
            _ => false,
        }
    }
}
