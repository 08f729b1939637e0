//! The statistics of an agent.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::{DecodeError, decode, member};
use crate::member::Tags;
use crate::wire::text::Text;

/// The body of the reply to `stats`: sections by name, with values by name, which are all strings.
pub(crate) fn decode_stats(frame: &[u8]) -> Result<BTreeMap<String, Tags>, DecodeError> {
    #[derive(Deserialize)]
    struct StatsSection(#[serde(deserialize_with = "member::tags")] Tags);
    let sections: BTreeMap<Text, StatsSection> = decode("the reply to stats", frame)?;
    Ok(sections
        .into_iter()
        .map(|(name, StatsSection(values))| (name.lossy().into_owned(), values))
        .collect())
}
