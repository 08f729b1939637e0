//! The order in which routes are tried.

use std::cmp::Reverse;

use super::host::HostRank;
use super::template::TemplatePrecedence;

/// The precedence of a route; smaller comes first. Routes that are equal are tried in the order of the
/// configuration.
///
/// Compared in this order, as in ASP.NET Core and YARP:
///
/// 1. `Order`;
/// 2. the [template](TemplatePrecedence);
/// 3. a route with methods before one without;
/// 4. a route with hosts before one without, and the more [specific](HostRank) of the patterns that match the request
///    before the others;
/// 5. more conditions on headers before fewer;
/// 6. more conditions on query parameters before fewer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Precedence {
    pub(super) order: i32,
    pub(super) template: TemplatePrecedence,
    pub(super) methods: MethodsRank,
    pub(super) host: HostRank,
    pub(super) headers: Reverse<usize>,
    pub(super) query: Reverse<usize>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum MethodsRank {
    Some,
    All,
}
