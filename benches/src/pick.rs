//! Pseudorandom numbers that are the same in every run.

/// Uniform numbers below a bound, in an order that no branch predictor learns: the same in every
/// run.
#[derive(Clone, Debug)]
pub struct Picks {
    state: u64,
    bound: u64,
}

impl Picks {
    /// Creates numbers below `bound`.
    ///
    /// # Panics
    ///
    /// Panics if `bound` is 0.
    pub fn below(bound: usize) -> Self {
        assert!(bound > 0, "there is no number below 0");
        Self {
            state: 0x2545_f491_4f6c_dd1d,
            bound: bound as u64,
        }
    }
}

impl Iterator for Picks {
    type Item = usize;

    fn next(&mut self) -> Option<usize> {
        // xorshift64, whose period is far longer than any sample.
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        Some((self.state % self.bound) as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_below_the_bound_comes_and_no_other() {
        let mut seen = [0_u32; 10];
        for pick in Picks::below(10).take(1_000) {
            seen[pick] += 1;
        }
        assert!(
            seen.iter().all(|count| (50..200).contains(count)),
            "{seen:?}"
        );
    }
}
