//! The key of an agent's RPC.

use std::fmt;
use std::sync::Arc;

/// The key that an agent with `rpc_auth` in its configuration requires. `Debug` does not show it.
#[derive(Clone, PartialEq, Eq)]
pub struct AuthKey(Arc<str>);

impl AuthKey {
    /// The key itself, for the one message that carries it.
    pub(crate) fn reveal(&self) -> &str {
        &self.0
    }
}

impl From<&str> for AuthKey {
    fn from(key: &str) -> Self {
        Self(key.into())
    }
}

impl From<String> for AuthKey {
    fn from(key: String) -> Self {
        Self(key.into())
    }
}

impl fmt::Debug for AuthKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AuthKey(…)")
    }
}
