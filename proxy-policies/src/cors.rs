//! CORS, as ASP.NET does it.

use std::borrow::Cow;

use http::{HeaderValue, StatusCode};

use crate::config::CorsConfig;
use crate::head::{Answer, Head};

#[cfg(test)]
mod tests;

/// The reason why a text is not an origin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OriginError {
    /// A star, which stands for all.
    Star,
    /// Not an origin: the text has another form.
    Form,
}

/// Returns an origin in the form in which browsers send it: scheme and host in lower case, without the usual port.
/// The host may begin with `*.`.
pub(crate) fn normalized(text: &str) -> Result<String, OriginError> {
    if text == "*" {
        return Err(OriginError::Star);
    }
    let text = text.strip_suffix('/').unwrap_or(text);
    let (scheme, authority) = text.split_once("://").ok_or(OriginError::Form)?;
    let is_scheme = scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        && scheme
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'-' | b'.'));
    let known: http::uri::Authority = authority
        .strip_prefix("*.")
        .unwrap_or(authority)
        .parse()
        .map_err(|_| OriginError::Form)?;
    let has_only_host = !authority.contains('@') && !known.host().is_empty();
    if !is_scheme || !has_only_host || known.host().contains('*') {
        return Err(OriginError::Form);
    }
    let scheme = scheme.to_ascii_lowercase();
    let usual = match &*scheme {
        "http" => Some(80),
        "https" => Some(443),
        _ => None,
    };
    let star = if authority.starts_with("*.") {
        "*."
    } else {
        ""
    };
    let host = known.host().to_ascii_lowercase();
    let written = authority.strip_prefix("*.").unwrap_or(authority);
    let port: Option<u16> = match &written[host.len()..] {
        "" => None,
        port => {
            let port = port.strip_prefix(':').and_then(|port| port.parse().ok());
            Some(port.ok_or(OriginError::Form)?)
        }
    };
    Ok(match port.filter(|port| Some(*port) != usual) {
        Some(port) => format!("{scheme}://{star}{host}:{port}"),
        None => format!("{scheme}://{star}{host}"),
    })
}

/// The response headers that name who may read a response.
const SAID: [&str; 3] = [
    "access-control-allow-origin",
    "access-control-allow-credentials",
    "access-control-expose-headers",
];

/// A compiled policy. The default permits nothing.
#[derive(Debug, Default)]
pub(crate) struct Cors {
    origins: Origins,
    /// The allowed methods. `None`: those that the request names.
    methods: Option<Vec<HeaderValue>>,
    headers: Option<Vec<HeaderValue>>,
    exposed: Option<HeaderValue>,
    credentials: bool,
    max_age: Option<HeaderValue>,
}

#[derive(Debug, Default)]
enum Origins {
    /// No origin: the policy `Disable`.
    #[default]
    None,
    Any,
    Listed {
        exact: Vec<String>,
        /// Scheme, `.host` and port.
        subdomains: Vec<(String, String)>,
        varies: bool,
    },
}

impl Cors {
    pub(crate) fn new(config: &CorsConfig) -> Self {
        let value = |text: &str| HeaderValue::from_str(text).ok();
        let values = |list: &Option<Vec<String>>| {
            let list = list.as_ref()?;
            Some(list.iter().filter_map(|text| value(text)).collect())
        };
        let origins = match &config.origins {
            None => Origins::Any,
            Some(listed) => Origins::Listed {
                exact: listed.clone(),
                subdomains: listed
                    .iter()
                    .filter(|_| config.wildcard_subdomains)
                    .filter_map(|origin| {
                        let (scheme, host) = origin.split_once("://*")?;
                        Some((format!("{scheme}://"), host.to_owned()))
                    })
                    .collect(),
                varies: listed.len() > 1 || config.wildcard_subdomains,
            },
        };
        Self {
            origins,
            methods: values(&config.methods),
            headers: values(&config.headers),
            exposed: (!config.exposed_headers.is_empty())
                .then(|| value(&config.exposed_headers.join(",")))
                .flatten(),
            credentials: config.credentials,
            max_age: config
                .max_age
                .map(|age| HeaderValue::from(age.duration().as_secs())),
        }
    }

    /// Responds to a preflight request. For other requests, decides on the CORS headers of the response.
    pub(crate) fn check(&self, head: &mut impl Head) -> Option<Answer> {
        let origin = head.header("origin");
        let origin = origin.and_then(|origin| HeaderValue::from_bytes(origin).ok());
        // Several are none, and so is an empty one, also where every origin is allowed.
        let is_one = |origin: &&HeaderValue| !origin.is_empty() && !head.is_repeated("origin");
        let one = origin.as_ref().filter(is_one);
        let allowed = one.and_then(|origin| self.allowed(origin));
        let is_preflight = origin.is_some()
            && head.method().eq_ignore_ascii_case("OPTIONS")
            && head.header("access-control-request-method").is_some();
        if is_preflight {
            let mut answer = Answer::new(StatusCode::NO_CONTENT);
            if let Some((allowed, varies)) = allowed {
                self.permit(allowed.into_owned(), varies, head, &mut answer);
            }
            return Some(answer);
        }
        // The policy alone decides who may read: what the destination says might permit more.
        for name in SAID {
            head.remove_on_response(name);
        }
        let (allowed, varies) = allowed?;
        head.set_on_response("access-control-allow-origin", allowed.into_owned());
        if self.credentials {
            let value = HeaderValue::from_static("true");
            head.set_on_response("access-control-allow-credentials", value);
        }
        if let Some(exposed) = &self.exposed {
            head.set_on_response("access-control-expose-headers", exposed.clone());
        }
        if varies {
            head.append_on_response("vary", HeaderValue::from_static("Origin"));
        }
        None
    }

    /// Adds the headers for an allowed preflight.
    fn permit(&self, allowed: HeaderValue, varies: bool, head: &impl Head, answer: &mut Answer) {
        answer.push("access-control-allow-origin", allowed);
        if self.credentials {
            let value = HeaderValue::from_static("true");
            answer.push("access-control-allow-credentials", value);
        }
        let asked = "access-control-request-headers";
        if let Some(headers) = listed(self.headers.as_deref(), asked, head) {
            answer.push("access-control-allow-headers", headers);
        }
        let asked = "access-control-request-method";
        if let Some(methods) = listed(self.methods.as_deref(), asked, head) {
            answer.push("access-control-allow-methods", methods);
        }
        if let Some(max_age) = &self.max_age {
            answer.push("access-control-max-age", max_age.clone());
        }
        if varies {
            answer.push("vary", HeaderValue::from_static("Origin"));
        }
    }

    /// Returns the value for an allowed origin, and true if it depends on the origin.
    fn allowed<'a>(&self, origin: &'a HeaderValue) -> Option<(Cow<'a, HeaderValue>, bool)> {
        match &self.origins {
            Origins::None => None,
            Origins::Any => Some((Cow::Owned(HeaderValue::from_static("*")), false)),
            Origins::Listed {
                exact,
                subdomains,
                varies,
            } => {
                let text = origin.to_str().ok()?;
                let is_subdomain = |(scheme, host): &(String, String)| {
                    let sub = text
                        .strip_prefix(&**scheme)
                        .and_then(|rest| rest.strip_suffix(&**host));
                    // A whole host may be before the suffix, but nothing else.
                    sub.is_some_and(|sub| {
                        !sub.is_empty() && !sub.contains(['/', '@', ':', '?', '#', '\\', '*'])
                    })
                };
                let is_allowed = exact.iter().any(|allowed| allowed == text)
                    || subdomains.iter().any(is_subdomain);
                is_allowed.then_some((Cow::Borrowed(origin), *varies))
            }
        }
    }
}

/// Returns the configured list, or the one that the request names.
fn listed(list: Option<&[HeaderValue]>, asked: &str, head: &impl Head) -> Option<HeaderValue> {
    match list {
        Some(list) => {
            let list: Vec<&[u8]> = list.iter().map(HeaderValue::as_bytes).collect();
            (!list.is_empty())
                .then(|| HeaderValue::from_bytes(&list.join(&b","[..])).ok())
                .flatten()
        }
        None => {
            let mut all = Vec::new();
            head.each_header(&mut |name, value| {
                let is_asked = name.eq_ignore_ascii_case(asked);
                let names = value.split(|byte| *byte == b',').map(<[u8]>::trim_ascii);
                for name in names.filter(|name| is_asked && !name.is_empty()) {
                    if !all.is_empty() {
                        all.push(b',');
                    }
                    all.extend_from_slice(name);
                }
            });
            HeaderValue::from_bytes(&all).ok().filter(|v| !v.is_empty())
        }
    }
}
