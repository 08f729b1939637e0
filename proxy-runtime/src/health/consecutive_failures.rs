//! The policy that is built in.

use super::{ActiveHealthPolicy, Health, Probed};

/// A destination is unhealthy after so many failures in a row, and healthy after one success.
///
/// An answer with a status of 2xx is a success; any other one, and none at all, is a failure. The number of failures is
/// the cluster's metadata `ConsecutiveFailuresHealthPolicy.Threshold`, else 2. Below it the destination stays as it was.
#[derive(Clone, Copy, Debug, Default)]
pub struct ConsecutiveFailures;

impl ActiveHealthPolicy for ConsecutiveFailures {
    fn judge(&self, probed: &Probed<'_>) -> Health {
        if probed.result.is_ok_and(|status| status.is_success()) {
            Health::Healthy
        } else if f64::from(probed.failures) < probed.check.threshold() {
            probed.health
        } else {
            Health::Unhealthy
        }
    }
}
