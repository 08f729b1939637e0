//! The choice of the route for a request.
//!
//! A [`RouteMatcher`] holds the criteria of one route: a [`PathTemplate`], [`HostPattern`]s, a
//! [`MethodSet`], [`HeaderMatcher`]s and [`QueryMatcher`]s. A [`RouteTable`] finds, among many routes, the
//! one that takes a request: of those whose criteria all hold, the one with the smallest [`Precedence`].
//!
//! The semantics are those of YARP, which routes as ASP.NET Core does. They differ where those are
//! undefined or impractical:
//!
//! * two routes that are equal in all criteria do not make requests fail; the first in the configuration takes them;
//! * of several wildcards for hosts, the longest wins; IPv6 addresses are hosts, too;
//! * hosts are ranked within the order of [`Precedence`], so a route whose host is more specific but whose
//!   headers do not match leaves the request to a route with a wildcard;
//! * methods beyond the usual ones can be listed;
//! * a route counts towards `405 Method Not Allowed` only if everything but the method matches, its host included.
//!
//! The work for a request is limited by the configuration and the length of the request.

mod criterion;
mod header;
mod host;
mod matcher;
mod method;
mod misses;
mod path;
mod percent;
mod precedence;
mod query;
mod table;
mod template;
#[cfg(test)]
mod tests;
pub(crate) mod text;

pub use self::criterion::CriterionError;
pub use self::header::HeaderMatcher;
pub use self::host::{HostError, HostPattern, HostRank, RequestHost, host_to_ascii};
pub use self::matcher::{Mismatch, RouteMatcher, RouteMatcherParts};
pub use self::method::{MethodError, MethodErrorKind, MethodSet};
pub use self::precedence::Precedence;
pub(crate) use self::query::ParameterName;
pub use self::query::QueryMatcher;
pub use self::table::{Candidate, Lookup, RouteTable};
pub(crate) use self::template::Expressions;
pub use self::template::{
    MAX_SEGMENTS, PathTemplate, RouteValues, TemplateError, TemplateErrorKind, TemplateParameter,
    TemplatePart, TemplatePrecedence, TemplateSegment,
};
