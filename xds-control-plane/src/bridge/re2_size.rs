//! The size limit of generated expressions, as Envoys require.

use super::report::Inexpressible;
use crate::assemble::re2_size::MOST;

pub(super) use crate::assemble::re2_size::fits;

/// Rejects an expression that is too large for Envoys.
pub(super) fn check(key: &str, regex: &str) -> Result<(), Inexpressible> {
    match fits(regex) {
        true => Ok(()),
        false => Err(Inexpressible::new(
            key,
            format!(
                "the expression that says it has more than the {MOST} instructions that Envoys take"
            ),
        )),
    }
}
