use serde::{Deserialize, Deserializer};

/// A member that may be null, but not left out: `{}` is more often a mistake than a wish.
pub(super) fn present<'de, D, T>(deserializer: D) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    Option::deserialize(deserializer)
}
