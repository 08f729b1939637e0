//! Policies of routes.

use std::sync::Arc;

use crate::config::PolicyKind;

/// A policy that a route has: named by itself, or by default.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChosenPolicy {
    pub(crate) kind: PolicyKind,
    pub(crate) name: Arc<str>,
    pub(crate) is_defined: bool,
}

impl ChosenPolicy {
    /// The name of the CORS policy that permits nothing.
    pub const DISABLE: &'static str = "Disable";

    /// The name of the rate limiter that counts the requests of all routes.
    pub const GLOBAL: &'static str = "Global";

    /// The name of the authorization policy of routes that name none.
    pub const FALLBACK: &'static str = "Fallback";

    /// The kind.
    pub fn kind(&self) -> PolicyKind {
        self.kind
    }

    /// The name, as the configuration spells it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns true if the configuration defines the policy. If not, the name is one that the program has
    /// registered, and the program honours it.
    pub fn is_defined(&self) -> bool {
        self.is_defined
    }
}
