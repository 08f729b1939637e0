//! Problems that the running program finds outside the configuration: in certificates, keys, and settings for the
//! next start. The admin API lists them.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;
use proxy_model::Problems;

/// The current problems, by subject. Clones share them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Faults(Arc<Mutex<BTreeMap<String, Problems>>>);

impl Faults {
    /// Replaces the problems of `about`.
    pub(crate) fn set(&self, about: &str, problems: impl Into<Problems>) {
        self.0.lock().insert(about.to_owned(), problems.into());
    }

    /// Removes the problems of `about`.
    pub(crate) fn clear(&self, about: &str) {
        self.0.lock().remove(about);
    }

    /// Returns all problems.
    pub(crate) fn problems(&self) -> Problems {
        let all = self.0.lock();
        all.values().flat_map(Problems::iter).cloned().collect()
    }
}
