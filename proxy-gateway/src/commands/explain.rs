//! `explain`: the result for a request.

use std::fmt::Write;

use program_kit::Failure;
use proxy_runtime::explain::{
    Explanation, KeyUse, ProxySettings, Verdict, explain as decide, request_from_text,
};

use super::{load, print, print_json, unusable};
use crate::check::examine;
use crate::cli::{Explain, Format};
use crate::document::Document;
use crate::settings::Server;

/// The maximum number of listed routes that do not match, in text output.
const CONSIDERED: usize = 20;

pub(crate) fn explain(options: &Explain) -> Result<(), Failure> {
    let examined = examine(&load(&Document::of(&options.files)?)?);
    let snapshot = match examined.snapshot {
        Some(snapshot) if !examined.problems.has_errors() => snapshot,
        _ => return Err(unusable(&examined.problems)),
    };
    let headers = options.headers.iter().map(String::as_str);
    let listeners = examined.settings.explained_listeners();
    let rules = listeners.rules(options.listener.as_deref());
    let rules = rules.map_err(Failure::usage)?;
    let Server {
        mut limits, zone, ..
    } = examined.settings.server;
    let mut settings = ProxySettings::default();
    settings.zone = zone;
    // It is set for the proxy, since routes can override it.
    settings.max_request_body = limits.body_bytes.take();
    let remote = options.remote_addr;
    let asked = request_from_text(
        &options.method,
        &options.url,
        headers,
        &limits,
        rules,
        remote,
    );
    let explanation = asked
        .map_err(Failure::usage)?
        .explain(|request, connection| decide(&snapshot, &settings, request, connection));
    match options.format {
        Format::Json => print_json(&explanation),
        Format::Text => print(readable(&explanation).trim_end()),
    }
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
                    "The server rejects it before any route is asked: {status}, {why}."
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
    for policy in &explanation.policies {
        writeln!(out, "  {policy}")?;
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
            _ => "is encrypted, and only a running proxy can read it",
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
            writeln!(out, "  {}: {}", other.route, other.rejected)?;
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
