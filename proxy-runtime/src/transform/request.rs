//! Changes to request headers.

use http::header::{CONTENT_LENGTH, HOST, TRANSFER_ENCODING};
use http::{HeaderMap, HeaderName, HeaderValue};
use proxy_model::matching::RouteValues;
use proxy_model::transform::{ForwardedAction, RequestTransform, SetOrAppend};

use super::forwarded::Origin;
use crate::head::HttpHead;
use crate::http1::is_authority;

/// The headers of a request to a destination, while they are made.
#[derive(Debug, Default)]
pub(crate) struct Outgoing {
    /// All but `Host`.
    pub(crate) headers: HeaderMap,
    /// The `Host` that was asked for. Without it the destination's own is sent.
    pub(crate) host: Option<HeaderValue>,
}

/// Makes the changes of a route, in order.
pub(crate) fn apply_to_request(
    transforms: &[RequestTransform],
    head: &HttpHead<'_>,
    values: &RouteValues,
    outgoing: &mut Outgoing,
) {
    let origin = Origin::new(head, head.connection());
    // Rare, so the common request pays for one pass over its names only.
    if outgoing.headers.keys().any(has_underscore) {
        outgoing.remove_imitations(transforms);
    }
    for transform in transforms {
        match transform {
            RequestTransform::Header {
                name,
                value,
                action,
            } => outgoing.write(name, value.clone(), *action),
            RequestTransform::RouteValue {
                name,
                parameter,
                action,
            } => match (value_for(name, values, parameter), action) {
                (Ok(value), action) => outgoing.write(name, value, *action),
                // A `Host` without a value is the destination's, whatever the action.
                (Err(NoValue::NotToBeWritten), action)
                    if *action == SetOrAppend::Set || *name == HOST =>
                {
                    outgoing.remove(name);
                }
                (Err(_), _) => {}
            },
            RequestTransform::Remove(name) | RequestTransform::ClientCert(name) => {
                // No server of this crate asks clients for certificates yet, so there is none to tell of.
                outgoing.remove(name);
            }
            RequestTransform::XForwarded(told) => {
                let value = match told.action() {
                    ForwardedAction::Remove => None,
                    ForwardedAction::Set | ForwardedAction::Append => origin.part(told.part()),
                };
                outgoing.tell(told.name(), value, told.action());
            }
            RequestTransform::Forwarded(told) => {
                let value = match told.action() {
                    ForwardedAction::Remove => None,
                    ForwardedAction::Set | ForwardedAction::Append => origin.forwarded(told),
                };
                outgoing.tell(&http::header::FORWARDED, value, told.action());
            }
            _ => {}
        }
    }
}

/// The reason why a transform has no value to write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoValue {
    /// The route matched without the parameter: the header stays as it is.
    NotThere,
    /// The value cannot be written. The header that the client sent is removed where the transform sets
    /// it: it must not be believed.
    NotToBeWritten,
}

/// The value of a route parameter as one of a header, without the white space around it, which no header has.
///
/// # Errors
///
/// There is none, or none that a header may hold: it comes from the client's path.
pub(crate) fn route_value(values: &RouteValues, parameter: &str) -> Result<HeaderValue, NoValue> {
    let value = values.get(parameter).ok_or(NoValue::NotThere)?;
    let value = value.as_bytes().trim_ascii();
    HeaderValue::from_bytes(value).map_err(|_| NoValue::NotToBeWritten)
}

/// The value of a route parameter as `Host`, which must be a host and port (RFC 9110 section 7.2): the
/// path is the client's, and other text would be rejected or read in several ways.
///
/// # Errors
///
/// Fails if there is none, or none that is a host.
pub(crate) fn route_host(values: &RouteValues, parameter: &str) -> Result<HeaderValue, NoValue> {
    let value = route_value(values, parameter)?;
    match is_authority(value.as_bytes()) {
        true => Ok(value),
        false => Err(NoValue::NotToBeWritten),
    }
}

fn value_for(
    name: &HeaderName,
    values: &RouteValues,
    parameter: &str,
) -> Result<HeaderValue, NoValue> {
    match *name == HOST {
        true => route_host(values, parameter),
        false => route_value(values, parameter),
    }
}

fn has_underscore(name: &HeaderName) -> bool {
    name.as_str().contains('_')
}

/// Returns true if a name equals another except for `_` in place of `-`. Many programs treat both as the same.
pub(crate) fn is_imitation(name: &[u8], of: &HeaderName) -> bool {
    let plain = |byte: &u8| match byte {
        b'_' => b'-',
        byte => byte.to_ascii_lowercase(),
    };
    let (name, of) = (name.iter(), of.as_str().as_bytes().iter());
    name.len() == of.len()
        && name
            .clone()
            .map(u8::to_ascii_lowercase)
            .ne(of.clone().copied())
        && name.map(plain).eq(of.map(plain))
}

impl Outgoing {
    /// Removes what the client sent with names that imitate those that the route writes.
    #[cold]
    fn remove_imitations(&mut self, transforms: &[RequestTransform]) {
        let written = transforms.iter().filter_map(|transform| match transform {
            RequestTransform::Header { name, .. }
            | RequestTransform::RouteValue { name, .. }
            | RequestTransform::ClientCert(name) => Some(name),
            _ => None,
        });
        let headers = self.headers.keys().filter(|name| has_underscore(name));
        let imitations: Vec<_> = headers
            .filter(|name| {
                written
                    .clone()
                    .any(|written| is_imitation(name.as_str().as_bytes(), written))
            })
            .cloned()
            .collect();
        for name in imitations {
            self.headers.remove(name);
        }
    }

    fn write(&mut self, name: &HeaderName, value: HeaderValue, action: SetOrAppend) {
        match (name, action) {
            (&HOST, _) => self.host = Some(value),
            // The connection writes the framing of the body; a wrong one would enable request smuggling.
            (&(CONTENT_LENGTH | TRANSFER_ENCODING), _) => {}
            (_, SetOrAppend::Set) => {
                self.headers.insert(name, value);
            }
            (_, SetOrAppend::Append) => append(&mut self.headers, name, value),
        }
    }

    fn remove(&mut self, name: &HeaderName) {
        if *name == HOST {
            self.host = None;
        // As in `write`: framing belongs to the connection.
        } else if *name != CONTENT_LENGTH {
            self.headers.remove(name);
        }
    }

    /// Writes a header about where the request came from. Nothing known and `Set` means that what the client says is
    /// not to be believed.
    fn tell(&mut self, name: &HeaderName, value: Option<HeaderValue>, action: ForwardedAction) {
        match (action, value) {
            (ForwardedAction::Append, Some(value)) => append(&mut self.headers, name, value),
            (ForwardedAction::Append, None) => {}
            (ForwardedAction::Set, Some(value)) => {
                self.headers.insert(name, value);
            }
            (ForwardedAction::Set, None) | (ForwardedAction::Remove, _) => {
                self.headers.remove(name);
            }
        }
    }
}

/// Adds a value after those that are there, unless the head is full.
pub(crate) fn append(headers: &mut HeaderMap, name: &HeaderName, value: HeaderValue) {
    // The limit of the map is 32,768 fields; received heads have far fewer.
    let _ = headers.try_append(name, value);
}

/// Removes all headers but those of these names.
pub(crate) fn retain(headers: &mut HeaderMap, names: &[HeaderName]) {
    let unwanted: Vec<HeaderName> = headers
        .keys()
        .filter(|name| !names.contains(name))
        .cloned()
        .collect();
    for name in unwanted {
        headers.remove(name);
    }
}
