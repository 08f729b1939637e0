//! Session affinity.

use http::HeaderName;

use super::policy::{self, PolicyWords};
use super::{Scope, filled};
use crate::compiled::{
    AffinityCookie, AffinityFailure, AffinityKey, CookieSameSite, CookieSecure, SessionAffinity,
};
use crate::config::{AffinityCookieConfig, ClusterConfig, SessionAffinityConfig};
use crate::suggest::{did_you_mean, listed, shortened};
use crate::time_span::TimeSpan;

/// `None` when session affinity is off, or wrong, which is reported.
pub(super) fn compile(config: &ClusterConfig, scope: &mut Scope<'_>) -> Option<SessionAffinity> {
    let affinity = config.session_affinity.as_ref()?;
    if affinity.enabled != Some(true) {
        return None;
    }
    let names = scope.options;
    let policy = policy::resolve(
        affinity.policy.as_ref(),
        PolicyWords {
            name: "session affinity policy",
            unknown: "unknown_affinity_policy",
        },
        &["HashCookie", "ArrCookie", "Cookie", "CustomHeader"],
        &names.affinity,
        "SessionAffinity/Policy",
        scope,
    );
    let failure = policy::resolve(
        affinity.failure_policy.as_ref(),
        PolicyWords {
            name: "affinity failure policy",
            unknown: "unknown_affinity_failure_policy",
        },
        &["Redistribute", "Return503Error"],
        &names.affinity_failure,
        "SessionAffinity/FailurePolicy",
        scope,
    );
    let key_name = key_name(affinity, scope);
    let key = policy.map(|name| match &*name {
        "HashCookie" => AffinityKey::HashCookie,
        "ArrCookie" => AffinityKey::ArrCookie,
        "Cookie" => AffinityKey::Cookie,
        "CustomHeader" => AffinityKey::CustomHeader,
        _ => AffinityKey::Custom(name),
    });
    if let (Some(AffinityKey::CustomHeader), Some(name)) = (&key, &key_name)
        && let Some(meaning) = reserved_header(name)
    {
        scope.error_with(
            "SessionAffinity/AffinityKeyName",
            "invalid_affinity_key_name",
            format!("the header `{}` {meaning}", shortened(name)),
            "name a header of your own, as in `\"AffinityKeyName\": \"X-Proxy-Affinity\"`",
        );
    }
    let cookie = match &affinity.cookie {
        Some(cookie) => compile_cookie(cookie, &mut scope.below("SessionAffinity/Cookie")),
        None => AffinityCookie::default(),
    };
    Some(SessionAffinity {
        key: key?,
        failure: match &*failure? {
            "Redistribute" => AffinityFailure::Redistribute,
            "Return503Error" => AffinityFailure::Return503Error,
            name => AffinityFailure::Custom(name.into()),
        },
        key_name: key_name?.into(),
        cookie,
        drain: affinity.drain_timeout.map(TimeSpan::duration),
    })
}

fn key_name<'a>(affinity: &'a SessionAffinityConfig, scope: &mut Scope<'_>) -> Option<&'a str> {
    let Some(name) = filled(affinity.affinity_key_name.as_ref()) else {
        scope.error_with(
            "SessionAffinity/AffinityKeyName",
            "missing_affinity_key_name",
            "session affinity is enabled without an `AffinityKeyName`",
            "add the name of a cookie or header, as in `\"AffinityKeyName\": \".Proxy.Affinity\"`",
        );
        return None;
    };
    // The name of a cookie and that of a header are both tokens (RFC 6265 section 4.1.1, RFC 9110 section 5.1).
    if HeaderName::from_bytes(name.as_bytes()).is_err() {
        scope.error(
            "SessionAffinity/AffinityKeyName",
            "invalid_affinity_key_name",
            format!(
                "`{}` cannot be the name of a cookie or header",
                shortened(name)
            ),
        );
        return None;
    }
    Some(name)
}

/// Says why a header cannot carry a key: it has another meaning, or does not arrive.
fn reserved_header(name: &str) -> Option<&'static str> {
    /// Headers of one connection, which YARP does not forward either.
    const OF_THE_CONNECTION: [&str; 20] = [
        "Host",
        "Connection",
        "Transfer-Encoding",
        "TE",
        "Trailer",
        "Upgrade",
        "Expect",
        "Keep-Alive",
        "ALPN",
        "Alt-Svc",
        "Close",
        "HTTP2-Settings",
        "Proxy-Authenticate",
        "Proxy-Authentication-Info",
        "Proxy-Authorization",
        "Proxy-Connection",
        "Proxy-Features",
        "Proxy-Instruction",
        "Security-Scheme",
        "Upgrade-Insecure-Requests",
    ];
    const OF_THE_MESSAGE: [&str; 4] = ["Authorization", "Cookie", "Set-Cookie", "Date"];
    const OF_PROXIES: [&str; 4] = ["Forwarded", "X-Real-IP", "True-Client-IP", "CDN-Loop"];
    let begins = |prefix: &str| {
        let beginning = name.as_bytes().get(..prefix.len());
        beginning.is_some_and(|it| it.eq_ignore_ascii_case(prefix.as_bytes()))
    };
    let is_one = |names: &[&str]| names.iter().any(|other| other.eq_ignore_ascii_case(name));
    if is_one(&OF_PROXIES) || begins("X-Forwarded-") {
        return Some("is for what proxies say about a request, and does not arrive from clients");
    }
    (is_one(&OF_THE_CONNECTION) || is_one(&OF_THE_MESSAGE) || begins("Content-"))
        .then_some("has a meaning of its own in HTTP")
}

fn compile_cookie(cookie: &AffinityCookieConfig, scope: &mut Scope<'_>) -> AffinityCookie {
    for (key, value) in [("Path", &cookie.path), ("Domain", &cookie.domain)] {
        let is_allowed = |c: char| c.is_ascii() && !c.is_ascii_control() && c != ';';
        if value
            .as_ref()
            .is_some_and(|value| !value.chars().all(is_allowed))
        {
            // RFC 6265 section 4.1.1: such a character would end the attribute.
            scope.error(
                key,
                "invalid_cookie_attribute",
                "a cookie's attribute may hold neither `;` nor control characters, and nothing outside ASCII",
            );
        }
    }
    let secure = choice(
        &cookie.secure_policy,
        &[
            ("None", CookieSecure::None),
            ("Always", CookieSecure::Always),
            ("SameAsRequest", CookieSecure::SameAsRequest),
        ],
        "SecurePolicy",
        scope,
    );
    let same_site = choice(
        &cookie.same_site,
        &[
            ("Unspecified", CookieSameSite::Unspecified),
            ("None", CookieSameSite::None),
            ("Lax", CookieSameSite::Lax),
            ("Strict", CookieSameSite::Strict),
        ],
        "SameSite",
        scope,
    );
    if same_site == CookieSameSite::None && secure == CookieSecure::None {
        scope.warning(
            "SameSite",
            "insecure_cookie",
            "browsers reject a cookie with `SameSite` `None` that is not `Secure`; set `SecurePolicy` to `Always`",
        );
    }
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
    AffinityCookie {
        path: filled(cookie.path.as_ref()).unwrap_or("/").into(),
        domain: filled(cookie.domain.as_ref()).map(Into::into),
        http_only: cookie.http_only.unwrap_or(true),
        secure,
        same_site,
        expiration: cookie.expiration.map(TimeSpan::duration),
        max_age: cookie.max_age.map(TimeSpan::duration),
    }
}

/// Returns the value that `written` names. Returns the first one if nothing is written; reports a problem and does
/// the same for an unknown name.
fn choice<T: Copy + Default>(
    written: &Option<String>,
    values: &[(&'static str, T)],
    key: &str,
    scope: &mut Scope<'_>,
) -> T {
    let Some(written) = filled(written.as_ref()) else {
        return T::default();
    };
    let mut known = values.iter();
    if let Some((_, value)) = known.find(|(name, _)| name.eq_ignore_ascii_case(written)) {
        return *value;
    }
    let names = || values.iter().map(|(name, _)| *name);
    let message = format!("`{}` is not one of {}", shortened(written), listed(names()));
    match did_you_mean(written, names()) {
        Some(suggestion) => scope.error_with(key, "unknown_value", message, suggestion),
        None => scope.error(key, "unknown_value", message),
    }
    T::default()
}
