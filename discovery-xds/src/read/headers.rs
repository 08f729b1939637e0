//! Changes of headers as transforms.

use proxy_model::config::TransformConfig;
use xds_types::pb::envoy::config::core::v3::HeaderValueOption;
use xds_types::pb::envoy::config::core::v3::header_value_option::HeaderAppendAction;

use xds_types::pb::envoy::config::route::v3::route::Action;

use super::Reading;

/// Headers of requests or of responses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    Request,
    Response,
}

/// Returns true if a route with this action sends no request on, so that changes of requests have no effect, whatever
/// their values are.
pub(super) fn is_reply(action: Option<&Action>) -> bool {
    matches!(
        action,
        Some(Action::Redirect(_) | Action::DirectResponse(_))
    )
}

/// The header changes of a route, a virtual host or a route configuration.
#[derive(Debug, Clone, Copy)]
pub(super) struct Changes<'e> {
    pub(super) add: &'e [HeaderValueOption],
    pub(super) remove: &'e [String],
}

/// Adds the transforms. Envoy removes before it adds.
pub(super) fn transforms(
    changes: Changes<'_>,
    side: Side,
    out: &mut Vec<TransformConfig>,
    reading: &mut Reading,
) {
    let (remove, set) = match side {
        Side::Request => ("RequestHeaderRemove", "RequestHeader"),
        Side::Response => ("ResponseHeaderRemove", "ResponseHeader"),
    };
    let mut push = |keys: &[(&str, &str)]| {
        let mut transform: TransformConfig = keys
            .iter()
            .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
            .collect();
        if side == Side::Response {
            transform.insert("When".to_owned(), "Always".to_owned());
        }
        out.push(transform);
    };
    for name in changes.remove {
        push(&[(remove, name)]);
    }
    for option in changes.add {
        let Some(header) = &option.header else {
            continue;
        };
        let field = format!("headers_to_add/{}", header.key);
        let value = header.value.replace("%%", "");
        if !header.raw_value.is_empty() || value.contains('%') {
            reading.reject(&field, "values that are not fixed texts cannot be honoured");
            continue;
        }
        let value = header.value.replace("%%", "%");
        // The older field decides where it is there.
        let action = match &option.append {
            Some(append) if append.value => HeaderAppendAction::AppendIfExistsOrAdd,
            Some(_) => HeaderAppendAction::OverwriteIfExistsOrAdd,
            None => HeaderAppendAction::try_from(option.append_action).unwrap_or_default(),
        };
        match action {
            HeaderAppendAction::AppendIfExistsOrAdd => {
                push(&[(set, &header.key), ("Append", &value)])
            }
            HeaderAppendAction::OverwriteIfExistsOrAdd => {
                push(&[(set, &header.key), ("Set", &value)])
            }
            HeaderAppendAction::AddIfAbsent | HeaderAppendAction::OverwriteIfExists => {
                reading.reject(
                    &field,
                    "a change that depends on the present value is not supported",
                );
            }
        }
    }
}
