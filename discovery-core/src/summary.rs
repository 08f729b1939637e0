//! The changes between two configurations, in one line for a log.

use std::fmt;

use proxy_model::config::ProxyConfig;
use proxy_model::for_each_change;

/// Changes that are shown one by one; the others are counted.
const MOST_SHOWN: usize = 5;

/// The changes between two configurations.
#[derive(Debug, Default)]
pub(crate) struct Summary {
    shown: Vec<String>,
    total: usize,
}

impl Summary {
    /// Compares two configurations. Takes its time.
    pub(crate) fn of(old: &ProxyConfig, new: &ProxyConfig) -> Self {
        let mut summary = Self::default();
        for_each_change(old, new, |change| {
            if summary.total < MOST_SHOWN {
                summary.shown.push(change.to_string());
            }
            summary.total += 1;
        });
        summary
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.shown.join("; "))?;
        match self.total.saturating_sub(self.shown.len()) {
            0 => Ok(()),
            more => write!(f, "; and {more} more"),
        }
    }
}
