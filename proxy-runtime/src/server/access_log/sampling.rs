//! The part of records that is written.

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use super::record::AccessRecord;

/// Chooses records: all failures, and an even part of the others.
#[derive(Debug)]
pub(super) struct Sampling {
    /// The part in units of 2⁻³².
    part: u64,
    /// The sum of the parts of earlier records, modulo 1.
    sum: AtomicU32,
}

impl Sampling {
    /// A part of 0 to 1; others are limited to this range.
    pub(super) fn of(part: f64) -> Self {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "the part is between 0 and 1"
        )]
        let part = (part.clamp(0.0, 1.0) * f64::from(u32::MAX)).round() as u64;
        Self {
            // All of them is a whole unit, which the largest fraction is not.
            part: if part == u64::from(u32::MAX) {
                1 << 32
            } else {
                part
            },
            sum: AtomicU32::new(0),
        }
    }

    /// Returns true if the record must be written.
    pub(super) fn takes(&self, record: &AccessRecord<'_>) -> bool {
        if self.part == 1 << 32 || record.is_failure() {
            return true;
        }
        // Each time that the sum passes 1, one record is due: so is every tenth for a part of 0.1.
        let Ok(step) = u32::try_from(self.part) else {
            return true;
        };
        self.sum
            .fetch_add(step, Relaxed)
            .checked_add(step)
            .is_none()
    }
}

#[cfg(test)]
mod tests {
    use http::StatusCode;

    use super::super::tests::record;
    use super::*;
    use crate::error::Cause;
    use crate::response::ExchangeInfo;
    use crate::server::Outcome;

    #[test]
    fn the_part_is_kept_exactly() {
        for (part, expected) in [
            (1.0, 1000),
            (0.1, 100),
            (0.25, 250),
            (0.0, 0),
            (7.0, 1000),
            (-1.0, 0),
        ] {
            let sampling = Sampling::of(part);
            let taken = (0..1000).filter(|_| sampling.takes(&record())).count();
            assert!(taken.abs_diff(expected) <= 1, "{part}: {taken}");
        }
    }

    #[test]
    fn failures_are_always_taken() {
        let sampling = Sampling::of(0.0);
        let ok = record();
        assert!(!sampling.takes(&ok));
        for failure in [
            AccessRecord {
                status: Some(StatusCode::BAD_GATEWAY),
                ..ok.clone()
            },
            AccessRecord {
                status: None,
                ..ok.clone()
            },
            AccessRecord {
                outcome: Outcome::Failed,
                ..ok.clone()
            },
            AccessRecord {
                rejection: Some("too large"),
                ..ok.clone()
            },
            AccessRecord {
                body_error: Some(crate::error::ForwardErrorKind::ResponseBodyDestination),
                ..ok.clone()
            },
        ] {
            assert!(sampling.takes(&failure), "{failure:?}");
        }
        let told = |reply| ExchangeInfo {
            reply: Some(reply),
            ..ExchangeInfo::default()
        };
        for (status, cause, is_taken) in [
            (StatusCode::FORBIDDEN, Cause::RejectedByPolicy, true),
            (StatusCode::TOO_MANY_REQUESTS, Cause::OverLimit, true),
            (StatusCode::NOT_FOUND, Cause::NoRoute, false),
        ] {
            let record = AccessRecord {
                status: Some(status),
                exchange: Some(&told(cause)),
                ..ok.clone()
            };
            assert_eq!(sampling.takes(&record), is_taken, "{cause:?}");
        }
        let client_error = AccessRecord {
            status: Some(StatusCode::NOT_FOUND),
            ..ok
        };
        assert!(
            !sampling.takes(&client_error),
            "a client's mistake is no failure of ours"
        );
    }
}
