//! Path, query and method, and where they are sent.

use std::borrow::Cow;

use http::Method;

use super::path::{self, PathText};
use super::query::{self, QueryChange, QueryValue};
use super::{SetOrAppend, Transforms};
use crate::compiled::DestinationAddress;
use crate::matching::{PathTemplate, RouteValues};

/// A change to path, query or method.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum TargetTransform {
    /// Adds a path before the path.
    PathPrefix(PathText),
    /// Takes a path off the start of the path, if it is there and ends where a segment ends.
    PathRemovePrefix(PathText),
    /// Replaces the path.
    PathSet(PathText),
    /// Makes a new path of the values that the route matched; an empty one, if a required value is missing.
    PathPattern(PathTemplate),
    /// Changes a parameter of the query.
    Query(QueryChange),
    /// Changes one method into another.
    Method {
        /// The method that is changed, compared ignoring case.
        from: Method,
        /// The new method.
        to: Method,
    },
}

/// The target of a request, while it is rewritten.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestTarget<'a> {
    /// The method.
    pub method: Cow<'a, str>,
    /// The path, percent-encoded, as received or as rewritten. Begins with `/`, or is empty.
    pub path: Cow<'a, str>,
    /// The query without its `?`, percent-encoded, as received or as rewritten.
    pub query: Option<Cow<'a, str>>,
}

impl Transforms {
    /// Makes the changes to path, query and method, in order. `values` are those that the route's template captured.
    ///
    /// What no change is about stays byte for byte as it was received.
    pub fn rewrite<'a>(&'a self, target: &mut RequestTarget<'a>, values: &RouteValues) {
        for transform in self.target() {
            transform.apply(target, values);
        }
    }
}

impl TargetTransform {
    /// Makes the change.
    pub fn apply<'a>(&'a self, target: &mut RequestTarget<'a>, values: &RouteValues) {
        match self {
            Self::PathSet(path) => target.path = Cow::Borrowed(path.as_str()),
            Self::PathPrefix(prefix) => {
                target.path = Cow::Owned(path::joined(prefix.as_str(), &target.path));
            }
            Self::PathRemovePrefix(prefix) => {
                let rest = match &target.path {
                    Cow::Borrowed(path) => prefix.strip_from(path).map(Cow::Borrowed),
                    Cow::Owned(path) => prefix
                        .strip_from(path)
                        .map(|rest| Cow::Owned(rest.to_owned())),
                };
                if let Some(rest) = rest {
                    target.path = rest;
                }
            }
            Self::PathPattern(template) => {
                target.path = Cow::Owned(template.format(values).unwrap_or_default());
            }
            Self::Query(change) => change_query(change, target, values),
            Self::Method { from, to } => {
                if from.as_str().eq_ignore_ascii_case(&target.method) {
                    target.method = Cow::Borrowed(to.as_str());
                }
            }
        }
    }
}

fn change_query(change: &QueryChange, target: &mut RequestTarget<'_>, values: &RouteValues) {
    let before = target.query.as_deref().unwrap_or_default();
    let after = match change {
        QueryChange::Remove(name) => {
            if !query::contains(before, name) {
                return;
            }
            query::removed(before, name)
        }
        QueryChange::Value {
            name,
            value,
            action,
        } => {
            let value = match value {
                QueryValue::Text(text) => Some(&**text),
                QueryValue::RouteValue(parameter) => values.get(parameter),
            };
            let Some(value) = value else {
                return;
            };
            Some(match action {
                SetOrAppend::Set => query::replaced(before, name, value),
                SetOrAppend::Append => query::appended(before, name, value),
            })
        }
    };
    target.query = after.map(Cow::Owned);
}

/// Returns the path and query to request from a destination: the base path of `address`, then `path`, then
/// `query`.
///
/// Characters that cannot be in them are percent-encoded. Existing escapes stay unchanged, so that `%2F` is
/// sent as it was received. `query` has no `?`.
///
/// ```
/// use proxy_model::config::ProxyConfig;
/// use proxy_model::transform::path_and_query;
/// use proxy_model::{CompileOptions, Snapshot};
///
/// let config = ProxyConfig::from_json(
///     r#"{ "Clusters": { "c": { "Destinations": { "d": { "Address": "http://localhost/base/" } } } } }"#,
/// )?;
/// let (snapshot, _) = Snapshot::compile(config, &CompileOptions::default())?;
/// let address = snapshot.clusters()[0].destinations()[0].address();
/// assert_eq!(path_and_query(address, "/a%2Fb/ü", Some("q=1")), "/base/a%2Fb/%C3%BC?q=1");
/// # Ok::<(), proxy_model::Problems>(())
/// ```
pub fn path_and_query(address: &DestinationAddress, path: &str, query: Option<&str>) -> String {
    // One `/` is dropped where the two paths meet. Without a path the base path stays as it was written.
    let base = match path {
        "" => address.path(),
        _ => address.base_path(),
    };
    let mut out =
        String::with_capacity(base.len() + path.len() + query.map_or(0, |query| query.len() + 1));
    out.push_str(base);
    if !path.is_empty() && !path.starts_with('/') {
        out.push('/');
    }
    path::push_encoded(&mut out, path);
    if let Some(query) = query {
        out.push('?');
        path::push_visible(&mut out, query);
    }
    out
}
