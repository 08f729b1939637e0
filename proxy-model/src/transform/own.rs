//! Transforms that the program has registered.

use std::fmt;
use std::sync::Arc;

use super::entry::is_built_in;
use crate::config::TransformConfig;
use crate::suggest::did_you_mean;

/// Returns the reason why an entry is wrong.
pub(crate) type TransformCheck = dyn Fn(&TransformConfig) -> Result<(), String> + Send + Sync;

/// The transforms of the program, by their keys.
#[derive(Clone, Default)]
pub(crate) struct OwnTransforms(Vec<(Arc<str>, Arc<TransformCheck>)>);

impl OwnTransforms {
    pub(crate) fn add(&mut self, key: Arc<str>, check: Arc<TransformCheck>) {
        self.0.push((key, check));
    }

    /// Returns the program's own transform that an entry of the configuration names. `None` for built-in transforms.
    pub(super) fn of(&self, entry: &TransformConfig) -> Option<(&Arc<str>, &TransformCheck)> {
        if self.0.is_empty() || is_built_in(entry) {
            return None;
        }
        let is_its = |key: &str| {
            entry
                .keys()
                .any(|written| written.eq_ignore_ascii_case(key))
        };
        let (key, check) = self.0.iter().find(|(key, _)| is_its(key))?;
        Some((key, &**check))
    }

    /// The key that was probably meant.
    pub(super) fn suggestion(&self, entry: &TransformConfig) -> Option<String> {
        let keys = || self.0.iter().map(|(key, _)| &**key);
        let mut written = entry.keys().take(8);
        written.find_map(|written| did_you_mean(written, keys()))
    }
}

/// The keys alone: checks cannot be compared.
impl PartialEq for OwnTransforms {
    fn eq(&self, other: &Self) -> bool {
        let keys = |own: &Self| {
            own.0
                .iter()
                .map(|(key, _)| Arc::clone(key))
                .collect::<Vec<_>>()
        };
        keys(self) == keys(other)
    }
}

impl Eq for OwnTransforms {}

impl fmt::Debug for OwnTransforms {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set()
            .entries(self.0.iter().map(|(key, _)| key))
            .finish()
    }
}
