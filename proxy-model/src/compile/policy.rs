//! Policies, which a configuration chooses by name.

use std::sync::Arc;

use super::{Scope, filled};
use crate::id::same_id;
use crate::suggest::{did_you_mean, listed, shortened};

/// The words for a kind of policy in a problem: `load balancing policy`, `unknown_load_balancing_policy`.
#[derive(Clone, Copy)]
pub(super) struct PolicyWords {
    pub(super) name: &'static str,
    pub(super) unknown: &'static str,
}

/// The policy that `written` names, in its own spelling: one of `built_in` or of `registered`; the first of `built_in`
/// if nothing is written. An unknown one is reported at `below`.
pub(super) fn resolve(
    written: Option<&String>,
    kind: PolicyWords,
    built_in: &[&'static str],
    registered: &[Arc<str>],
    below: &str,
    scope: &mut Scope<'_>,
) -> Option<Arc<str>> {
    let Some(written) = filled(written) else {
        return built_in.first().map(|name| Arc::from(*name));
    };
    if let Some(name) = built_in.iter().find(|name| same_id(name, written)) {
        return Some(Arc::from(*name));
    }
    if let Some(name) = registered.iter().find(|name| same_id(name, written)) {
        return Some(Arc::clone(name));
    }
    report_unknown(written, kind, built_in, registered, below, scope);
    None
}

/// Checks a policy that a route may name but need not: one of `reserved`, which the program may not register, or of
/// `registered`.
pub(super) fn check_optional(
    written: Option<&String>,
    kind: PolicyWords,
    reserved: &[&'static str],
    registered: &[Arc<str>],
    below: &str,
    scope: &mut Scope<'_>,
) {
    let Some(written) = filled(written) else {
        return;
    };
    let is_registered = registered.iter().any(|name| same_id(name, written));
    match reserved.iter().find(|name| same_id(name, written)) {
        Some(name) if is_registered => scope.error_with(
            below,
            "reserved_policy_name",
            format!(
                "the program registers a {} called `{name}`, a name that has a meaning of its own",
                kind.name
            ),
            "register it under another name",
        ),
        None if !is_registered => {
            report_unknown(written, kind, reserved, registered, below, scope);
        }
        _ => {}
    }
}

fn report_unknown(
    written: &str,
    kind: PolicyWords,
    built_in: &[&'static str],
    registered: &[Arc<str>],
    below: &str,
    scope: &mut Scope<'_>,
) {
    let names = || {
        let built_in = built_in.iter().copied();
        built_in.chain(registered.iter().map(|name| &**name))
    };
    let known = match names().next() {
        Some(_) => format!("known are {}", listed(names())),
        None => "none is registered".to_owned(),
    };
    let message = format!(
        "`{}` is not a known {}; {known}",
        shortened(written),
        kind.name
    );
    match did_you_mean(written, names()) {
        Some(suggestion) => scope.error_with(below, kind.unknown, message, suggestion),
        None => scope.error(below, kind.unknown, message),
    }
}
