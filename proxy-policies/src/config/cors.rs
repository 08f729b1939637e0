//! CORS policies.

use proxy_model::json::ObjectReader;
use proxy_model::{Problem, TimeSpan, pointer_to};
use serde::{Deserialize, Serialize};

use super::without_effect;
use crate::cors::{OriginError, normalized};

/// The settings of a CORS policy, in the words of ASP.NET.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct CorsConfig {
    /// `None`: any origin.
    pub(crate) origins: Option<Vec<String>>,
    pub(crate) wildcard_subdomains: bool,
    /// `None`: any method.
    pub(crate) methods: Option<Vec<String>>,
    /// `None`: any header.
    pub(crate) headers: Option<Vec<String>>,
    pub(crate) exposed_headers: Vec<String>,
    pub(crate) credentials: bool,
    pub(crate) max_age: Option<TimeSpan>,
}

pub(super) fn read(policy: &mut ObjectReader<'_, '_>) -> Option<CorsConfig> {
    let origins = list(policy, "Origins", "AllowAnyOrigin", check_origin);
    let methods = list(policy, "Methods", "AllowAnyMethod", check_token);
    let headers = list(policy, "Headers", "AllowAnyHeader", check_token);
    let exposed = texts(policy, "ExposedHeaders", check_token);
    let wildcard_subdomains = policy
        .boolean("AllowWildcardSubdomains")
        .unwrap_or_default();
    let credentials = policy.boolean("AllowCredentials").unwrap_or_default();
    if origins.is_none() && credentials {
        let pointer = policy.pointer_to("AllowCredentials");
        let message =
            "credentials cannot be allowed to any origin: every site could act as the user";
        policy.problems().push(
            Problem::error(pointer, "insecure_cors", message)
                .with_suggestion("list the origins in `Origins`"),
        );
    }
    let has_wildcard = origins
        .iter()
        .flatten()
        .any(|origin| origin.contains("://*."));
    if has_wildcard && !wildcard_subdomains {
        let pointer = policy.pointer_to("Origins");
        let message = "`*.` stands for subdomains only with `AllowWildcardSubdomains`";
        policy.problems().push(
            Problem::error(pointer, "invalid_origin", message)
                .with_suggestion("write `\"AllowWildcardSubdomains\": true`"),
        );
    }
    if origins.as_ref().is_some_and(Vec::is_empty) {
        let pointer = policy.pointer().to_owned();
        let message = "no origin is allowed, so the policy permits nothing";
        policy.problems().push(
            Problem::error(pointer, "missing_key", message)
                .with_suggestion("write `\"Origins\": [\"https://example.com\"]`"),
        );
    }
    Some(CorsConfig {
        origins,
        wildcard_subdomains,
        methods,
        headers,
        exposed_headers: exposed,
        credentials,
        max_age: read_max_age(policy),
    })
}

/// Reads a length of time that browsers count in whole seconds.
fn read_max_age(policy: &mut ObjectReader<'_, '_>) -> Option<TimeSpan> {
    let age = policy.time_span("PreflightMaxAge")?;
    if age.duration().subsec_nanos() > 0 {
        let pointer = policy.pointer_to("PreflightMaxAge");
        let message = "browsers get `PreflightMaxAge` in whole seconds";
        policy.problems().push(
            Problem::error(pointer, "out_of_range", message)
                .with_suggestion("write whole seconds: `1s`"),
        );
    }
    Some(age)
}

type Check = fn(&str) -> Result<String, String>;

/// A list, or `None` for whatever there is: if `any` is true, or the list is `["*"]` as in ASP.NET.
fn list(
    policy: &mut ObjectReader<'_, '_>,
    key: &'static str,
    any: &'static str,
    check: Check,
) -> Option<Vec<String>> {
    if policy.boolean(any) == Some(true) {
        without_effect(policy, key, "everything is allowed");
        return None;
    }
    let is_star = policy
        .peek(key)
        .is_some_and(|node| *node == proxy_model::json::Node::List(vec![star()]));
    if is_star {
        policy.skip(key);
        return None;
    }
    Some(texts(policy, key, check))
}

fn star() -> proxy_model::json::Node {
    proxy_model::json::Node::Text("*".to_owned())
}

fn texts(policy: &mut ObjectReader<'_, '_>, key: &'static str, check: Check) -> Vec<String> {
    let pointer = policy.pointer_to(key);
    let written = policy.texts(key).unwrap_or_default();
    let mut checked = Vec::with_capacity(written.len());
    for (position, text) in written.iter().enumerate() {
        match check(text) {
            Ok(text) if checked.contains(&text) => {}
            Ok(text) => checked.push(text),
            Err(message) => {
                let pointer = pointer_to(&pointer, &position.to_string());
                let code = match key {
                    "Origins" => "invalid_origin",
                    "Methods" => "invalid_method",
                    _ => "invalid_header_name",
                };
                policy
                    .problems()
                    .push(Problem::error(pointer, code, message));
            }
        }
    }
    checked
}

fn check_origin(text: &str) -> Result<String, String> {
    normalized(text).map_err(|error| match error {
        OriginError::Star => {
            "`*` stands alone in the list, or is `AllowAnyOrigin`".to_owned()
        }
        OriginError::Form => format!(
            "`{text}` is not an origin: a scheme, `://`, a host, and a port if it is not the usual one"
        ),
    })
}

fn check_token(text: &str) -> Result<String, String> {
    match http::HeaderName::from_bytes(text.as_bytes()) {
        Ok(_) if text != "*" => Ok(text.to_owned()),
        Ok(_) => Err("`*` stands alone in the list".to_owned()),
        Err(_) => Err(format!("`{text}` has a sign that no name may have")),
    }
}
