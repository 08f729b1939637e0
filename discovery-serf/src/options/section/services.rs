//! The configuration keys for turning services into configuration.

use std::time::Duration;

use proxy_model::Problem;
use proxy_model::json::ObjectReader;

use super::{PERIODS, time};
use crate::generate::{GenerateOptions, HealthOptions, WeightStrategy};

pub(super) fn read_generate(section: &mut ObjectReader<'_, '_>) -> GenerateOptions {
    let mut generate = GenerateOptions::default();
    if let Some(policy) = section.text("LoadBalancingPolicy") {
        if policy.trim().is_empty() {
            let pointer = section.pointer_to("LoadBalancingPolicy");
            let problem = Problem::error(pointer, "empty_name", "no policy has an empty name");
            section.problems().push(problem);
        } else {
            policy
                .trim()
                .clone_into(&mut generate.load_balancing_policy);
        }
    }
    if let Some(health) = section.object("HealthCheck", read_health) {
        generate.health = health;
    }
    let strategies = [
        ("Weighted", WeightStrategy::Weighted),
        ("Duplicate", WeightStrategy::Duplicate),
    ];
    if let Some(strategy) = section.choice("WeightStrategy", &strategies) {
        generate.weights = strategy;
    }
    generate.version_header = header(section, "VersionHeader");
    generate.region_header = header(section, "RegionHeader");
    if let (Some(version), Some(region)) = (&generate.version_header, &generate.region_header)
        && version.eq_ignore_ascii_case(region)
    {
        let pointer = section.pointer_to("RegionHeader");
        let message = "one header cannot select both the version and the region";
        let problem = Problem::error(pointer, "conflicting_headers", message);
        section.problems().push(problem);
        generate.region_header = None;
    }
    if let Some(informational) = section.boolean("InformationalTags") {
        generate.informational_tags = informational;
    }
    generate
}

fn read_health(check: &mut ObjectReader<'_, '_>) -> HealthOptions {
    let mut health = HealthOptions::default();
    if let Some(enabled) = check.boolean("Enabled") {
        health.enabled = enabled;
    }
    let mut set = |key, field: &mut Duration| {
        if let Some(period) = time(check, key, &PERIODS) {
            *field = period;
        }
    };
    set("Interval", &mut health.interval);
    set("Timeout", &mut health.timeout);
    if let Some(path) = path(check) {
        health.path = path;
    }
    health
}

/// The path of probes, by the rules of the tag `health-path`.
fn path(check: &mut ObjectReader<'_, '_>) -> Option<String> {
    const KEY: &str = "Path";
    let path = check.text(KEY)?;
    let tried = HealthOptions::default().with_path(path.as_str());
    if is_usable(&GenerateOptions::default().with_health(tried)) && !path.trim().is_empty() {
        return Some(path);
    }
    let message = format!("`{}` is not the path of a probe", path.escape_debug());
    let problem = Problem::error(check.pointer_to(KEY), "invalid_path", message);
    let suggestion = "write a path like `/health`";
    check.problems().push(problem.with_suggestion(suggestion));
    None
}

/// The name of a header.
fn header(section: &mut ObjectReader<'_, '_>, key: &'static str) -> Option<String> {
    let text = section.text(key)?;
    let name = text.trim();
    if is_usable(&GenerateOptions::default().with_version_header(name)) {
        return Some(name.to_owned());
    }
    let message = format!("`{}` is not the name of a header", name.escape_debug());
    let problem = Problem::error(section.pointer_to(key), "invalid_header", message);
    let suggestion = "write a name like `X-Version`";
    section.problems().push(problem.with_suggestion(suggestion));
    None
}

/// Returns true if the options are usable. Whether they are usable is decided by the code that uses them.
fn is_usable(options: &GenerateOptions) -> bool {
    options.check().is_empty()
}
