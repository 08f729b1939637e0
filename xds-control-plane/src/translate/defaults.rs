//! The settings of all clusters, which are kept under a key in Consul.

use std::time::Duration;

use discovery_core::text::shortened;
use serde_json::Value;
use xds_types::pb::envoy::config::cluster::v3::cluster::LbPolicy;

use super::model::Limits;

/// The settings of all clusters.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Defaults {
    /// The time limit for connecting: `cds.connect_timeout`. Default: 0.4 s.
    pub connect_timeout: Duration,
    /// The interval at which REST clients poll endpoints: `cds.refresh_delay`. Default: 1 s.
    pub refresh_delay: Duration,
    /// The policy that picks an endpoint: `cds.lb_policy`. Default: least requests.
    pub lb_policy: LbPolicy,
    /// True to close connections to a removed endpoint even if its checks pass:
    /// `cds.drain_connections_on_host_removal`. Default: true.
    pub drain_on_removal: bool,
    /// The time limit of a health check: `cds.health_checks.timeout`. Default: 1 s.
    pub health_timeout: Duration,
    /// The interval of health checks: `cds.health_checks.interval`. Default: 2 s.
    pub health_interval: Duration,
    /// Number of failed checks after which an endpoint is unhealthy:
    /// `cds.health_checks.unhealthy_threshold`. Default: 1.
    pub unhealthy_threshold: u32,
    /// Number of passed checks after which an endpoint is healthy: `cds.health_checks.healthy_threshold`.
    /// Default: 3.
    pub healthy_threshold: u32,
    /// Maximum number of connections: `cds.circuit_breakers.thresholds.max_connections`. Default: 5120.
    pub max_connections: u32,
    /// Maximum number of requests that wait for a connection:
    /// `cds.circuit_breakers.thresholds.max_pending_requests`. Default: 5120.
    pub max_pending_requests: u32,
    /// Maximum number of concurrent requests: `cds.circuit_breakers.thresholds.max_requests`. Default:
    /// 5120.
    pub max_requests: u32,
    /// Maximum number of concurrent retries: `cds.circuit_breakers.thresholds.max_retries`. Default: 3.
    pub max_retries: u32,
    /// The time limit of a request to a service that is not in the registry: `rds.route.upstream_timeout`.
    /// Default: 10 s.
    pub upstream_timeout: Duration,
}

impl Default for Defaults {
    fn default() -> Self {
        Self {
            connect_timeout: Duration::from_millis(400),
            refresh_delay: Duration::from_secs(1),
            lb_policy: LbPolicy::LeastRequest,
            drain_on_removal: true,
            health_timeout: Duration::from_secs(1),
            health_interval: Duration::from_secs(2),
            unhealthy_threshold: 1,
            healthy_threshold: 3,
            max_connections: 5120,
            max_pending_requests: 5120,
            max_requests: 5120,
            max_retries: 3,
            upstream_timeout: Duration::from_secs(10),
        }
    }
}

impl Defaults {
    /// Reads the key's value. An unusable field keeps its default and is reported; the others apply.
    ///
    /// Numbers and booleans may be texts. Times are texts such as `0.4s` or `250ms`, or numbers of seconds.
    ///
    /// # Errors
    ///
    /// Returns an error if the value is not a JSON object.
    pub fn from_json(value: &[u8]) -> Result<(Self, Vec<String>), String> {
        let document: Value = serde_json::from_slice(value)
            .map_err(|error| format!("the value is not JSON: {error}"))?;
        if !document.is_object() {
            return Err("the value is not a JSON object".to_owned());
        }
        let mut reading = DefaultsReader {
            document: &document,
            problems: Vec::new(),
        };
        let built_in = Self::default();
        let threshold = "/cds/circuit_breakers/thresholds";
        let defaults = Self {
            connect_timeout: reading.time("/cds/connect_timeout", built_in.connect_timeout),
            refresh_delay: reading.time("/cds/refresh_delay", built_in.refresh_delay),
            lb_policy: reading.field("/cds/lb_policy", built_in.lb_policy, policy),
            drain_on_removal: reading.field(
                "/cds/drain_connections_on_host_removal",
                built_in.drain_on_removal,
                boolean,
            ),
            health_timeout: reading.time("/cds/health_checks/timeout", built_in.health_timeout),
            health_interval: reading.time("/cds/health_checks/interval", built_in.health_interval),
            unhealthy_threshold: reading.field(
                "/cds/health_checks/unhealthy_threshold",
                built_in.unhealthy_threshold,
                |value| number(value, 1),
            ),
            healthy_threshold: reading.field(
                "/cds/health_checks/healthy_threshold",
                built_in.healthy_threshold,
                |value| number(value, 1),
            ),
            max_connections: reading.limit(threshold, "max_connections", built_in.max_connections),
            max_pending_requests: reading.limit(
                threshold,
                "max_pending_requests",
                built_in.max_pending_requests,
            ),
            max_requests: reading.limit(threshold, "max_requests", built_in.max_requests),
            max_retries: reading.limit(threshold, "max_retries", built_in.max_retries),
            upstream_timeout: reading
                .time("/rds/route/upstream_timeout", built_in.upstream_timeout),
        };
        Ok((defaults, reading.problems))
    }

    pub(super) fn with_limits(&self, limits: &Limits) -> [u32; 4] {
        [
            limits.max_connections.unwrap_or(self.max_connections),
            limits
                .max_pending_requests
                .unwrap_or(self.max_pending_requests),
            limits.max_requests.unwrap_or(self.max_requests),
            limits.max_retries.unwrap_or(self.max_retries),
        ]
    }
}

/// Minimum of a limit. Zero would let nothing through, except that zero retries may be intended.
pub(super) fn least_of(limit: &str) -> u32 {
    u32::from(limit != "max_retries")
}

struct DefaultsReader<'d> {
    document: &'d Value,
    problems: Vec<String>,
}

impl DefaultsReader<'_> {
    fn field<T: Copy>(
        &mut self,
        pointer: &str,
        default: T,
        read: impl FnOnce(&Value) -> Result<T, &'static str>,
    ) -> T {
        // `thresholds` is a list with one element in Envoy, and an object here; both are taken.
        let listed = pointer.replace("/thresholds/", "/thresholds/0/");
        let value = self
            .document
            .pointer(pointer)
            .or_else(|| self.document.pointer(&listed));
        match value.map_or(Ok(default), read) {
            Ok(value) => value,
            Err(expected) => {
                let found =
                    value.map_or_else(String::new, |value| shortened(&value.to_string(), 60));
                self.problems.push(format!(
                    "{pointer} is {found}, and not {expected}; the default applies"
                ));
                default
            }
        }
    }

    fn time(&mut self, pointer: &str, default: Duration) -> Duration {
        self.field(pointer, default, time)
    }

    fn limit(&mut self, parent: &str, name: &str, default: u32) -> u32 {
        self.field(&format!("{parent}/{name}"), default, |value| {
            number(value, least_of(name))
        })
    }
}

fn policy(value: &Value) -> Result<LbPolicy, &'static str> {
    const EXPECTED: &str = "one of ROUND_ROBIN, LEAST_REQUEST, RING_HASH, RANDOM and MAGLEV";
    let name = value.as_str().ok_or(EXPECTED)?.trim().to_ascii_uppercase();
    match LbPolicy::from_str_name(&name) {
        // The others need more than a name.
        None | Some(LbPolicy::ClusterProvided | LbPolicy::LoadBalancingPolicyConfig) => {
            Err(EXPECTED)
        }
        Some(policy) => Ok(policy),
    }
}

fn boolean(value: &Value) -> Result<bool, &'static str> {
    match value {
        Value::Bool(value) => Ok(*value),
        Value::String(text) if text.trim().eq_ignore_ascii_case("true") => Ok(true),
        Value::String(text) if text.trim().eq_ignore_ascii_case("false") => Ok(false),
        _ => Err("true or false"),
    }
}

fn number(value: &Value, least: u32) -> Result<u32, &'static str> {
    let read = match value {
        Value::Number(number) => number.as_u64().and_then(|number| number.try_into().ok()),
        Value::String(text) => text.trim().parse().ok(),
        _ => None,
    };
    read.filter(|number| *number >= least).ok_or(match least {
        0 => "a whole number from 0 to 4294967295",
        _ => "a whole number from 1 to 4294967295",
    })
}

fn time(value: &Value) -> Result<Duration, &'static str> {
    let read = match value {
        Value::Number(number) => number.as_f64().and_then(seconds),
        Value::String(text) => {
            let text = text.trim();
            text.parse()
                .ok()
                .and_then(seconds)
                .or_else(|| parse_time(text))
        }
        _ => None,
    };
    read.ok_or("a time such as 0.4s, more than none and at most a day")
}

/// Parses a time with its unit: `0.4s`, `250ms`, `2m`, `1h`. `None` if it is invalid, zero, or more than a
/// day.
pub(super) fn parse_time(text: &str) -> Option<Duration> {
    let unit_at = text.find(|c: char| c.is_ascii_alphabetic())?;
    let (number, unit) = text.split_at_checked(unit_at)?;
    let is_plain = number
        .bytes()
        .all(|byte| byte.is_ascii_digit() || byte == b'.');
    let number: f64 = number.parse().ok().filter(|_| is_plain)?;
    let factor = match unit {
        "ms" => 0.001,
        "s" => 1.0,
        "m" => 60.0,
        "h" => 3600.0,
        _ => return None,
    };
    seconds(number * factor)
}

fn seconds(seconds: f64) -> Option<Duration> {
    const LEAST: f64 = 0.001;
    const MOST: f64 = 86_400.0;
    let is_sound = (LEAST..=MOST).contains(&seconds);
    // A value in milliseconds is exact, and not what floating point makes of it.
    is_sound.then(|| Duration::from_millis((seconds * 1000.0).round() as u64))
}
