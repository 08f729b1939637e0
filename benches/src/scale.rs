//! How large the set-ups are.

/// How large the set-ups are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    /// As large as benchmarks say: they are measured.
    Measured,
    /// Small: they are only checked, mostly by a build that is not optimised, where the large ones take minutes.
    Checked,
}

impl Scale {
    /// What this process was started for. `cargo bench` says `--bench`; `cargo test` says nothing.
    pub fn of_this_run() -> Self {
        let says = |flag: &str| std::env::args().any(|argument| argument == flag);
        if says("--bench") && !says("--test") {
            Self::Measured
        } else {
            Self::Checked
        }
    }

    /// `size` if it is measured, else at most 1,000.
    pub fn limit(self, size: usize) -> usize {
        match self {
            Self::Measured => size,
            Self::Checked => size.min(1_000),
        }
    }

    /// `sizes`, each [limited](Self::limit), none twice.
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
