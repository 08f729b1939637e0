//! Changes of headers.

use std::collections::BTreeMap;

use proxy_model::transform::{
    ForwardedAction, HeaderChange, HeaderCopy, RequestTransform, ResponseCondition, SetOrAppend,
    Transforms, XForwarded, XForwardedPart,
};
use xds_types::pb::envoy::config::core::v3::header_value_option::HeaderAppendAction;
use xds_types::pb::envoy::config::core::v3::{HeaderValue, HeaderValueOption};

use super::report::{Inexpressible, Report};

const KEY: &str = "Transforms";

/// Headers that a route adds and removes, and the `Host` that it sends.
#[derive(Debug, Default)]
pub(super) struct HeaderEdits {
    pub(super) add: Vec<HeaderValueOption>,
    pub(super) remove: Vec<String>,
    pub(super) host: Option<String>,
}

/// The changes of one header. Envoy removes before it adds.
#[derive(Debug, Default)]
struct Edit {
    removed: bool,
    added: Vec<(SetOrAppend, String)>,
}

#[derive(Debug, Default)]
struct Edits {
    /// The headers, in the order in which they are first named.
    names: Vec<String>,
    by_name: BTreeMap<String, Edit>,
}

impl Edits {
    fn of(&mut self, name: &str) -> &mut Edit {
        if !self.by_name.contains_key(name) {
            self.names.push(name.to_owned());
        }
        self.by_name.entry(name.to_owned()).or_default()
    }

    fn remove(&mut self, name: &str) {
        let edit = self.of(name);
        edit.removed = true;
        edit.added.clear();
    }

    fn add(&mut self, name: &str, action: SetOrAppend, value: String) {
        let edit = self.of(name);
        if action == SetOrAppend::Set {
            edit.added.clear();
        }
        edit.added.push((action, value));
    }

    fn finish(mut self) -> HeaderEdits {
        let mut edits = HeaderEdits::default();
        for name in self.names {
            let Some(edit) = self.by_name.remove(&name) else {
                continue;
            };
            if edit.removed {
                edits.remove.push(name.clone());
            }
            for (action, value) in edit.added {
                edits.add.push(option(&name, value, action));
            }
        }
        edits
    }
}

fn option(name: &str, value: String, action: SetOrAppend) -> HeaderValueOption {
    HeaderValueOption {
        header: Some(HeaderValue {
            key: name.to_owned(),
            value,
            ..HeaderValue::default()
        }),
        append_action: match action {
            SetOrAppend::Set => HeaderAppendAction::OverwriteIfExistsOrAdd,
            SetOrAppend::Append => HeaderAppendAction::AppendIfExistsOrAdd,
        }
        .into(),
        keep_empty_value: true,
        ..HeaderValueOption::default()
    }
}

/// A fixed value; `%` begins a command of Envoy's.
fn fixed(value: &http::HeaderValue) -> Result<String, Inexpressible> {
    match value.to_str() {
        Ok(text) => Ok(text.replace('%', "%%")),
        Err(_) => Err(Inexpressible::new(
            KEY,
            "a header's value with characters beyond ASCII is not expressed",
        )),
    }
}

/// Returns the changes of request headers.
pub(super) fn request(transforms: &Transforms) -> Result<HeaderEdits, Inexpressible> {
    if *transforms.request_copy() != HeaderCopy::All {
        return Err(Inexpressible::new(
            KEY,
            "Envoy sends on every request header that is not removed by name",
        ));
    }
    let mut edits = Edits::default();
    let mut host = None;
    for transform in transforms.request() {
        match transform {
            RequestTransform::Header {
                name,
                value,
                action,
            } if name == http::header::HOST => match action {
                // The literal rewrite of `Host` has no commands, so the escaped `%` is written plainly.
                SetOrAppend::Set => host = Some(fixed(value)?.replace("%%", "%")),
                SetOrAppend::Append => {
                    return Err(Inexpressible::new(KEY, "`Host` has one value"));
                }
            },
            RequestTransform::Header {
                name,
                value,
                action,
            } => edits.add(name.as_str(), *action, fixed(value)?),
            RequestTransform::Remove(name) if name == http::header::HOST => {
                return Err(Inexpressible::new(KEY, "Envoy cannot remove `Host`"));
            }
            RequestTransform::Remove(name) => edits.remove(name.as_str()),
            RequestTransform::XForwarded(header) => forwarded(header, &mut edits),
            RequestTransform::RouteValue { .. } => {
                return Err(Inexpressible::new(
                    KEY,
                    "Envoy cannot put a value of the path into a header",
                ));
            }
            RequestTransform::Forwarded(_) => {
                return Err(Inexpressible::new(
                    KEY,
                    "Envoy does not write `Forwarded`; use `X-Forwarded`",
                ));
            }
            RequestTransform::ClientCert(_) => {
                return Err(Inexpressible::new(
                    KEY,
                    "Envoy forwards the client's certificate for a whole listener, not for a route",
                ));
            }
            _ => {
                return Err(Inexpressible::new(
                    KEY,
                    "Envoy's routes cannot make this change",
                ));
            }
        }
    }
    Ok(HeaderEdits {
        host,
        ..edits.finish()
    })
}

fn forwarded(header: &XForwarded, edits: &mut Edits) {
    let value = match header.part() {
        XForwardedPart::For => "%DOWNSTREAM_REMOTE_ADDRESS_WITHOUT_PORT%",
        XForwardedPart::Host => "%REQ(:AUTHORITY)%",
        XForwardedPart::Proto => "%REQ(:SCHEME)%",
        // Nothing was taken off before Envoy saw the request.
        XForwardedPart::Prefix => "",
    };
    let name = header.name().as_str();
    // The listener's connection manager appends to this one itself (`use_remote_address`).
    let appended_already = name == "x-forwarded-for";
    match header.action() {
        ForwardedAction::Set if value.is_empty() => edits.remove(name),
        ForwardedAction::Set => edits.add(name, SetOrAppend::Set, value.to_owned()),
        ForwardedAction::Append if appended_already || value.is_empty() => {}
        ForwardedAction::Append => edits.add(name, SetOrAppend::Append, value.to_owned()),
        ForwardedAction::Remove => edits.remove(name),
    }
}

/// Returns the changes of response headers.
pub(super) fn response(
    transforms: &Transforms,
    report: &mut Report<'_>,
) -> Result<HeaderEdits, Inexpressible> {
    if *transforms.response_copy() != HeaderCopy::All
        || *transforms.trailers_copy() != HeaderCopy::All
    {
        return Err(Inexpressible::new(
            KEY,
            "Envoy sends on every response header that is not removed by name",
        ));
    }
    if !transforms.trailers().is_empty() {
        return Err(Inexpressible::new(
            KEY,
            "Envoy's routes cannot change trailers",
        ));
    }
    let mut edits = Edits::default();
    for transform in transforms.response() {
        let name = match transform.change() {
            HeaderChange::Set(name, value) => {
                edits.add(name.as_str(), SetOrAppend::Set, fixed(value)?);
                name
            }
            HeaderChange::Append(name, value) => {
                edits.add(name.as_str(), SetOrAppend::Append, fixed(value)?);
                name
            }
            HeaderChange::Remove(name) => {
                edits.remove(name.as_str());
                name
            }
        };
        if transform.condition() != ResponseCondition::Always {
            report.differs(
                KEY,
                format!("Envoy changes `{name}` in every response, whatever its status; write `\"When\": \"Always\"`"),
            );
        }
    }
    Ok(edits.finish())
}
