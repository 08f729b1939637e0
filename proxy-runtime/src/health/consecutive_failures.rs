//! The built-in policy of active health checks.

use super::{ActiveHealthPolicy, Health, Probed};

/// Marks a destination unhealthy after a number of consecutive failures, and healthy after a number
/// of consecutive successes.
///
/// A response with a 2xx status is a success; any other response, or none, is a failure. The number
/// of failures is the metadata `ConsecutiveFailuresHealthPolicy.Threshold` of the cluster. Below it
/// the health does not change. Default: 2. The number of successes is `Rise` of the check, for an
/// unhealthy destination. Default: 1.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ConsecutiveFailures;

impl ActiveHealthPolicy for ConsecutiveFailures {
    fn evaluate(&self, probed: &Probed<'_>) -> Health {
        if probed.result.is_ok_and(|status| status.is_success()) {
            let has_risen = probed.successes >= probed.check.rise();
            match probed.health == Health::Unhealthy && !has_risen {
                true => Health::Unhealthy,
                false => Health::Healthy,
            }
        } else if f64::from(probed.failures) < probed.check.threshold() {
            probed.health
        } else {
            Health::Unhealthy
        }
    }
}
