//! Compilation of a route's match criteria.

use super::{Scope, filled};
use crate::config::{RouteConfig, RouteMatch};
use crate::foreign;
use crate::matching::{
    CriterionError, HeaderMatcher, HostPattern, MethodSet, PathTemplate, QueryMatcher,
    RouteMatcher, RouteMatcherParts,
};
use crate::problem::{Problem, pointer_to};

pub(super) fn compile(config: &RouteConfig, scope: &mut Scope<'_>) -> Option<RouteMatcher> {
    let criteria = &config.r#match;
    check_not_empty(criteria, scope);
    let path = match filled(criteria.path.as_ref()) {
        None => Some(PathTemplate::catch_all()),
        Some(text) => template(text, scope),
    };
    let hosts = each(criteria.hosts.as_deref(), "Hosts", scope, |host, scope| {
        HostPattern::parse(host)
            .map_err(|error| {
                let code = if host.is_empty() {
                    "empty_host"
                } else {
                    "invalid_host"
                };
                let mut problem = Problem::error(scope.pointer(), code, error.to_string());
                problem.suggestion = error.suggestion();
                scope.problems.push(problem);
            })
            .ok()
    });
    let methods = methods(criteria.methods.as_deref().unwrap_or_default(), scope);
    let headers = each(
        criteria.headers.as_deref(),
        "Headers",
        scope,
        |header, scope| criterion(HeaderMatcher::compile(header), scope),
    );
    let query = each(
        criteria.query_parameters.as_deref(),
        "QueryParameters",
        scope,
        |parameter, scope| criterion(QueryMatcher::compile(parameter), scope),
    );
    Some(RouteMatcher::new(RouteMatcherParts {
        path: path?,
        hosts,
        methods: methods?,
        headers,
        query,
        accepts_preflight: filled(config.cors_policy.as_ref()).is_some(),
    }))
}

/// Rejects a route without host and path, which would match all requests and is probably a mistake.
fn check_not_empty(criteria: &RouteMatch, scope: &mut Scope<'_>) {
    let has_host = criteria.hosts.iter().flatten().any(|host| !host.is_empty());
    let has_empty_host = criteria.hosts.iter().flatten().any(String::is_empty);
    // An empty host is reported on its own.
    if has_host || has_empty_host || filled(criteria.path.as_ref()).is_some() {
        return;
    }
    scope.problems.push(
        Problem::error(
            scope.pointer(),
            "no_criteria",
            "the route has neither a `Path` nor `Hosts`",
        )
        .with_suggestion("to match everything write `\"Path\": \"/{**catchall}\"`"),
    );
}

fn template(text: &str, scope: &mut Scope<'_>) -> Option<PathTemplate> {
    let parsed = PathTemplate::parse_with(text, scope.expressions);
    if parsed.is_ok() {
        let literal = foreign::path(text, scope.place("Path"));
        scope.problems.extend(literal);
    }
    parsed
        .map_err(|error| {
            let pointer = pointer_to(scope.pointer(), "Path");
            let code = if error.kind().is_too_large() {
                "regex_too_large"
            } else {
                "invalid_path"
            };
            let mut problem = Problem::error(pointer, code, error.to_string());
            problem.suggestion = error.suggestion().map(str::to_owned);
            scope.problems.push(problem);
        })
        .ok()
}

fn methods(written: &[String], scope: &mut Scope<'_>) -> Option<MethodSet> {
    MethodSet::parse(written)
        .map_err(|errors| {
            for error in errors {
                let pointer = scope.place(&format!("Methods/{}", error.index()));
                let mut problem = Problem::error(pointer, "invalid_method", error.to_string());
                problem.suggestion = error.suggestion();
                scope.problems.push(problem);
            }
        })
        .ok()
}

fn criterion<T>(result: Result<T, Vec<CriterionError>>, scope: &mut Scope<'_>) -> Option<T> {
    result
        .map_err(|errors| errors.iter().for_each(|error| rejected(error, scope)))
        .ok()
}

fn rejected(error: &CriterionError, scope: &mut Scope<'_>) {
    let (below, code) = match error {
        CriterionError::NoName => ("Name".to_owned(), "missing_name"),
        CriterionError::InvalidName { .. } => ("Name".to_owned(), "invalid_header_name"),
        CriterionError::NoValues { .. } => ("Values".to_owned(), "missing_values"),
        CriterionError::UnusedValues { .. } => ("Values".to_owned(), "unexpected_values"),
        CriterionError::EmptyValue { index } => (format!("Values/{index}"), "empty_value"),
    };
    let mut problem = Problem::error(scope.place(&below), code, error.to_string());
    problem.suggestion = error.suggestion();
    scope.problems.push(problem);
}

/// Compiles every element of the list at `key`; those that have an error are left out.
fn each<T, C>(
    list: Option<&[T]>,
    key: &str,
    scope: &mut Scope<'_>,
    compile: impl Fn(&T, &mut Scope<'_>) -> Option<C>,
) -> Vec<C> {
    let list = list.unwrap_or_default();
    let mut compiled = Vec::with_capacity(list.len());
    for (i, element) in list.iter().enumerate() {
        compiled.extend(compile(element, &mut scope.below(&format!("{key}/{i}"))));
    }
    compiled
}
