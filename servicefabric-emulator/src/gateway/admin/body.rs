use serde::{Deserialize, Deserializer};

/// Deserialises a member that may be null, but not absent: `{}` is more often a mistake than intended.
pub(super) fn present<'de, D, T>(deserializer: D) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    Option::deserialize(deserializer)
}
