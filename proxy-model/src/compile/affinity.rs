//! Session affinity. Only checked so far: what is needed of it at run time is read from the configuration.

use http::HeaderName;

use super::policy::{self, PolicyKind};
use super::{Scope, filled};
use crate::config::{AffinityCookieConfig, ClusterConfig};
use crate::suggest::{did_you_mean, listed, shortened};
use crate::time_span::TimeSpan;

pub(super) fn check(config: &ClusterConfig, scope: &mut Scope<'_>) {
    let Some(affinity) = &config.session_affinity else {
        return;
    };
    if affinity.enabled != Some(true) {
        return;
    }
    let names = scope.options;
    policy::resolve(
        affinity.policy.as_ref(),
        PolicyKind {
            name: "session affinity policy",
            unknown: "unknown_affinity_policy",
        },
        &["HashCookie", "ArrCookie", "Cookie", "CustomHeader"],
        &names.affinity,
        "SessionAffinity/Policy",
        scope,
    );
    policy::resolve(
        affinity.failure_policy.as_ref(),
        PolicyKind {
            name: "affinity failure policy",
            unknown: "unknown_affinity_failure_policy",
        },
        &["Redistribute", "Return503Error"],
        &names.affinity_failure,
        "SessionAffinity/FailurePolicy",
        scope,
    );
    match filled(affinity.affinity_key_name.as_ref()) {
        None => scope.error_with(
            "SessionAffinity/AffinityKeyName",
            "missing_affinity_key_name",
            "session affinity is enabled without an `AffinityKeyName`",
            "add the name of a cookie or header, as in `\"AffinityKeyName\": \".Proxy.Affinity\"`",
        ),
        // The name of a cookie and that of a header are both tokens (RFC 6265 section 4.1.1, RFC 9110 section 5.1).
        Some(name) if HeaderName::from_bytes(name.as_bytes()).is_err() => scope.error(
            "SessionAffinity/AffinityKeyName",
            "invalid_affinity_key_name",
            format!(
                "`{}` cannot be the name of a cookie or header",
                shortened(name)
            ),
        ),
        Some(_) => {}
    }
    if let Some(cookie) = &affinity.cookie {
        check_cookie(cookie, &mut scope.below("SessionAffinity/Cookie"));
    }
}

fn check_cookie(cookie: &AffinityCookieConfig, scope: &mut Scope<'_>) {
    for (key, value) in [("Path", &cookie.path), ("Domain", &cookie.domain)] {
        let is_allowed = |c: char| !c.is_control() && c != ';';
        if value
            .as_ref()
            .is_some_and(|value| !value.chars().all(is_allowed))
        {
            // RFC 6265 section 4.1.1: such a character would end the attribute.
            scope.error(
                key,
                "invalid_cookie_attribute",
                "a cookie's attribute may hold neither `;` nor control characters",
            );
        }
    }
    check_name(
        &cookie.secure_policy,
        &["None", "Always", "SameAsRequest"],
        "SecurePolicy",
        scope,
    );
    check_name(
        &cookie.same_site,
        &["Unspecified", "None", "Lax", "Strict"],
        "SameSite",
        scope,
    );
    for (key, span) in [
        ("Expiration", cookie.expiration),
        ("MaxAge", cookie.max_age),
    ] {
        if span.is_some_and(TimeSpan::is_zero) {
            scope.error(
                key,
                "not_positive",
                format!("`{key}` must be longer than no time"),
            );
        }
    }
}

fn check_name(written: &Option<String>, names: &[&str], key: &str, scope: &mut Scope<'_>) {
    let Some(written) = filled(written.as_ref()) else {
        return;
    };
    if names.iter().any(|name| name.eq_ignore_ascii_case(written)) {
        return;
    }
    let message = format!(
        "`{}` is not one of {}",
        shortened(written),
        listed(names.iter().copied())
    );
    match did_you_mean(written, names.iter().copied()) {
        Some(suggestion) => scope.error_with(key, "unknown_value", message, suggestion),
        None => scope.error(key, "unknown_value", message),
    }
}
