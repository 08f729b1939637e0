use std::collections::BTreeSet;

use xds_types::pb::envoy::config::core::v3::HeaderValueOption;
use xds_types::pb::envoy::config::route::v3::header_matcher::HeaderMatchSpecifier;
use xds_types::pb::envoy::config::route::v3::route::Action;
use xds_types::pb::envoy::config::route::v3::route_action::{
    ClusterSpecifier, HostRewriteSpecifier,
};
use xds_types::pb::envoy::config::route::v3::route_match::PathSpecifier;
use xds_types::pb::envoy::config::route::v3::{
    HeaderMatcher, Route, RouteAction, RouteMatch, VirtualHost, WeightedCluster,
};
use xds_types::pb::envoy::r#type::matcher::v3::StringMatcher;
use xds_types::pb::envoy::r#type::matcher::v3::string_matcher::MatchPattern;

use super::{Findings, regex, shown};

pub(super) fn validate(host: &VirtualHost, findings: &mut Findings) {
    findings.name("name", &host.name);
    domains(host, findings);
    for (at, route) in host.routes.iter().enumerate() {
        self::route(&format!("routes[{at}]"), route, findings);
    }
    if host.matcher.is_some() {
        findings.reject("matcher", "is not served here; use routes");
    }
    if !(0..=2).contains(&host.require_tls) {
        findings.reject("require_tls", "is NONE, EXTERNAL_ONLY or ALL");
    }
    headers_to_add(
        "request_headers_to_add",
        &host.request_headers_to_add,
        findings,
    );
    headers_to_add(
        "response_headers_to_add",
        &host.response_headers_to_add,
        findings,
    );
    header_names(
        "request_headers_to_remove",
        &host.request_headers_to_remove,
        findings,
    );
    header_names(
        "response_headers_to_remove",
        &host.response_headers_to_remove,
        findings,
    );
}

fn domains(host: &VirtualHost, findings: &mut Findings) {
    if host.domains.is_empty() {
        findings.reject(
            "domains",
            "are missing; a virtual host serves one domain at least, or `*`",
        );
    }
    let mut seen = BTreeSet::new();
    for (at, domain) in host.domains.iter().enumerate() {
        let field = format!("domains[{at}]");
        if domain.is_empty() {
            findings.reject(&field, "must not be empty");
        }
        if !is_header_value(domain) {
            findings.reject(&field, format!("{} has control characters", shown(domain)));
        }
        // Envoy compares them ignoring case.
        if !seen.insert(domain.to_ascii_lowercase()) {
            findings.reject(field, format!("{} is there twice", shown(domain)));
        }
    }
}

fn route(field: &str, route: &Route, findings: &mut Findings) {
    match &route.r#match {
        Some(matcher) => route_match(&format!("{field}.match"), matcher, findings),
        None => findings.reject(format!("{field}.match"), "is missing"),
    }
    match &route.action {
        Some(Action::Route(action)) => route_action(&format!("{field}.route"), action, findings),
        Some(Action::DirectResponse(direct)) if !(200..600).contains(&direct.status) => {
            findings.reject(
                format!("{field}.direct_response.status"),
                "is from 200 to 599",
            );
        }
        Some(Action::Redirect(redirect)) => {
            if !is_header_value(&redirect.host_redirect) {
                findings.reject(
                    format!("{field}.redirect.host_redirect"),
                    "has control characters",
                );
            }
            if !(0..=4).contains(&redirect.response_code) {
                findings.reject(
                    format!("{field}.redirect.response_code"),
                    "is no code of a redirect",
                );
            }
        }
        Some(Action::DirectResponse(_)) => {}
        Some(Action::FilterAction(_) | Action::NonForwardingAction(_)) => {
            findings.reject(field, "has an action that is not served here");
        }
        None => findings.reject(format!("{field}.action"), "is missing"),
    }
    if route
        .decorator
        .as_ref()
        .is_some_and(|decorator| decorator.operation.is_empty())
    {
        findings.reject(format!("{field}.decorator.operation"), "must not be empty");
    }
    headers_to_add(
        &format!("{field}.request_headers_to_add"),
        &route.request_headers_to_add,
        findings,
    );
    headers_to_add(
        &format!("{field}.response_headers_to_add"),
        &route.response_headers_to_add,
        findings,
    );
    header_names(
        &format!("{field}.request_headers_to_remove"),
        &route.request_headers_to_remove,
        findings,
    );
    header_names(
        &format!("{field}.response_headers_to_remove"),
        &route.response_headers_to_remove,
        findings,
    );
}

fn route_match(field: &str, matcher: &RouteMatch, findings: &mut Findings) {
    match &matcher.path_specifier {
        None => findings.reject(format!("{field}.path_specifier"), "is missing"),
        Some(PathSpecifier::SafeRegex(path)) => {
            regex_of(&format!("{field}.safe_regex"), &path.regex, findings)
        }
        Some(PathSpecifier::PathSeparatedPrefix(prefix)) => {
            // `^[^?#]+[^?#/]$` in the API.
            let has_end = prefix.ends_with('/') || prefix.chars().count() < 2;
            if has_end || prefix.contains(['?', '#']) || !prefix.starts_with('/') {
                findings.reject(
                    format!("{field}.path_separated_prefix"),
                    "begins with `/`, does not end with it, and has neither `?` nor `#`",
                );
            }
        }
        Some(_) => {}
    }
    for (at, header) in matcher.headers.iter().enumerate() {
        header_matcher(&format!("{field}.headers[{at}]"), header, findings);
    }
    for (at, parameter) in matcher.query_parameters.iter().enumerate() {
        use xds_types::pb::envoy::config::route::v3::query_parameter_matcher::QueryParameterMatchSpecifier;
        let field = format!("{field}.query_parameters[{at}]");
        findings.name(&format!("{field}.name"), &parameter.name);
        if parameter.name.len() > 1024 {
            findings.reject(format!("{field}.name"), "has more than 1024 bytes");
        }
        if let Some(QueryParameterMatchSpecifier::StringMatch(text)) =
            &parameter.query_parameter_match_specifier
        {
            string_matcher(&format!("{field}.string_match"), text, findings);
        }
    }
    for (at, cookie) in matcher.cookies.iter().enumerate() {
        let field = format!("{field}.cookies[{at}]");
        findings.name(&format!("{field}.name"), &cookie.name);
        match &cookie.string_match {
            Some(text) => string_matcher(&format!("{field}.string_match"), text, findings),
            None => findings.reject(format!("{field}.string_match"), "is missing"),
        }
    }
}

#[allow(
    deprecated,
    reason = "deprecated fields are still accepted, and can be wrong"
)]
fn header_matcher(field: &str, header: &HeaderMatcher, findings: &mut Findings) {
    header_name(&format!("{field}.name"), &header.name, findings);
    match &header.header_match_specifier {
        Some(HeaderMatchSpecifier::SafeRegexMatch(text)) => {
            regex_of(&format!("{field}.safe_regex_match"), &text.regex, findings);
        }
        Some(HeaderMatchSpecifier::StringMatch(text)) => {
            string_matcher(&format!("{field}.string_match"), text, findings);
        }
        Some(
            HeaderMatchSpecifier::PrefixMatch(text)
            | HeaderMatchSpecifier::SuffixMatch(text)
            | HeaderMatchSpecifier::ContainsMatch(text),
        ) if text.is_empty() => findings.reject(field, "matches an empty text; use present_match"),
        _ => {}
    }
}

fn string_matcher(field: &str, text: &StringMatcher, findings: &mut Findings) {
    match &text.match_pattern {
        None => findings.reject(field, "has no condition"),
        Some(MatchPattern::SafeRegex(text)) => {
            regex_of(&format!("{field}.safe_regex"), &text.regex, findings)
        }
        Some(
            MatchPattern::Prefix(text) | MatchPattern::Suffix(text) | MatchPattern::Contains(text),
        ) if text.is_empty() => {
            findings.reject(field, "matches an empty text");
        }
        Some(_) => {}
    }
}

fn regex_of(field: &str, pattern: &str, findings: &mut Findings) {
    if pattern.is_empty() {
        return findings.reject(field, "must not be empty");
    }
    if let Err(why) = regex::check(pattern) {
        findings.reject(field, format!("{} {why}", shown(pattern)));
    }
}

fn route_action(field: &str, action: &RouteAction, findings: &mut Findings) {
    match &action.cluster_specifier {
        Some(ClusterSpecifier::Cluster(name)) => findings.name(&format!("{field}.cluster"), name),
        Some(ClusterSpecifier::ClusterHeader(name)) => {
            header_name(&format!("{field}.cluster_header"), name, findings);
        }
        Some(ClusterSpecifier::WeightedClusters(weighted)) => {
            weighted_clusters(&format!("{field}.weighted_clusters"), weighted, findings);
        }
        Some(
            ClusterSpecifier::ClusterSpecifierPlugin(_)
            | ClusterSpecifier::InlineClusterSpecifierPlugin(_),
        ) => {
            findings.reject(
                format!("{field}.cluster_specifier_plugin"),
                "is not served here",
            );
        }
        None => findings.reject(format!("{field}.cluster_specifier"), "is missing"),
    }
    for (name, time) in [
        ("timeout", &action.timeout),
        ("idle_timeout", &action.idle_timeout),
        ("flush_timeout", &action.flush_timeout),
    ] {
        findings.not_negative(&format!("{field}.{name}"), time.as_ref());
    }
    if let Some(rewrite) = &action.regex_rewrite {
        match &rewrite.pattern {
            Some(pattern) => regex_of(
                &format!("{field}.regex_rewrite.pattern"),
                &pattern.regex,
                findings,
            ),
            None => findings.reject(format!("{field}.regex_rewrite.pattern"), "is missing"),
        }
    }
    let rewrites = [
        !action.prefix_rewrite.is_empty(),
        action.regex_rewrite.is_some(),
        action.path_rewrite_policy.is_some(),
    ];
    if rewrites.into_iter().filter(|is_set| *is_set).count() > 1 {
        findings.reject(field, "rewrites the path in two ways");
    }
    if let Some(HostRewriteSpecifier::HostRewriteLiteral(host)) = &action.host_rewrite_specifier
        && !is_header_value(host)
    {
        findings.reject(
            format!("{field}.host_rewrite_literal"),
            "has control characters",
        );
    }
    if let Some(retry) = &action.retry_policy {
        findings.not_negative(
            &format!("{field}.retry_policy.per_try_timeout"),
            retry.per_try_timeout.as_ref(),
        );
        if let Some(backoff) = &retry.retry_back_off {
            match &backoff.base_interval {
                Some(base) => findings.positive(
                    &format!("{field}.retry_policy.retry_back_off.base_interval"),
                    Some(base),
                ),
                None => findings.reject(
                    format!("{field}.retry_policy.retry_back_off.base_interval"),
                    "is missing",
                ),
            }
        }
    }
}

fn weighted_clusters(field: &str, weighted: &WeightedCluster, findings: &mut Findings) {
    if weighted.clusters.is_empty() {
        return findings.reject(field, "names no cluster");
    }
    let mut sum = 0_u64;
    for (at, cluster) in weighted.clusters.iter().enumerate() {
        let field = format!("{field}.clusters[{at}]");
        match (cluster.name.is_empty(), cluster.cluster_header.is_empty()) {
            (true, true) => findings.reject(format!("{field}.name"), "must not be empty"),
            (false, false) => findings.reject(field, "has a name and a cluster_header"),
            (true, false) => header_name(
                &format!("{field}.cluster_header"),
                &cluster.cluster_header,
                findings,
            ),
            (false, true) => {}
        }
        sum += u64::from(cluster.weight.as_ref().map_or(0, |weight| weight.value));
    }
    if sum == 0 || sum > u64::from(u32::MAX) {
        findings.reject(
            field,
            format!("the weights are {sum} together; they have to be from 1 to 4294967295"),
        );
    }
}

/// Checks the name of a header. Pseudo-headers may be matched too.
fn header_name(field: &str, name: &str, findings: &mut Findings) {
    let plain = name.strip_prefix(':').unwrap_or(name);
    if plain.is_empty() || http::HeaderName::from_bytes(plain.as_bytes()).is_err() {
        findings.reject(field, format!("{:?} is no name of a header", shown(name)));
    }
}

fn header_names(field: &str, names: &[String], findings: &mut Findings) {
    for (at, name) in names.iter().enumerate() {
        header_name(&format!("{field}[{at}]"), name, findings);
        if name.starts_with(':') || name.eq_ignore_ascii_case("host") {
            findings.reject(
                format!("{field}[{at}]"),
                "Envoy does not remove `Host` nor what begins with `:`",
            );
        }
    }
}

fn headers_to_add(field: &str, headers: &[HeaderValueOption], findings: &mut Findings) {
    for (at, option) in headers.iter().enumerate() {
        let field = format!("{field}[{at}].header");
        let Some(header) = &option.header else {
            findings.reject(field, "is missing");
            continue;
        };
        header_name(&format!("{field}.key"), &header.key, findings);
        if header.key.starts_with(':') || header.key.eq_ignore_ascii_case("host") {
            findings.reject(
                format!("{field}.key"),
                "Envoy does not set `Host` nor what begins with `:` this way",
            );
        }
        if !is_header_value(&header.value) || header.value.len() > 16_384 {
            findings.reject(
                format!("{field}.value"),
                "has control characters, or more than 16384 bytes",
            );
        }
        if !is_format(&header.value) {
            findings.reject(
                format!("{field}.value"),
                "has a `%` that begins no command; a plain one is written `%%`",
            );
        }
    }
}

/// Returns true if each `%` is doubled or begins a command, `%NAME%` or `%NAME(…)…%`.
fn is_format(value: &str) -> bool {
    let mut rest = value;
    while let Some(at) = rest.find('%') {
        let after = rest.get(at + 1..).unwrap_or_default();
        if let Some(plain) = after.strip_prefix('%') {
            rest = plain;
            continue;
        }
        let name = after
            .bytes()
            .take_while(|byte| byte.is_ascii_uppercase() || matches!(byte, b'_' | b'0'..=b'9'));
        let Some(arguments) = after
            .get(name.clone().count()..)
            .filter(|_| name.count() > 0)
        else {
            return false;
        };
        let arguments = match arguments.strip_prefix('(') {
            Some(inside) => match inside.split_once(')') {
                Some((_, after)) => after,
                None => return false,
            },
            None => arguments,
        };
        match arguments.split_once('%') {
            Some((_, after)) => rest = after,
            None => return false,
        }
    }
    true
}

/// `HTTP_HEADER_VALUE` of the API, not strict.
fn is_header_value(value: &str) -> bool {
    !value.contains(['\0', '\r', '\n'])
}
