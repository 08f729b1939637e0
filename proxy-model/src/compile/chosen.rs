//! The policies that a route has.

use std::sync::Arc;
use std::time::Duration;

use super::policy::{self, PolicyWords as Words};
use super::{Scope, filled};
use crate::compiled::ChosenPolicy;
use crate::config::{PolicyConfigs, PolicyKind, RouteConfig};
use crate::id::same_id;

/// The policies of one route.
#[derive(Debug, Default)]
pub(super) struct Chosen {
    /// The chosen policies except timeouts, in the order in which requests pass them.
    pub(super) policies: Box<[ChosenPolicy]>,
    /// The time limit of the route's timeout policy.
    pub(super) timeout: Option<Duration>,
}

/// Checks the names of a route's policies, and finds those that the configuration defines.
pub(super) fn compile(
    config: &RouteConfig,
    defined: &PolicyConfigs,
    scope: &mut Scope<'_>,
) -> Chosen {
    let options = scope.options;
    let cors = choice(
        (PolicyKind::Cors, config.cors_policy.as_ref()),
        (
            "CORS policy",
            "unknown_cors_policy",
            &["Default", ChosenPolicy::DISABLE],
        ),
        (defined, &options.cors),
        scope,
    );
    let authorization = choice(
        (
            PolicyKind::Authorization,
            config.authorization_policy.as_ref(),
        ),
        (
            "authorization policy",
            "unknown_authorization_policy",
            &["Default", "Anonymous"],
        ),
        (defined, &options.authorization),
        scope,
    );
    let limiter = choice(
        (PolicyKind::RateLimiter, config.rate_limiter_policy.as_ref()),
        (
            "rate limiter policy",
            "unknown_rate_limiter_policy",
            &["Default", "Disable"],
        ),
        (defined, &options.rate_limiter),
        scope,
    );
    let timeout = choice(
        (PolicyKind::Timeout, config.timeout_policy.as_ref()),
        ("timeout policy", "unknown_timeout_policy", &["Disable"]),
        (defined, &options.timeout),
        scope,
    );
    policy::check_optional(
        config.output_cache_policy.as_ref(),
        Words {
            name: "output cache policy",
            unknown: "unknown_output_cache_policy",
        },
        &[],
        &options.output_cache,
        "OutputCachePolicy",
        scope,
    );
    if config.timeout.is_some() && filled(config.timeout_policy.as_ref()).is_some() {
        scope.error_with(
            "Timeout",
            "conflicting_timeouts",
            "the route has both a `Timeout` and a `TimeoutPolicy`",
            "keep one of them",
        );
    }
    let named = |kind, name: &str| ChosenPolicy {
        kind,
        name: Arc::from(name),
        is_defined: true,
    };
    let by_default = |kind, name| {
        let policy = defined.get(kind, name)?;
        Some(named(kind, &policy.name))
    };
    let mut policies = Vec::new();
    policies.extend(match cors {
        Choice::Named(policy) => Some(policy),
        Choice::Built(name) if name == ChosenPolicy::DISABLE => Some(named(PolicyKind::Cors, name)),
        Choice::Built(_) | Choice::Unset => None,
    });
    policies.extend(match authorization {
        Choice::Named(policy) => Some(policy),
        // An undefined default cannot be checked, so it closes the route.
        Choice::Built("Default") => Some(ChosenPolicy {
            is_defined: false,
            ..named(PolicyKind::Authorization, "Default")
        }),
        Choice::Built(_) => None,
        Choice::Unset => by_default(PolicyKind::Authorization, ChosenPolicy::FALLBACK),
    });
    if !matches!(limiter, Choice::Built("Disable")) {
        policies.extend(by_default(PolicyKind::RateLimiter, ChosenPolicy::GLOBAL));
    }
    if let Choice::Named(policy) = limiter
        && !policies.contains(&policy)
    {
        policies.push(policy);
    }
    let timeout = match timeout {
        Choice::Named(policy) => defined
            .get(PolicyKind::Timeout, &policy.name)
            .and_then(|policy| policy.timeout),
        Choice::Built(_) | Choice::Unset => None,
    };
    Chosen {
        policies: policies.into(),
        timeout: timeout.map(Duration::from),
    }
}

/// The choice of a route for one kind of policy.
enum Choice {
    Unset,
    /// A name that has a meaning of its own, and that nothing defines.
    Built(&'static str),
    Named(ChosenPolicy),
}

fn choice(
    (kind, written): (PolicyKind, Option<&String>),
    (name, unknown, built_in): (&'static str, &'static str, &[&'static str]),
    (defined, registered): (&PolicyConfigs, &[Arc<str>]),
    scope: &mut Scope<'_>,
) -> Choice {
    let Some(written) = filled(written) else {
        return Choice::Unset;
    };
    if let Some(policy) = defined.get(kind, written) {
        return Choice::Named(ChosenPolicy {
            kind,
            name: Arc::clone(&policy.name),
            is_defined: true,
        });
    }
    let known: Vec<Arc<str>> = defined
        .of(kind)
        .map(|policy| Arc::clone(&policy.name))
        .chain(registered.iter().cloned())
        .collect();
    let words = Words { name, unknown };
    let below = kind.route_key();
    policy::check_optional(
        Some(&written.to_owned()),
        words,
        built_in,
        &known,
        below,
        scope,
    );
    if let Some(built) = built_in.iter().find(|built| same_id(built, written)) {
        return Choice::Built(built);
    }
    match registered.iter().find(|name| same_id(name, written)) {
        Some(name) => Choice::Named(ChosenPolicy {
            kind,
            name: Arc::clone(name),
            is_defined: false,
        }),
        None => Choice::Unset,
    }
}
