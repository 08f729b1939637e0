//! Policies that routes choose by name.

use std::fmt;
use std::sync::Arc;

use serde::Serialize;
use serde_json::Value;

use crate::id::same_id;
use crate::time_span::TimeSpan;

/// The kinds of policies that a program reads from a section `Policies`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub enum PolicyKind {
    /// Answers to requests of scripts from other origins: `CorsPolicy`.
    Cors,
    /// The clients that may use a route: `AuthorizationPolicy`.
    Authorization,
    /// The number of requests: `RateLimiterPolicy`.
    RateLimiter,
    /// The longest that a request may take: `TimeoutPolicy`.
    Timeout,
}

impl PolicyKind {
    /// The kinds, in the order in which a request meets them.
    pub const ALL: [Self; 4] = [
        Self::Cors,
        Self::Authorization,
        Self::RateLimiter,
        Self::Timeout,
    ];

    /// The key of the section `Policies` that has the policies of this kind: `RateLimiter`.
    pub const fn section(self) -> &'static str {
        match self {
            Self::Cors => "Cors",
            Self::Authorization => "Authorization",
            Self::RateLimiter => "RateLimiter",
            Self::Timeout => "Timeout",
        }
    }

    /// The key of a route that names a policy of this kind: `RateLimiterPolicy`.
    pub const fn route_key(self) -> &'static str {
        match self {
            Self::Cors => "CorsPolicy",
            Self::Authorization => "AuthorizationPolicy",
            Self::RateLimiter => "RateLimiterPolicy",
            Self::Timeout => "TimeoutPolicy",
        }
    }
}

/// One policy of a configuration.
#[derive(Clone, PartialEq, Eq)]
pub struct PolicyConfig {
    /// The kind.
    pub kind: PolicyKind,
    /// The name, compared ignoring case.
    pub name: Arc<str>,
    /// The settings, for the program that honours the policy. They may hold secrets.
    pub settings: Value,
    /// The time limit of a [`PolicyKind::Timeout`], which the model itself honours.
    pub timeout: Option<TimeSpan>,
}

impl fmt::Debug for PolicyConfig {
    /// Leaves out the settings, which may hold secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PolicyConfig")
            .field("kind", &self.kind)
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

/// The policies of a configuration, which routes choose by name.
///
/// The model knows their names, and the time of a timeout policy. The settings of all others belong to the program
/// that applies them. They are no part of the JSON of a configuration, since they may hold secrets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PolicyConfigs(Vec<PolicyConfig>);

impl PolicyConfigs {
    /// Returns true if there is no policy.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds a policy. Returns false, and leaves the first one as it is, if the kind has one of this name.
    pub fn insert(&mut self, policy: PolicyConfig) -> bool {
        let is_new = self.get(policy.kind, &policy.name).is_none();
        if is_new {
            self.0.push(policy);
        }
        is_new
    }

    /// The policy of a kind and a name, which is compared ignoring case.
    pub fn get(&self, kind: PolicyKind, name: &str) -> Option<&PolicyConfig> {
        self.of(kind).find(|policy| same_id(&policy.name, name))
    }

    /// The policies of a kind, in the order written.
    pub fn of(&self, kind: PolicyKind) -> impl Iterator<Item = &PolicyConfig> {
        self.0.iter().filter(move |policy| policy.kind == kind)
    }

    /// All policies, in the order written.
    pub fn iter(&self) -> impl Iterator<Item = &PolicyConfig> {
        self.0.iter()
    }

    /// Names the policies that are new, gone or different in `other`: `RateLimiter api`.
    pub(crate) fn differing(&self, other: &Self) -> Vec<String> {
        let gone = self
            .iter()
            .filter(|old| other.get(old.kind, &old.name).is_none());
        let changed = other
            .iter()
            .filter(|new| self.get(new.kind, &new.name) != Some(new));
        let named = |policy: &PolicyConfig| format!("{} {}", policy.kind.section(), policy.name);
        gone.chain(changed).map(named).collect()
    }
}
