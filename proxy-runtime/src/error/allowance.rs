//! Limits of request bodies: the only place that responds with 413.

use http::StatusCode;

/// The status for a request body that exceeds a limit.
pub(crate) const TOO_LARGE: StatusCode = StatusCode::PAYLOAD_TOO_LARGE;

/// The bytes that a request body may still have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Allowance(u64);

impl Allowance {
    /// A limit in bytes. `None`: there is none.
    #[inline]
    pub(crate) fn new(limit: Option<u64>) -> Self {
        Self(limit.unwrap_or(u64::MAX))
    }

    /// Checks the length of a body, if it is known.
    ///
    /// # Errors
    ///
    /// The status for a body that is longer.
    #[inline]
    pub(crate) fn check(self, length: Option<u64>) -> Result<(), StatusCode> {
        match length {
            Some(length) if length > self.0 => Err(TOO_LARGE),
            _ => Ok(()),
        }
    }

    /// Subtracts `bytes` from the allowance.
    ///
    /// # Errors
    ///
    /// The status for a body that is longer.
    #[inline]
    pub(crate) fn take(&mut self, bytes: u64) -> Result<(), StatusCode> {
        self.0 = self.0.checked_sub(bytes).ok_or(TOO_LARGE)?;
        Ok(())
    }
}

impl Default for Allowance {
    fn default() -> Self {
        Self::new(None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_has_at_most_what_is_allowed() {
        for (limit, parts, is_admitted) in [
            (None, &[u64::MAX][..], true),
            (Some(0), &[0], true),
            (Some(0), &[1], false),
            (Some(5), &[2, 3], true),
            (Some(5), &[2, 4], false),
            (Some(5), &[6], false),
        ] {
            let mut allowance = Allowance::new(limit);
            let whole = allowance.check(Some(parts.iter().sum()));
            let one_by_one = parts.iter().try_for_each(|bytes| allowance.take(*bytes));
            let expected = is_admitted.then_some(()).ok_or(TOO_LARGE);
            assert_eq!(
                (whole, one_by_one),
                (expected, expected),
                "{limit:?} {parts:?}"
            );
            assert_eq!(Allowance::new(limit).check(None), Ok(()));
        }
    }
}
