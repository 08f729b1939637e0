//! Health checks.

use std::sync::Arc;
use std::time::Duration;

use super::policy::{self, PolicyWords};
use super::{Scope, filled};
use crate::compiled::{ActiveCheck, AgentCheck, AvailabilityPolicy, PassiveCheck, ProbeKind};
use crate::config::{ActiveHealthCheckConfig, AgentCheckConfig, ClusterConfig};
use crate::id::same_id;
use crate::problem::pointer_to;
use crate::suggest::{did_you_mean, listed, shortened};
use crate::time_span::TimeSpan;
use crate::transform::encoded_path;

const DEFAULT_INTERVAL: Duration = Duration::from_secs(15);
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(10);
/// The interval of HAProxy.
const DEFAULT_AGENT_INTERVAL: Duration = Duration::from_secs(2);
/// Most bytes that an agent is sent.
const LONGEST_SEND: usize = 4096;
const DEFAULT_REACTIVATION: Duration = Duration::from_secs(60);
const DEFAULT_THRESHOLD: f64 = 2.0;
const DEFAULT_RATE_LIMIT: f64 = 0.3;
const DEFAULT_LEAST: f64 = 10.0;
const DEFAULT_WINDOW: Duration = Duration::from_secs(60);
/// A window has a record for each second.
const LONGEST_WINDOW: Duration = Duration::from_secs(3600);

/// Checked whether or not a check is on, as YARP does.
pub(super) fn availability(
    config: &ClusterConfig,
    scope: &mut Scope<'_>,
) -> Option<AvailabilityPolicy> {
    let written = config
        .health_check
        .as_ref()
        .and_then(|health| health.available_destinations_policy.as_ref());
    let kind = PolicyWords {
        name: "available destinations policy",
        unknown: "unknown_available_destinations_policy",
    };
    let name = policy::resolve(
        written,
        kind,
        &["HealthyOrPanic", "HealthyAndUnknown"],
        &scope.options.available_destinations,
        "HealthCheck/AvailableDestinationsPolicy",
        scope,
    )?;
    Some(match &*name {
        "HealthyOrPanic" => AvailabilityPolicy::HealthyOrPanic,
        "HealthyAndUnknown" => AvailabilityPolicy::HealthyAndUnknown,
        _ => AvailabilityPolicy::Custom(name),
    })
}

/// `Some(None)` when probes are off.
pub(super) fn active(config: &ClusterConfig, scope: &mut Scope<'_>) -> Option<Option<ActiveCheck>> {
    let health = config.health_check.as_ref();
    let Some(active) = health
        .and_then(|health| health.active.as_ref())
        .filter(|active| active.enabled == Some(true))
    else {
        return Some(None);
    };
    let registered = &scope.options.active_health;
    let policy = policy::resolve(
        active.policy.as_ref(),
        PolicyWords {
            name: "active health policy",
            unknown: "unknown_active_health_policy",
        },
        &["ConsecutiveFailures"],
        registered,
        "HealthCheck/Active/Policy",
        scope,
    );
    let threshold = from_metadata(
        config,
        "ConsecutiveFailuresHealthPolicy.Threshold",
        DEFAULT_THRESHOLD,
        scope,
    );
    let mut scope = scope.below("HealthCheck/Active");
    let interval = positive(active.interval, DEFAULT_INTERVAL, "Interval", &mut scope);
    let timeout = positive(active.timeout, DEFAULT_TIMEOUT, "Timeout", &mut scope);
    let path = match filled(active.path.as_ref()) {
        Some(path) => probe_path(path, "Path", &mut scope),
        None => Some(String::new()),
    };
    let query = probe_query(active, &mut scope);
    let probe = probe_kind(active, &mut scope);
    let fast = positive(
        active.fast_interval,
        interval.unwrap_or(DEFAULT_INTERVAL),
        "FastInterval",
        &mut scope,
    );
    if let (Some(fast), Some(interval)) = (fast, interval)
        && fast > interval
    {
        scope.warning(
            "FastInterval",
            "unused_probe_setting",
            "it is longer than `Interval`, which is used for every destination",
        );
    }
    if active.rise == Some(0) {
        scope.error("Rise", "not_positive", "`Rise` must be at least 1");
    }
    Some(Some(ActiveCheck {
        interval: interval?,
        timeout: timeout?,
        policy: policy?,
        path: path?,
        query: query?,
        threshold,
        rise: active.rise.unwrap_or(1),
        fast_interval: fast?,
        probe: probe?,
    }))
}

/// The kind of probe, and warnings for settings that it has no use for.
fn probe_kind(active: &ActiveHealthCheckConfig, scope: &mut Scope<'_>) -> Option<ProbeKind> {
    const KINDS: [&str; 3] = ["Http", "Tcp", "Grpc"];
    let written = filled(active.probe.as_ref()).unwrap_or(KINDS[0]);
    let Some(kind) = KINDS.iter().find(|kind| same_id(kind, written)) else {
        let message = format!("`{}` is not one of {}", shortened(written), listed(KINDS));
        match did_you_mean(written, KINDS) {
            Some(suggestion) => scope.error_with("Probe", "unknown_value", message, suggestion),
            None => scope.error("Probe", "unknown_value", message),
        }
        return None;
    };
    for (key, value, user) in [
        ("Path", &active.path, "Http"),
        ("Query", &active.query, "Http"),
        ("GrpcService", &active.grpc_service, "Grpc"),
    ] {
        if filled(value.as_ref()).is_some() && *kind != user {
            scope.warning(
                key,
                "unused_probe_setting",
                format!("probes of the kind `{kind}` do not use it; `Probe` `{user}` does"),
            );
        }
    }
    Some(match *kind {
        "Tcp" => ProbeKind::Tcp,
        "Grpc" => ProbeKind::Grpc(active.grpc_service.as_deref().unwrap_or_default().into()),
        _ => ProbeKind::Http,
    })
}

/// `Some(None)` when passive checks are off.
pub(super) fn passive(
    config: &ClusterConfig,
    scope: &mut Scope<'_>,
) -> Option<Option<PassiveCheck>> {
    let health = config.health_check.as_ref();
    let Some(passive) = health
        .and_then(|health| health.passive.as_ref())
        .filter(|passive| passive.enabled == Some(true))
    else {
        return Some(None);
    };
    let registered = &scope.options.passive_health;
    let policy: Option<Arc<str>> = policy::resolve(
        passive.policy.as_ref(),
        PolicyWords {
            name: "passive health policy",
            unknown: "unknown_passive_health_policy",
        },
        &["TransportFailureRate"],
        registered,
        "HealthCheck/Passive/Policy",
        scope,
    );
    let reactivation = positive(
        passive.reactivation_period,
        DEFAULT_REACTIVATION,
        "HealthCheck/Passive/ReactivationPeriod",
        scope,
    );
    let rate_limit = rate_limit(config, scope);
    let least = from_metadata(
        config,
        "TransportFailureRateHealthPolicy.MinimalTotalCountThreshold",
        DEFAULT_LEAST,
        scope,
    );
    Some(Some(PassiveCheck {
        policy: policy?,
        reactivation: reactivation?,
        rate_limit,
        window: window(config, scope),
        least: least as u32,
    }))
}

/// `Some(None)` when agent checks are off.
pub(super) fn agent(config: &ClusterConfig, scope: &mut Scope<'_>) -> Option<Option<AgentCheck>> {
    let health = config.health_check.as_ref();
    let agent = health.and_then(|health| health.agent.as_ref());
    let Some(agent) = agent.filter(|agent| agent.enabled == Some(true)) else {
        return Some(None);
    };
    let is_located = check_agent_ports(agent, config, scope);
    let mut scope = scope.below("HealthCheck/Agent");
    let interval = positive(
        agent.interval,
        DEFAULT_AGENT_INTERVAL,
        "Interval",
        &mut scope,
    );
    let default = interval.unwrap_or(DEFAULT_AGENT_INTERVAL);
    let timeout = positive(agent.timeout, default, "Timeout", &mut scope);
    if agent.port == Some(0) {
        scope.error("Port", "not_positive", "`Port` must be from 1 to 65535");
        return None;
    }
    let send = agent.send.as_deref().unwrap_or_default();
    if send.len() > LONGEST_SEND {
        let message = format!("`Send` has more than {LONGEST_SEND} bytes");
        scope.error("Send", "too_long", message);
        return None;
    }
    Some(Some(AgentCheck {
        port: agent.port,
        send: send.into(),
        interval: interval?,
        timeout: timeout?,
    }))
    .filter(|_| is_located)
}

/// Returns false, with the problem, if an agent has no port.
fn check_agent_ports(
    agent: &AgentCheckConfig,
    config: &ClusterConfig,
    scope: &mut Scope<'_>,
) -> bool {
    let mut is_located = true;
    for (id, destination) in &config.destinations {
        let mut metadata = destination.metadata.iter().flatten();
        let own = metadata.find(|(key, _)| same_id(key, AgentCheck::PORT));
        let place = pointer_to("Destinations", id.as_str());
        match own {
            Some((key, text)) if !text.trim().parse::<u16>().is_ok_and(|port| port > 0) => {
                let place = pointer_to(&format!("{place}/Metadata"), key);
                let message = format!("`{}` is not a port from 1 to 65535", shortened(text));
                scope.error(&place, "invalid_metadata", message);
                is_located = false;
            }
            Some(_) => {}
            None if agent.port.is_none() => {
                scope.error_with(
                    "HealthCheck/Agent/Port",
                    "missing_agent_port",
                    format!("the agent of the destination `{}` has no port", id.as_str()),
                    format!(
                        "set `Port`, or `{}` in the metadata of the destination",
                        AgentCheck::PORT
                    ),
                );
                return false;
            }
            None => {}
        }
    }
    is_located
}

/// The rate of failures that the cluster's metadata have, else the default.
fn rate_limit(config: &ClusterConfig, scope: &mut Scope<'_>) -> f64 {
    const KEY: &str = "TransportFailureRateHealthPolicy.RateLimit";
    let limit = from_metadata(config, KEY, DEFAULT_RATE_LIMIT, scope);
    if let Some((name, text)) = metadata(config, KEY)
        && limit > 1.0
    {
        let message = format!(
            "`{}` is above 1, the rate at which every request fails, so that no destination is ever taken out",
            shortened(text)
        );
        let place = pointer_to("Metadata", name);
        scope.warning(&place, "invalid_metadata", message);
    }
    limit
}

/// The detection window that the cluster's metadata have, else the default.
fn window(config: &ClusterConfig, scope: &mut Scope<'_>) -> Duration {
    const KEY: &str = "TransportFailureRateHealthPolicy.DetectionWindowSize";
    let Some((name, text)) = metadata(config, KEY) else {
        return DEFAULT_WINDOW;
    };
    match text.parse::<TimeSpan>() {
        Ok(span) if (Duration::from_secs(1)..=LONGEST_WINDOW).contains(&span.duration()) => {
            span.duration()
        }
        _ => {
            scope.warning(
                &pointer_to("Metadata", name),
                "invalid_metadata",
                format!(
                    "`{}` is not a time from 1 s to 1 h, such as `00:01:00`; 1 minute is used",
                    shortened(text)
                ),
            );
            DEFAULT_WINDOW
        }
    }
}

/// The length of time at `key`, or `default`; none at all is an error.
pub(super) fn positive(
    span: Option<TimeSpan>,
    default: Duration,
    key: &str,
    scope: &mut Scope<'_>,
) -> Option<Duration> {
    match span {
        None => Some(default),
        Some(span) if span.is_zero() => {
            let name = key.rsplit('/').next().unwrap_or(key);
            scope.error(
                key,
                "not_positive",
                format!("`{name}` must be longer than no time"),
            );
            None
        }
        Some(span) => Some(span.duration()),
    }
}

/// Returns the percent-encoded form of the path of probes at `key`, or the problem with it.
pub(super) fn probe_path(path: &str, key: &str, scope: &mut Scope<'_>) -> Option<String> {
    if !path.starts_with('/') {
        scope.error_with(
            key,
            "invalid_probe_path",
            format!("the path `{}` does not begin with `/`", shortened(path)),
            format!("write `/{}`", shortened(path)),
        );
        return None;
    }
    if path.contains('?') {
        scope.warning(
            key,
            "query_in_path",
            "the `?` becomes a part of the path, as `%3F`; a query goes into the cluster's `HealthCheck.Active.Query`",
        );
    }
    Some(encoded_path(path))
}

fn probe_query(active: &ActiveHealthCheckConfig, scope: &mut Scope<'_>) -> Option<String> {
    let Some(query) = filled(active.query.as_ref()) else {
        return Some(String::new());
    };
    if !query.starts_with('?') {
        scope.error_with(
            "Query",
            "invalid_probe_query",
            format!("the query `{}` does not begin with `?`", shortened(query)),
            format!("write `?{}`", shortened(query)),
        );
        return None;
    }
    // A query may have all graphic characters but these: RFC 3986 section 3.4.
    if let Some(c) = query
        .chars()
        .find(|c| !c.is_ascii_graphic() || "#\"<>\\^`{|}".contains(*c))
    {
        scope.error(
            "Query",
            "invalid_probe_query",
            format!("a query may not hold {c:?} unless it is percent-encoded"),
        );
        return None;
    }
    Some(query.to_owned())
}

/// The positive number that the cluster's metadata have for `key`, else `default`.
fn from_metadata(config: &ClusterConfig, key: &str, default: f64, scope: &mut Scope<'_>) -> f64 {
    let Some((name, text)) = metadata(config, key) else {
        return default;
    };
    match text.trim().parse::<f64>() {
        Ok(number) if number.is_finite() && number > 0.0 => number,
        _ => {
            scope.warning(
                &pointer_to("Metadata", name),
                "invalid_metadata",
                format!(
                    "`{}` is not a number above 0; {default} is used",
                    shortened(text)
                ),
            );
            default
        }
    }
}

/// The cluster's metadata for `key`, ignoring case, with the name as written.
fn metadata<'a>(config: &'a ClusterConfig, key: &str) -> Option<(&'a String, &'a String)> {
    let mut metadata = config.metadata.iter().flatten();
    metadata.find(|(name, _)| same_id(name, key))
}
