//! The size of benchmark inputs.

/// The size of benchmark inputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    /// Full size, for measurements.
    Measured,
    /// Small, for checks, usually in a build without optimisation, where the full size takes
    /// minutes.
    Checked,
}

impl Scale {
    /// The scale of this process. `cargo bench` passes `--bench`; `cargo test` passes nothing.
    pub fn of_this_run() -> Self {
        let says = |flag: &str| std::env::args().any(|argument| argument == flag);
        if says("--bench") && !says("--test") {
            Self::Measured
        } else {
            Self::Checked
        }
    }

    /// Returns `size` for measurements, and otherwise at most 1,000.
    pub fn limit(self, size: usize) -> usize {
        match self {
            Self::Measured => size,
            Self::Checked => size.min(1_000),
        }
    }

    /// Returns `sizes`, each [limited](Self::limit), without duplicates.
    pub fn limits(self, sizes: &[usize]) -> Vec<usize> {
        let mut limited: Vec<_> = sizes.iter().map(|size| self.limit(*size)).collect();
        limited.dedup();
        limited
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_set_ups_are_for_measurements_only() {
        assert_eq!(Scale::of_this_run(), Scale::Checked);
        let sizes = [10, 1_000, 100_000];
        assert_eq!(Scale::Measured.limits(&sizes), sizes);
        assert_eq!(Scale::Checked.limits(&sizes), [10, 1_000]);
    }
}
