//! `explain`: the result for a request.

use std::fmt::Write;
use std::net::SocketAddr;
use std::sync::Arc;

use program_kit::Failure;
use proxy_model::Snapshot;
use proxy_runtime::Cause;
use proxy_runtime::explain::{
    Considered, Explanation, KeyUse, ProxySettings, Verdict, explain as decide, request_from_text,
    shadowed_routes,
};
use serde_json::Value;

use super::{load, print, print_json, unusable};
use crate::check::examine;
use crate::cli::{Explain, Format};
use crate::document::Document;
use crate::gateway::{policies, provider};
use crate::settings::Server;

/// The maximum number of listed routes that do not match, in text output.
const CONSIDERED: usize = 10;

pub(crate) fn explain(options: &Explain) -> Result<(), Failure> {
    let examined = examine(&load(&Document::of(&options.files)?)?);
    let snapshot = match examined.snapshot {
        Some(snapshot) if !examined.problems.has_errors() => snapshot,
        _ => return Err(unusable(&examined.problems)),
    };
    if options.all_shadowed {
        return shadowed(&snapshot, options.format);
    }
    let past = options.log_line.as_deref().map(PastRequest::read);
    let past = past.transpose().map_err(Failure::usage)?;
    let headers = options.headers.iter().map(String::as_str);
    let listeners = examined.settings.explained_listeners();
    let rules = listeners.rules(options.listener.as_deref());
    let rules = rules.map_err(Failure::usage)?;
    let Server {
        mut limits,
        zone,
        loop_guard,
        destination_resolver,
        negotiate_errors,
        error_pages,
        ..
    } = examined.settings.server;
    let mut settings = ProxySettings::default();
    settings.zone = zone;
    settings.without_loop_guard = !loop_guard;
    settings.resolves_destinations = destination_resolver.is_some();
    settings.negotiate_errors = negotiate_errors;
    // Their files may be on another machine.
    settings.error_pages = error_pages.without_files();
    // Without a client of HTTP none is asked, and the text says so.
    settings.policies = policies(&provider())
        .ok()
        .map(|policies| Arc::new(policies) as _);
    // It is set for the proxy, since routes can override it.
    settings.max_request_body = limits.body_bytes.take();
    let (method, url) = match &past {
        Some(past) => (&past.method, &past.url),
        None => (
            &options.method,
            options.url.as_ref().unwrap_or(&options.method),
        ),
    };
    let remote = past
        .as_ref()
        .map_or(options.remote_addr, |past| past.remote);
    let asked = request_from_text(method, url, headers, &limits, rules, remote);
    let explanation = asked
        .map_err(Failure::usage)?
        .explain(|request, connection| decide(&snapshot, &settings, request, connection));
    match options.format {
        Format::Json => print_json(&explanation),
        Format::Text => {
            let logged = past.map_or_else(String::new, |past| past.logged);
            print(format!("{logged}{}", readable(&explanation)).trim_end())
        }
    }
}

/// Prints the routes that no request can reach.
fn shadowed(snapshot: &Snapshot, format: Format) -> Result<(), Failure> {
    let shadowed = shadowed_routes(snapshot);
    match format {
        Format::Json => print_json(&shadowed)?,
        Format::Text if shadowed.is_empty() => print("No route is shadowed by another one.")?,
        Format::Text => {
            let lines = shadowed
                .iter()
                .map(|route| format!("{}: {} takes all its requests", route.route, route.by));
            print(&lines.collect::<Vec<_>>().join("\n"))?;
        }
    }
    match shadowed.len() {
        0 => Ok(()),
        1 => Err(Failure::new("1 route cannot be reached")),
        many => Err(Failure::new(format!("{many} routes cannot be reached"))),
    }
}

/// A request of the past, from a line of the access log.
struct PastRequest {
    method: String,
    url: String,
    remote: Option<SocketAddr>,
    /// The end of the request as the line has it.
    logged: String,
}

impl PastRequest {
    fn read(line: &str) -> Result<Self, String> {
        let line: Value = serde_json::from_str(line).map_err(|error| {
            format!("the line of the access log is not JSON ({error}); lines have this form with `Format` `json`")
        })?;
        let text = |name: &str| line[name].as_str();
        let field = |name: &str| {
            text(name)
                .ok_or_else(|| format!("the line has no `{name}`: its request was not parsed"))
        };
        let url = format!(
            "{}://{}{}",
            field("scheme")?,
            field("host")?,
            field("path")?
        );
        let mut logged = match line["status"].as_u64() {
            Some(status) => format!("The log has {status}"),
            None => "The log has no status".to_owned(),
        };
        if let Some(name) = text("cause") {
            let cause = Cause::ALL.iter().find(|cause| cause.as_str() == name);
            let cause = cause.ok_or_else(|| format!("`{name}` is no cause of this version"))?;
            let (side, meaning) = (cause.side().as_str(), cause.meaning());
            logged.push_str(&format!(", {name}, at the side of the {side}: {meaning}"));
        }
        for name in ["route", "cluster", "destination"] {
            if let Some(id) = text(name) {
                logged.push_str(&format!("\n  {name} {id}"));
            }
        }
        logged.push_str("\n\nWith the configuration as it is now:\n");
        Ok(Self {
            method: field("method")?.to_owned(),
            url,
            remote: text("remote").and_then(|remote| remote.parse().ok()),
            logged,
        })
    }
}

/// Returns the criteria of a route that the request does not meet, with the request's values.
fn why_not(other: &Considered) -> String {
    if other.misses.is_empty() {
        return other.rejected.clone();
    }
    let misses = other.misses.iter().map(|miss| match &miss.came {
        Some(came) => format!("{} is {came}, expected {}", miss.criterion, miss.wanted),
        None => format!("{} is missing, expected {}", miss.criterion, miss.wanted),
    });
    misses.collect::<Vec<_>>().join("; ")
}

fn readable(explanation: &Explanation) -> String {
    let mut text = String::new();
    // Writing to a String cannot fail.
    let _ = write_all(explanation, &mut text);
    text
}

fn write_all(explanation: &Explanation, out: &mut String) -> std::fmt::Result {
    let route = explanation.route.as_ref().map_or("", |id| id.as_str());
    match explanation.outcome {
        Verdict::Matched => writeln!(out, "Route {route} takes it.")?,
        Verdict::Rejected => {
            let why = explanation.rejected.as_deref().unwrap_or_default();
            let status = explanation.status.map_or(400, |status| status.as_u16());
            match &explanation.route {
                None => writeln!(
                    out,
                    "The server rejects it before routing: {status}, {why}."
                )?,
                Some(_) => writeln!(
                    out,
                    "Route {route} takes it, but it is rejected: {status}, {why}."
                )?,
            }
        }
        Verdict::Answered => {
            let status = explanation.status.map_or(200, |status| status.as_u16());
            match &explanation.location {
                Some(location) => writeln!(
                    out,
                    "Route {route} takes it, and redirects it: {status}, {location}."
                )?,
                None => writeln!(out, "Route {route} takes it, and answers it: {status}.")?,
            }
        }
        Verdict::AnsweredByPolicy => {
            let status = explanation.status.map_or(403, |status| status.as_u16());
            let why = explanation
                .rejected
                .as_deref()
                .unwrap_or("policy answers it");
            writeln!(out, "Route {route} takes it, and its {why}: {status}.")?;
        }
        Verdict::NotFound => writeln!(out, "No route takes it: 404.")?,
        Verdict::MethodNotAllowed => writeln!(
            out,
            "Routes take the path, but not with this method: 405, Allow: {}.",
            explanation.allow.join(", ")
        )?,
        Verdict::NoCluster => {
            writeln!(out, "Route {route} takes it, but leads to no cluster: 503.")?;
        }
        Verdict::LoopDetected => writeln!(
            out,
            "Route {route} takes it, but this proxy has forwarded it before: 508."
        )?,
        Verdict::NoPartition => {
            let partition = explanation.partition.as_ref();
            let why = partition.and_then(|partition| partition.why.as_deref());
            writeln!(
                out,
                "Route {route} takes it, but {}: 400.",
                why.unwrap_or("it belongs to no partition")
            )?;
        }
        Verdict::NoDestination => {
            let status = explanation.status.map_or(503, |status| status.as_u16());
            let why = explanation.rejected.as_deref();
            let why = why.unwrap_or("no destination is available");
            writeln!(out, "Route {route} takes it, but {why}: {status}.")?;
        }
        _ => {
            let why = explanation
                .route_rejection
                .as_deref()
                .unwrap_or("the route rejects it");
            let status = explanation.status.map_or(503, |status| status.as_u16());
            writeln!(
                out,
                "Route {route} takes it, and rejects it: {status}, {why}."
            )?;
        }
    }
    if let Some(page) = &explanation.error_page {
        writeln!(out, "  error page {page}")?;
    }
    for policy in &explanation.policies {
        match explanation.undecided_policies.contains(policy) {
            true => writeln!(
                out,
                "  {policy} (not asked here: a service, a password or a count decides)"
            )?,
            false => writeln!(out, "  {policy}")?,
        }
    }
    for rule in &explanation.rules {
        writeln!(out, "  {rule}")?;
    }
    for (name, value) in &explanation.route_values {
        writeln!(out, "  {name} = {value}")?;
    }
    if let Some(partition) = &explanation.partition {
        write!(out, "  partition by {}", partition.source)?;
        if let Some(key) = &partition.key {
            write!(out, " = {key}")?;
        }
        // A number that is not the key is its hash.
        if let Some(number) = partition
            .number
            .as_ref()
            .filter(|n| partition.key.as_ref() != Some(*n))
        {
            write!(out, ", as a number {number}")?;
        }
        match &partition.keys {
            Some(keys) => writeln!(out, ": {keys}")?,
            None => writeln!(out)?,
        }
    }
    if let Some(affinity) = &explanation.affinity {
        let key = match affinity.key {
            KeyUse::NotSet => "is not set: the client gets one",
            KeyUse::Kept => "names the destination",
            KeyUse::Unavailable => "names no destination that is available",
            KeyUse::Unreadable => "makes no sense",
            _ => "can be read by the running proxy alone",
        };
        write!(
            out,
            "  session affinity by {} in {}: the key {key}",
            affinity.policy, affinity.key_name
        )?;
        match &affinity.destination {
            Some(destination) => writeln!(out, " ({destination})")?,
            None => writeln!(out)?,
        }
    }
    write_split(explanation, out)?;
    if let Some(cluster) = &explanation.cluster {
        let policy = explanation.policy.as_deref().unwrap_or("nothing");
        writeln!(out, "\nCluster {cluster}, picks by {policy}:")?;
        for destination in &explanation.destinations {
            let mark = if destination.eligible { '+' } else { '-' };
            write!(out, "  {mark} {} {}", destination.id, destination.address)?;
            match &destination.why {
                Some(why) => writeln!(out, "  ({why})")?,
                None => writeln!(out)?,
            }
        }
    }
    if let Some(forwarded) = &explanation.forwarded {
        writeln!(
            out,
            "\nWould be sent:\n  {} {}",
            forwarded.method, forwarded.uri
        )?;
        for (name, value) in &forwarded.headers {
            writeln!(out, "  {name}: {value}")?;
        }
    }
    if !explanation.considered.is_empty() {
        writeln!(out, "\nOther routes:")?;
        for other in explanation.considered.iter().take(CONSIDERED) {
            writeln!(out, "  {}: {}", other.route, why_not(other))?;
        }
        let more = explanation.considered.len().saturating_sub(CONSIDERED);
        if more + explanation.considered_omitted > 0 {
            writeln!(
                out,
                "  … and {} more",
                more + explanation.considered_omitted
            )?;
        }
    }
    Ok(())
}

/// Writes the shares of weighted clusters, and the reason for the one that is shown.
fn write_split(explanation: &Explanation, out: &mut String) -> std::fmt::Result {
    let shares = &explanation.weighted_clusters;
    let (Some(shown), false) = (&explanation.cluster, shares.is_empty()) else {
        return Ok(());
    };
    let shares = shares
        .iter()
        .map(|(id, share)| format!("{id} {:.4} %", share * 100.0));
    let shares = shares.map(|share| share.replace(".0000 %", " %"));
    let shares = shares.collect::<Vec<_>>().join(", ");
    let affinity = explanation.affinity.as_ref();
    let why = match affinity.map(|affinity| affinity.key) {
        _ if explanation.keeps_cluster => "the affinity key of the request is of it",
        Some(KeyUse::Unknown) => "it has the largest share; the affinity key may be of another one",
        _ => "it has the largest share",
    };
    writeln!(out, "  split: {shares}; {shown} is shown: {why}")
}
