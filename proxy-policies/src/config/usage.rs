//! Policies, and parts of them, that have no effect on the routes of a configuration.

use proxy_model::compiled::{ChosenPolicy, Route};
use proxy_model::config::{PolicyConfig, PolicyKind};
use proxy_model::{Problem, Problems, Snapshot, nearest, pointer_to, same_id};
use serde::de::DeserializeOwned;

use super::{
    AuthorizationConfig, BASIC_CLAIM, CERTIFICATE_CLAIMS, PartitionBy, RateLimiterConfig, SECTION,
};

/// Warns of policies that no route has, of partitions by a value that requests of a route never have, and of policies
/// for client certificates if no listener asks for any. `is_named_elsewhere`: others than these routes may name the
/// policy.
pub fn judge_use(
    snapshot: &Snapshot,
    asks_for_certificates: bool,
    is_named_elsewhere: impl Fn(PolicyKind, &str) -> bool,
) -> Problems {
    let mut problems = Problems::new();
    for policy in snapshot.config().policies.iter() {
        let (kind, name) = (policy.kind, &*policy.name);
        let mut routes = snapshot.routes().iter();
        let is_used = routes.any(|route| has(route, policy))
            || special(kind).iter().any(|special| same_id(special, name))
            || is_named_elsewhere(kind, name);
        if !is_used {
            problems.push(unused(policy));
        }
        let needs_certificate = kind == PolicyKind::Authorization
            && settings::<AuthorizationConfig>(policy)
                .is_some_and(|settings| settings.certificate.is_some());
        if is_used && needs_certificate && !asks_for_certificates {
            let pointer = format!("{}/ClientCertificate", pointer(policy));
            let message = "no listener asks clients for certificates, so every request gets 403";
            let problem = Problem::warning(pointer, "no_client_certificates", message);
            problems.push(problem.with_suggestion(
                "set `Tls.ClientCertificateMode` and `Tls.ClientCaFile` of a listener",
            ));
        }
        if kind == PolicyKind::RateLimiter && !same_id(name, ChosenPolicy::GLOBAL) {
            problems.extend(undivided(policy, snapshot));
        }
    }
    problems
}

/// The names of policies that routes have without naming them.
const fn special(kind: PolicyKind) -> &'static [&'static str] {
    match kind {
        PolicyKind::Authorization => &["Default", ChosenPolicy::FALLBACK],
        PolicyKind::Cors => &["Default"],
        PolicyKind::RateLimiter => &[ChosenPolicy::GLOBAL],
        PolicyKind::Timeout => &[],
    }
}

fn has(route: &Route, policy: &PolicyConfig) -> bool {
    if policy.kind == PolicyKind::Timeout {
        let named = route.config().timeout_policy.as_deref();
        return named.is_some_and(|name| same_id(name, &policy.name));
    }
    let mut chosen = route.policies().iter();
    chosen.any(|chosen| chosen.kind() == policy.kind && same_id(chosen.name(), &policy.name))
}

fn pointer(policy: &PolicyConfig) -> String {
    let section = pointer_to(&format!("/{SECTION}"), policy.kind.section());
    pointer_to(&section, &policy.name)
}

fn unused(policy: &PolicyConfig) -> Problem {
    let key = policy.kind.route_key();
    let message = format!(
        "no route names `{}` in `{key}`, so it has no effect",
        policy.name
    );
    let problem = Problem::warning(pointer(policy), "unused_policy", message);
    match nearest(&policy.name, special(policy.kind).iter().copied()) {
        Some(meant) => problem.with_suggestion(format!("did you mean `{meant}`?")),
        None => {
            problem.with_suggestion(format!("write `\"{key}\": \"{}\"` at a route", policy.name))
        }
    }
}

/// The problem of a limiter that divides by what requests of a route never have.
fn undivided(policy: &PolicyConfig, snapshot: &Snapshot) -> Option<Problem> {
    let limiter: RateLimiterConfig = settings(policy)?;
    let mut routes = snapshot.routes().iter().filter(|route| has(route, policy));
    let (what, route) = match &limiter.partition_by {
        PartitionBy::RouteValue(name) => {
            let lacks = |route: &&Route| {
                let mut names = route.matcher().path().parameter_names();
                !names.any(|known| known.eq_ignore_ascii_case(name))
            };
            (format!("path has no `{{{name}}}`"), routes.find(lacks)?)
        }
        PartitionBy::Claim(name) => {
            let lacks = |route: &&Route| !may_have_claim(route, name, snapshot);
            (
                format!("`AuthorizationPolicy` gives no claim `{name}`"),
                routes.find(lacks)?,
            )
        }
        PartitionBy::None | PartitionBy::Address | PartitionBy::Header(_) => return None,
    };
    let route = route.id();
    let message = format!("the route `{route}` shares one limit among all clients: its {what}");
    let pointer = format!("{}/Partition/Name", pointer(policy));
    Some(Problem::warning(pointer, "no_effect", message))
}

fn may_have_claim(route: &Route, name: &str, snapshot: &Snapshot) -> bool {
    let mut chosen = route.policies().iter();
    let chosen = chosen.find(|chosen| chosen.kind() == PolicyKind::Authorization);
    let policies = &snapshot.config().policies;
    let policy = chosen.and_then(|chosen| policies.get(chosen.kind(), chosen.name()));
    let Some(policy) = policy.and_then(settings::<AuthorizationConfig>) else {
        return false;
    };
    let is_told = |forward: super::ForwardConfig| {
        let mut headers = forward.response_headers.iter();
        headers.any(|header| header.eq_ignore_ascii_case(name))
    };
    let has_way = policy.jwt.is_some() || policy.basic.is_some() || policy.forward.is_some();
    policy.jwt.is_some()
        || (policy.certificate.is_some() && !has_way && CERTIFICATE_CLAIMS.contains(&name))
        || (policy.basic.is_some() && name.eq_ignore_ascii_case(BASIC_CLAIM))
        || policy.forward.is_some_and(is_told)
}

fn settings<C: DeserializeOwned>(policy: &PolicyConfig) -> Option<C> {
    serde_json::from_value(policy.settings.clone()).ok()
}

#[cfg(test)]
mod tests {
    use proxy_runtime::Proxy;

    use super::*;
    use crate::tests::around::snapshot;

    #[test]
    fn what_has_no_effect_is_told() {
        let policies = r#"
            "Authorization":{"fallbck":{"Networks":{"Deny":["10.0.0.0/8"]}},"Default":{"Networks":{"Deny":["10.0.0.0/8"]}},
                "staff":{"Basic":{"Users":{"ann":"$2b$04$qkrbn6vpAWkcZyG9mTSkouxvnWckGj9p9zipKfj.gJxT2RkWITV7q"}}}},
            "Cors":{"elsewhere":{"Origins":["https://a.example"]},"unused":{"Origins":["https://a.example"]}},
            "Timeout":{"slow":{"Timeout":"1m"},"slower":{"Timeout":"2m"}},
            "RateLimiter":{
                "tenant":{"Kind":"Concurrency","PermitLimit":1,"Partition":{"By":"RouteValue","Name":"Tenant"}},
                "user":{"Kind":"Concurrency","PermitLimit":1,"Partition":{"By":"Claim","Name":"name"}},
                "typo":{"Kind":"Concurrency","PermitLimit":1,"Partition":{"By":"Claim","Name":"nme"}},
                "Global":{"Kind":"Concurrency","PermitLimit":1}}"#;
        let routes = r#"
            "a":{"ClusterId":"c","Match":{"Path":"/a/{tenant}"},"RateLimiterPolicy":"tenant","TimeoutPolicy":"SLOW"},
            "b":{"ClusterId":"c","Match":{"Path":"/b/{tenantt}"},"RateLimiterPolicy":"tenant"},
            "d":{"ClusterId":"c","Match":{"Path":"/d"},"RateLimiterPolicy":"user","AuthorizationPolicy":"staff"},
            "e":{"ClusterId":"c","Match":{"Path":"/e"},"RateLimiterPolicy":"typo","AuthorizationPolicy":"staff"}"#;
        let snapshot = snapshot(&Proxy::builder(), policies, routes);
        let problems = judge_use(&snapshot, true, |_, name| name == "elsewhere");
        assert!(!problems.has_errors());
        let told: Vec<_> = problems
            .iter()
            .map(|p| {
                (
                    &*p.pointer,
                    &*p.code,
                    p.suggestion.as_deref().unwrap_or_default(),
                )
            })
            .collect();
        let name = "\"CorsPolicy\": \"unused\"` at a route";
        assert_eq!(
            told,
            [
                (
                    "/Policies/Authorization/fallbck",
                    "unused_policy",
                    "did you mean `Fallback`?"
                ),
                (
                    "/Policies/Cors/unused",
                    "unused_policy",
                    &*format!("write `{name}")
                ),
                (
                    "/Policies/RateLimiter/tenant/Partition/Name",
                    "no_effect",
                    ""
                ),
                ("/Policies/RateLimiter/typo/Partition/Name", "no_effect", ""),
                (
                    "/Policies/Timeout/slower",
                    "unused_policy",
                    "write `\"TimeoutPolicy\": \"slower\"` at a route"
                ),
            ]
        );
        assert!(problems.to_string().contains("route `b`"), "{problems}");
    }

    #[test]
    fn a_policy_for_certificates_needs_a_listener_that_asks() {
        let policies = r#"
            "Authorization":{"machines":{"ClientCertificate":{"Names":["a.example"]}}},
            "RateLimiter":{"each":{"Kind":"Concurrency","PermitLimit":1,"Partition":{"By":"Claim","Name":"fingerprint"}}}"#;
        let routes = r#"
            "a":{"ClusterId":"c","Match":{"Path":"/a"},"AuthorizationPolicy":"machines","RateLimiterPolicy":"each"}"#;
        let snapshot = snapshot(&Proxy::builder(), policies, routes);
        let told = judge_use(&snapshot, false, |_, _| false).to_string();
        let place = "/Policies/Authorization/machines/ClientCertificate";
        assert!(told.contains(place) && !told.contains('\n'), "{told}");
        assert!(judge_use(&snapshot, true, |_, _| false).is_empty());
    }
}
