//! Statistics of two things that were measured in several common rounds.

/// Median and range of several values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Spread {
    pub(crate) median: f64,
    pub(crate) least: f64,
    pub(crate) most: f64,
    /// Number of values.
    pub(crate) rounds: usize,
}

impl Spread {
    /// Computes the spread. Returns `None` without values; NaN and infinite values are left out.
    pub(crate) fn of(values: impl IntoIterator<Item = f64>) -> Option<Self> {
        let mut values: Vec<f64> = values
            .into_iter()
            .filter(|value| value.is_finite())
            .collect();
        values.sort_by(f64::total_cmp);
        let (&least, &most) = (values.first()?, values.last()?);
        let middle = values.len() / 2;
        let median = if values.len() % 2 == 1 {
            values[middle]
        } else {
            f64::midpoint(values[middle - 1], values[middle])
        };
        Some(Self {
            median,
            least,
            most,
            rounds: values.len(),
        })
    }

    /// The spread of `a / b`, round by round. A round without one of the values does not count: a
    /// machine's speed drifts, so only values of the same round are compared.
    pub(crate) fn of_ratios(a: &[Option<f64>], b: &[Option<f64>]) -> Option<Self> {
        Self::of(ratios(a, b))
    }
}

/// Returns `a / b` for each round in which both have a value.
pub(crate) fn ratios(a: &[Option<f64>], b: &[Option<f64>]) -> impl Iterator<Item = f64> {
    let paired = a.iter().zip(b);
    paired.filter_map(|(a, b)| Some((*a)? / (*b)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spread(median: f64, least: f64, most: f64, rounds: usize) -> Option<Spread> {
        Some(Spread {
            median,
            least,
            most,
            rounds,
        })
    }

    #[test]
    fn the_median_is_the_middle_or_between_the_two_in_the_middle() {
        assert_eq!(Spread::of([]), None);
        assert_eq!(Spread::of([3.0]), spread(3.0, 3.0, 3.0, 1));
        assert_eq!(Spread::of([9.0, 1.0, 2.0]), spread(2.0, 1.0, 9.0, 3));
        assert_eq!(
            Spread::of([4.0, 1.0, 2.0, 100.0]),
            spread(3.0, 1.0, 100.0, 4)
        );
    }

    #[test]
    fn ratios_are_taken_inside_a_round() {
        // The machine was half as fast in the second round: the ratio stays the same.
        let a = [Some(10.0), Some(20.0), Some(12.0)];
        let b = [Some(20.0), Some(40.0), Some(20.0)];
        assert_eq!(Spread::of_ratios(&a, &b), spread(0.5, 0.5, 0.6, 3));
    }

    #[test]
    fn a_round_with_a_discarded_half_does_not_count() {
        let a = [Some(1.0), None, Some(3.0), Some(1.0)];
        let b = [Some(1.0), Some(1.0), Some(1.0), None];
        assert_eq!(Spread::of_ratios(&a, &b), spread(2.0, 1.0, 3.0, 2));
        assert_eq!(Spread::of_ratios(&[None], &[Some(1.0)]), None);
    }

    #[test]
    fn what_is_divided_by_nothing_is_no_value() {
        assert_eq!(
            Spread::of_ratios(&[Some(1.0), Some(1.0)], &[Some(0.0), Some(2.0)]),
            spread(0.5, 0.5, 0.5, 1)
        );
    }
}
