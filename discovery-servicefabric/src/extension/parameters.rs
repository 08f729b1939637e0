//! Parameters of applications, and labels that refer to them.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use discovery_core::Labels;
use proxy_model::{Problem, Problems, nearest, pointer_to};

use crate::model::Parameter;

/// The parameters of an application, by name, ignoring case. Values are often secrets: `Debug` leaves them out.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Parameters {
    /// The spelling and value of each parameter, by folded name.
    by_name: BTreeMap<String, (String, String)>,
}

impl Parameters {
    /// Returns an application's own parameters over the defaults of its type. If a list has a name twice,
    /// the first one counts.
    pub fn new(own: &[Parameter], defaults: &[Parameter]) -> Self {
        let mut by_name = BTreeMap::new();
        for parameter in own.iter().chain(defaults) {
            by_name
                .entry(parameter.key.to_lowercase())
                .or_insert_with(|| (parameter.key.clone(), parameter.value.clone()));
        }
        Self { by_name }
    }

    /// The value of the parameter `name`.
    pub fn get(&self, name: &str) -> Option<&str> {
        let (_, value) = self.by_name.get(&name.to_lowercase())?;
        Some(value)
    }

    /// Returns the labels with each value that is only a reference, `[Name]`, replaced by the parameter's
    /// value. A reference to a missing parameter becomes an empty text and a warning.
    pub(super) fn replaced(&self, labels: &Arc<Labels>, problems: &mut Problems) -> Arc<Labels> {
        if labels.values().all(|value| referenced(value).is_none()) {
            return Arc::clone(labels);
        }
        let replaced = labels.iter().map(|(key, value)| {
            let value = match referenced(value) {
                None => value.clone(),
                Some(name) => match self.get(name) {
                    Some(value) => value.to_owned(),
                    None => {
                        problems.push(self.unknown(key, name));
                        String::new()
                    }
                },
            };
            (key.clone(), value)
        });
        Arc::new(replaced.collect())
    }

    fn unknown(&self, key: &str, name: &str) -> Problem {
        let message =
            format!("the application has no parameter `{name}`; the label is read as empty");
        let problem = Problem::warning(pointer_to("", key), "unknown_parameter", message);
        let known = self.by_name.values().map(|(name, _)| name.as_str());
        match nearest(name, known) {
            Some(name) => problem.with_suggestion(format!("did you mean `[{name}]`?")),
            None => problem,
        }
    }
}

impl fmt::Debug for Parameters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = self.by_name.values().map(|(name, _)| name);
        f.debug_set().entries(names).finish()
    }
}

/// The name in `[Name]`.
fn referenced(value: &str) -> Option<&str> {
    let name = value.strip_prefix('[')?.strip_suffix(']')?;
    (!name.is_empty()).then_some(name)
}
