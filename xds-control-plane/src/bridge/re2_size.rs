//! Keeps the expressions that are written here as small as Envoys want them.

use super::report::Inexpressible;
use crate::assemble::re2_size::MOST;

pub(super) use crate::assemble::re2_size::fits;

/// Refuses an expression that is too large for Envoys.
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
