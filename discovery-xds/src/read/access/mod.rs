//! The access restrictions in listeners, filters and routes.
//!
//! A proxy of this project supports none of Envoy's filters except the one that forwards. [`rules`] names
//! the treatment of each filter, and of each field of a listener or a route. A filter or field without a
//! rule closes the routes behind it: they respond with 503, so that no request gets through that Envoy
//! would reject.

mod fault;
mod fields;
mod filters;
mod rules;
mod table;

use prost::Message as _;
use xds_types::pb::envoy::config::route::v3::FilterConfig;
use xds_types::pb::google::protobuf::Any;

use super::Reading;

pub(super) use self::fields::{
    filter_chain, filter_chain_match, listener, manager, route, route_action, route_configuration,
    virtual_host,
};
pub(super) use self::rules::{Place, Rule, Treatment};
pub(super) use self::table::rules;

const TYPES: &str = "type.googleapis.com/";
const FILTER_CONFIG: &str = "type.googleapis.com/envoy.config.route.v3.FilterConfig";

/// The types that do not tell which filter has them: the configuration of any may be in them.
const WRAPPERS: [&str; 7] = [
    "envoy.config.route.v3.FilterConfig",
    "envoy.extensions.common.matching.v3.ExtensionWithMatcher",
    "envoy.extensions.common.matching.v3.ExtensionWithMatcherPerRoute",
    "google.protobuf.Empty",
    "google.protobuf.Struct",
    "udpa.type.v1.TypedStruct",
    "xds.type.v3.TypedStruct",
];

/// The row of a place for a type of configuration.
fn rule_for(place: Place, type_url: &str) -> Option<&'static Rule> {
    let name = type_url.strip_prefix(TYPES)?;
    let mut rows = rules().filter(|rule| rule.place == place);
    rows.find(|rule| rule.types.contains(&name))
}

/// Returns true if an optional filter with this configuration, which has no row, has no effect.
///
/// Only the type tells which filter it is. Without it, the filter may be one that restricts senders.
fn is_skipped(config: &Any) -> bool {
    let name = config.type_url.strip_prefix(TYPES).unwrap_or_default();
    let restricts = |rule: &Rule| rule.treatment == Treatment::Closes && rule.types.contains(&name);
    !name.is_empty() && !WRAPPERS.contains(&name) && !rules().any(restricts)
}

/// The row of a place for a field of a message.
fn rule_of(place: Place, field: &str) -> Option<&'static Rule> {
    let mut rows = rules().filter(|rule| rule.place == place);
    rows.find(|rule| rule.types.contains(&field))
}

/// A filter, or another extension, with its configuration.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Extension<'e> {
    pub(super) name: &'e str,
    /// The configuration. `None` if it comes from elsewhere, or if there is none.
    pub(super) config: Option<&'e Any>,
    /// True if proxies that do not support it may ignore it.
    pub(super) is_optional: bool,
    /// True if it has no effect unless a route enables it.
    pub(super) is_disabled: bool,
}

/// Returns true if an extension closes the routes behind it, which is then an error in `reading`.
pub(super) fn closes(place: Place, extension: Extension<'_>, reading: &mut Reading) -> bool {
    let field = format!("{}/{}", place.field(), extension.name);
    let type_url = extension.config.map_or("", |config| &config.type_url);
    let rule = rule_for(place, type_url);
    match rule.map(|rule| rule.treatment) {
        // The settings of a route may add faults to those of the listener, so both are looked at.
        _ if !extension.is_disabled && extension.config.is_some_and(fault::aborts) => {
            let message =
                "it rejects requests, which is not supported; the routes behind it answer 503";
            reading.reject(&field, message);
            true
        }
        Some(Treatment::Honoured | Treatment::Harmless) => false,
        Some(Treatment::Reported) => {
            reading.ignore_if(true, &field);
            false
        }
        _ if extension.is_disabled => {
            reading.ignore_if(true, &field);
            false
        }
        None if extension.is_optional && extension.config.is_some_and(is_skipped) => {
            reading.ignore_if(true, &field);
            false
        }
        Some(Treatment::Closes) | None => {
            let message = match rule {
                Some(rule) => format!(
                    "`{}` is not supported; the routes behind it answer 503",
                    rule.name
                ),
                None if type_url.is_empty() => {
                    "it has no configuration here; the routes behind it answer 503".to_owned()
                }
                None => format!("`{type_url}` is not known; the routes behind it answer 503"),
            };
            reading.reject(&field, message);
            true
        }
    }
}

/// Returns true if fields close the routes that their message leads to.
pub(super) fn fields_close(
    place: Place,
    fields: &[(&'static str, bool)],
    reading: &mut Reading,
) -> bool {
    let mut closes = false;
    for (field, _) in fields.iter().filter(|(_, is_set)| *is_set) {
        match rule_of(place, field).map(|rule| rule.treatment) {
            Some(Treatment::Honoured | Treatment::Harmless) => {}
            Some(Treatment::Reported) => reading.ignore_if(true, field),
            Some(Treatment::Closes) | None => {
                let message =
                    format!("`{field}` is not supported; the routes behind it answer 503");
                reading.reject(field, message);
                closes = true;
            }
        }
    }
    closes
}

/// Rejects the filter settings of a route, a virtual host or a route configuration, unless they do not
/// affect who may send.
pub(super) fn per_filter<'c>(
    configs: impl IntoIterator<Item = (&'c String, &'c Any)>,
    reading: &mut Reading,
) {
    let mut configs: Vec<_> = configs.into_iter().collect();
    configs.sort_by_key(|(name, _)| *name);
    for (name, config) in configs {
        let wrapped = (config.type_url == FILTER_CONFIG)
            .then(|| FilterConfig::decode(config.value.as_slice()).ok())
            .flatten();
        let extension = match &wrapped {
            Some(wrapped) => Extension {
                name,
                config: wrapped.config.as_ref(),
                is_optional: wrapped.is_optional,
                is_disabled: wrapped.disabled,
            },
            None => Extension {
                name,
                config: Some(config),
                ..Extension::default()
            },
        };
        closes(Place::PerRoute, extension, reading);
    }
}
