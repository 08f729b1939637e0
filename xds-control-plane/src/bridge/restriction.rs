//! Settings that keep clients from a route, and that Envoy's routes cannot express.

use proxy_model::compiled::{ChosenPolicy, Route};
use proxy_model::config::{PolicyKind, RouteConfig};

use super::report::Inexpressible;

/// Returns the setting that restricts who may use the route. Without it the route would be open, so it is
/// closed: it answers 503.
pub(super) fn restriction(route: &Route) -> Option<Inexpressible> {
    if let Some(policy) = authorization(route) {
        let by_default = match policy.name() == ChosenPolicy::FALLBACK {
            true => ", which guards routes that name none,",
            false => "",
        };
        return Some(Inexpressible::new(
            PolicyKind::Authorization.route_key(),
            format!(
                "the policy `{}` of `Policies.Authorization`{by_default} is not expressed for Envoy",
                policy.name()
            ),
        ));
    }
    if route.has_strict_paths() {
        return Some(Inexpressible::new(
            "StrictPaths",
            "Envoy reads paths strictly for a whole listener or not at all",
        ));
    }
    for (key, names) in [("Filters", route.filters()), ("Layers", route.layers())] {
        if !names.is_empty() {
            let message = format!("Envoy does not have the program's `{}`", names.join("`, `"));
            return Some(Inexpressible::new(key, message));
        }
    }
    None
}

/// The authorization policy that guards the route, by its own name or by default.
fn authorization(route: &Route) -> Option<&ChosenPolicy> {
    let mut policies = route.policies().iter();
    policies.find(|policy| policy.kind() == PolicyKind::Authorization)
}

/// The route as gateways are to have it. One behind an authorization policy is carried closed: a gateway that
/// does not have the policy would leave the route out, and one without `Fallback` would open it.
pub(super) fn carried(route: &Route) -> RouteConfig {
    match authorization(route) {
        None => route.config().clone(),
        Some(_) => closed(route.config()),
    }
}

/// Returns the route with its criteria only, so that it answers 503.
pub(super) fn closed(config: &RouteConfig) -> RouteConfig {
    RouteConfig {
        r#match: config.r#match.clone(),
        order: config.order,
        ..RouteConfig::default()
    }
}
