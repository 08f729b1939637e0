//! The statistics of an agent.

use std::collections::BTreeMap;

use crate::member::Tags;

/// The statistics of an agent: values by name, in sections. Agents have `agent`, `runtime`, `serf`,
/// `event_handlers`, and `tags` with the tags of their own node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    sections: BTreeMap<String, Tags>,
}

impl Stats {
    pub(super) fn new(sections: BTreeMap<String, Tags>) -> Self {
        Self { sections }
    }

    /// Returns a value: `get("agent", "name")` is the name of the agent's node. `None` if it is missing or
    /// not UTF-8; [`section`](Self::section) has its bytes.
    pub fn get(&self, section: &str, name: &str) -> Option<&str> {
        let value = self.sections.get(section)?.bytes(name)?;
        std::str::from_utf8(value).ok()
    }

    /// Names and values of a section, as the agent sent them; nothing for one that it has not.
    pub fn section(&self, section: &str) -> impl Iterator<Item = (&[u8], &[u8])> {
        self.sections.get(section).into_iter().flat_map(Tags::iter)
    }

    /// The names of the sections.
    pub fn sections(&self) -> impl Iterator<Item = &str> {
        self.sections.keys().map(String::as_str)
    }
}
