//! The section `Policies`: reading, and the form in which the configuration of a proxy carries it.

mod authorization;
mod certificate;
mod cors;
mod rate_limiter;
mod remote;
mod schema;
mod shared;
#[cfg(test)]
mod tests;
mod timeout;
mod usage;

use std::sync::Arc;

use proxy_model::config::{PolicyConfig, PolicyConfigs, PolicyKind};
use proxy_model::json::{Node, ObjectReader};
use proxy_model::{Problem, Problems, TimeSpan, pointer_to, same_id};
use serde::Serialize;
use serde_json::Value;

pub use self::authorization::read_network;
pub(crate) use self::authorization::{
    AuthorizationConfig, BASIC_CLAIM, BasicConfig, NetworkSetting, NetworksConfig,
};
pub(crate) use self::certificate::{
    CERTIFICATE_CLAIMS, CertificateConfig, Name as CertificateName, TYPES as CERTIFICATE_TYPES,
};
pub(crate) use self::cors::CorsConfig;
pub(crate) use self::rate_limiter::{LimiterKind, PartitionBy, QueueOrder, RateLimiterConfig};
pub(crate) use self::remote::{ForwardConfig, JwtConfig};
pub use self::schema::schema;
#[cfg(feature = "redis")]
pub(crate) use self::shared::SharedConfig;
pub use self::usage::judge_use;

/// The name of the section.
pub const SECTION: &str = "Policies";

/// The longest name of a policy, in bytes.
const LONGEST_NAME: usize = 128;

/// Reads the section `Policies` of a whole document. All problems are added to `problems`, with pointers that begin at
/// the document. A document without the section has no policies.
pub fn read(document: &Node, problems: &mut Problems) -> PolicyConfigs {
    let mut policies = PolicyConfigs::default();
    let Some(section) = document.get(SECTION) else {
        return policies;
    };
    let pointer = document.spelled(&pointer_to("", SECTION));
    ObjectReader::read(section, &pointer, problems, |section| {
        read_kind(
            section,
            PolicyKind::Authorization,
            &mut policies,
            |reader| settings(authorization::read(reader)?),
        );
        read_kind(section, PolicyKind::Cors, &mut policies, |reader| {
            settings(cors::read(reader)?)
        });
        read_kind(section, PolicyKind::RateLimiter, &mut policies, |reader| {
            settings(rate_limiter::read(reader)?)
        });
        read_kind(section, PolicyKind::Timeout, &mut policies, |reader| {
            let timeout = timeout::read(reader)?;
            Some((Value::from(timeout.to_string()), Some(timeout)))
        });
        // The gateway reads who may name them.
        section.skip("Discovered");
    });
    policies
}

/// Names that mean something else on a route.
const fn reserved(kind: PolicyKind) -> &'static [&'static str] {
    match kind {
        PolicyKind::Authorization => &["Anonymous"],
        PolicyKind::Cors | PolicyKind::Timeout => &["Disable"],
        PolicyKind::RateLimiter => &["Default", "Disable"],
    }
}

fn read_kind(
    section: &mut ObjectReader<'_, '_>,
    kind: PolicyKind,
    policies: &mut PolicyConfigs,
    read: impl Fn(&mut ObjectReader<'_, '_>) -> Option<(Value, Option<TimeSpan>)>,
) {
    section.entries(kind.section(), |name, node, pointer, problems| {
        check_name(kind, name, pointer, problems);
        let settings = ObjectReader::read(node, pointer, problems, &read).flatten();
        // A policy with a mistake keeps its name, so that routes that name it have no follow-up problem. It cannot
        // be compiled, and the mistake rejects the whole.
        let (settings, timeout) = settings.unwrap_or((Value::Null, None));
        policies.insert(PolicyConfig {
            kind,
            name: Arc::from(name),
            settings,
            timeout,
        });
        Some(())
    });
}

fn check_name(kind: PolicyKind, name: &str, pointer: &str, problems: &mut Problems) {
    if reserved(kind).iter().any(|taken| same_id(taken, name)) {
        let message = format!(
            "`{name}` has a meaning of its own in `{}` of a route",
            kind.route_key()
        );
        problems.push(
            Problem::error(pointer, "reserved_policy_name", message)
                .with_suggestion("choose another name"),
        );
    }
    let is_plain = |c: char| c.is_ascii_graphic() && !matches!(c, '"' | '\\');
    if name.is_empty() || name.len() > LONGEST_NAME || !name.chars().all(is_plain) {
        problems.push(Problem::error(
            pointer,
            "invalid_policy_name",
            format!(
                "the name of a policy has 1 to {LONGEST_NAME} letters, digits and signs of ASCII, without spaces, quotes \
                 and backslashes"
            ),
        ));
    }
}

/// Settings in the form in which a configuration carries them: equal if they mean the same, however they were written.
fn settings(config: impl Serialize) -> Option<(Value, Option<TimeSpan>)> {
    let value = serde_json::to_value(config).expect("settings are plain data");
    Some((value, None))
}

/// Reports a key that an object needs.
fn missing(reader: &mut ObjectReader<'_, '_>, key: &str, suggestion: &str) {
    let pointer = reader.pointer().to_owned();
    reader.problems().push(
        Problem::error(pointer, "missing_key", format!("`{key}` is missing"))
            .with_suggestion(suggestion),
    );
}

/// Reports a key that has no effect beside the others.
fn without_effect(reader: &mut ObjectReader<'_, '_>, key: &'static str, why: &str) {
    if reader.peek(key).is_none() {
        return;
    }
    reader.skip(key);
    let pointer = reader.pointer_to(key);
    let message = format!("`{key}` has no meaning here: {why}");
    reader.problems().push(
        Problem::error(pointer, "no_effect", message).with_suggestion(format!("remove `{key}`")),
    );
}

/// Reads a length of time that is longer than 0.
fn positive(reader: &mut ObjectReader<'_, '_>, key: &'static str) -> Option<TimeSpan> {
    let span = reader.time_span(key)?;
    if span.is_zero() || span > LONGEST {
        let pointer = reader.pointer_to(key);
        let message = format!("`{key}` is longer than 0 and at most {LONGEST}");
        reader
            .problems()
            .push(Problem::error(pointer, "out_of_range", message));
        return None;
    }
    Some(span)
}

/// The longest length of time: a year.
const LONGEST: TimeSpan = TimeSpan::from_secs(365 * 24 * 3600);
