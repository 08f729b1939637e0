//! Changes that filters make, kept beside the head until it is written.

use std::fmt;

use http::{HeaderMap, HeaderName, HeaderValue};

use crate::http1::{ClassSet, FieldClass, FieldName, FieldOperation, FieldValue, OutgoingTarget};

/// The reason why a filter cannot make a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum InvalidEdit {
    /// The name is no token (RFC 9110 section 5.1).
    Name,
    /// The value has a control character (RFC 9110 section 5.5).
    Value,
    /// The field belongs to the connection or to the framing of the body: `Host`, which has
    /// [`set_host`](crate::filter::RequestEdit::set_host), `Connection`, `Upgrade`, `TE`, `Trailer`, `Expect`,
    /// `Content-Length`, `Transfer-Encoding`, and those that are never sent on, such as `Keep-Alive` and
    /// `Proxy-Authorization`.
    Protected,
    /// The path does not begin with `/`, or has a character that no path may have.
    Path,
    /// The query has a character that no query may have.
    Query,
    /// The host is no host with or without a port.
    Host,
}

impl fmt::Display for InvalidEdit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Name => "the name of the field is not a token",
            Self::Value => "the value of the field has a control character",
            Self::Protected => "the field belongs to the connection or to the framing",
            Self::Path => "the path is not one that can be sent",
            Self::Query => "the query is not one that can be sent",
            Self::Host => "the host is not a host and a port",
        })
    }
}

impl std::error::Error for InvalidEdit {}

/// Fields that filters cannot change.
const PROTECTED: ClassSet = ClassSet::EMPTY
    .with(FieldClass::Host)
    .with(FieldClass::Connection)
    .with(FieldClass::ContentLength)
    .with(FieldClass::TransferEncoding)
    .with(FieldClass::Te)
    .with(FieldClass::Trailer)
    .with(FieldClass::Upgrade)
    .with(FieldClass::Expect)
    .with(FieldClass::HopByHop);

/// Maximum number of names kept for the next head.
const MOST_NAMES: usize = 16;

/// The changes to one head, in order: an overlay, since the head itself may be a shared buffer.
///
/// One serves any number of heads, one after the other; until something is changed it holds no memory, and then it
/// keeps what changes of fields need.
#[derive(Debug, Default)]
pub(crate) struct HeaderMutations {
    fields: Vec<FieldMutation>,
    /// Names of changes that were forgotten. Filters write the same ones all the time.
    names: Vec<FieldName>,
    path: Option<String>,
    /// The query, if it was changed, which may mean that there is none.
    query: Option<Option<String>>,
    host: Option<HeaderValue>,
    /// Changes of the response that were decided with the request.
    of_response: Vec<FieldMutation>,
    /// Values that are dropped with the exchange.
    held: HeldValues,
}

/// Values that a request holds until its response has ended.
#[derive(Default)]
pub(crate) struct HeldValues(Vec<Box<dyn Send + Sync>>);

impl HeldValues {
    /// Returns true if nothing is held.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl fmt::Debug for HeldValues {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("HeldValues").field(&self.0.len()).finish()
    }
}

/// Changes of a response that were decided with its request.
#[derive(Debug, Default)]
pub(crate) struct ResponseNotes(Vec<FieldMutation>);

impl ResponseNotes {
    /// Returns true if nothing was decided.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Applies the changes.
    pub(crate) fn apply_to(self, headers: &mut HeaderMap) {
        let mut edits = HeaderMutations::default();
        edits.make_noted(self);
        edits.apply_to(headers);
    }
}

#[derive(Debug)]
struct FieldMutation {
    name: FieldName,
    change: Change,
}

#[derive(Debug)]
enum Change {
    Remove,
    Set(HeaderValue),
    Append(HeaderValue),
}

impl FieldMutation {
    fn is_of(&self, name: &[u8]) -> bool {
        self.name.as_bytes().eq_ignore_ascii_case(name)
    }

    /// Returns true if the change removes earlier lines.
    fn replaces(&self) -> bool {
        matches!(self.change, Change::Remove | Change::Set(_))
    }

    fn written(&self) -> Option<&HeaderValue> {
        match &self.change {
            Change::Remove => None,
            Change::Set(value) | Change::Append(value) => Some(value),
        }
    }
}

impl HeaderMutations {
    /// Returns true if nothing was changed.
    pub(crate) fn is_empty(&self) -> bool {
        self.fields.is_empty() && self.path.is_none() && self.query.is_none() && self.host.is_none()
    }

    /// Clears all changes for the next head. Keeps held values, and as much capacity as most filters need.
    pub(crate) fn clear(&mut self) {
        let room = MOST_NAMES.saturating_sub(self.names.len());
        let forgotten = self.fields.drain(..).take(room);
        self.names.extend(forgotten.map(|edit| edit.name));
        self.fields.shrink_to(MOST_NAMES);
        self.path = None;
        self.query = None;
        self.host = None;
        self.of_response.clear();
    }

    /// Keeps a change of the response to the request whose head this is.
    pub(crate) fn note_for_response<V>(
        &mut self,
        name: &str,
        value: V,
        appends: bool,
    ) -> Result<(), InvalidEdit>
    where
        V: TryInto<HeaderValue>,
    {
        // The rules are those of a change of the request. Then the change moves to the response.
        let position = self.fields.len();
        match appends {
            true => self.append(name, value)?,
            false => self.set(name, value)?,
        }
        self.of_response.extend(self.fields.drain(position..));
        Ok(())
    }

    /// Keeps the removal of a header of the response to the request whose head this is.
    pub(crate) fn note_removal(&mut self, name: &str) -> Result<(), InvalidEdit> {
        self.remove(name)?;
        self.of_response.extend(self.fields.pop());
        Ok(())
    }

    /// Keeps a value until [`take_held`](Self::take_held).
    pub(crate) fn hold(&mut self, value: impl Send + Sync + 'static) {
        self.held.0.push(Box::new(value));
    }

    /// The values that are held.
    pub(crate) fn take_held(&mut self) -> HeldValues {
        std::mem::take(&mut self.held)
    }

    /// Returns true if changes of the response were decided.
    pub(crate) fn has_notes(&self) -> bool {
        !self.of_response.is_empty()
    }

    /// The changes of the response that were decided so far.
    pub(crate) fn take_notes(&mut self) -> ResponseNotes {
        ResponseNotes(std::mem::take(&mut self.of_response))
    }

    /// Applies changes that filters decided with the request, after all others.
    pub(crate) fn make_noted(&mut self, notes: ResponseNotes) {
        self.fields.extend(notes.0);
    }

    /// The path, if it was changed.
    pub(crate) fn path(&self) -> Option<&str> {
        self.path.as_deref()
    }

    /// Returns the changed query. `Some(None)` if it was removed, `None` if it is unchanged.
    pub(crate) fn query(&self) -> Option<Option<&str>> {
        self.query.as_ref().map(Option::as_deref)
    }

    /// `Host`, if it was changed.
    pub(crate) fn host(&self) -> Option<&HeaderValue> {
        self.host.as_ref()
    }

    /// The changes of fields, for a head that is written from its bytes.
    pub(crate) fn operations(&self) -> impl Iterator<Item = FieldOperation<'_>> {
        self.fields.iter().filter_map(|edit| {
            Some(match &edit.change {
                Change::Remove => FieldOperation::Remove(&edit.name),
                Change::Set(value) => {
                    FieldOperation::Set(&edit.name, FieldValue::new(value.as_bytes())?)
                }
                Change::Append(value) => {
                    FieldOperation::Append(&edit.name, FieldValue::new(value.as_bytes())?)
                }
            })
        })
    }

    /// Applies the changes of fields.
    pub(crate) fn apply_to(&self, headers: &mut HeaderMap) {
        for edit in &self.fields {
            // What is a name there is one here.
            let Ok(name) = HeaderName::from_bytes(edit.name.as_bytes()) else {
                continue;
            };
            // The map takes 32,768 fields; beyond that there is no head that anybody reads.
            match &edit.change {
                Change::Remove => drop(headers.remove(name)),
                Change::Set(value) => drop(headers.try_insert(name, value.clone())),
                Change::Append(value) => drop(headers.try_append(name, value.clone())),
            }
        }
    }

    pub(crate) fn set<V>(&mut self, name: &str, value: V) -> Result<(), InvalidEdit>
    where
        V: TryInto<HeaderValue>,
    {
        self.push(name, |_| Ok(Change::Set(checked(value)?)))
    }

    pub(crate) fn append<V>(&mut self, name: &str, value: V) -> Result<(), InvalidEdit>
    where
        V: TryInto<HeaderValue>,
    {
        self.push(name, |_| Ok(Change::Append(checked(value)?)))
    }

    pub(crate) fn remove(&mut self, name: &str) -> Result<(), InvalidEdit> {
        self.push(name, |_| Ok(Change::Remove))
    }

    fn push(
        &mut self,
        name: &str,
        change: impl FnOnce(&FieldName) -> Result<Change, InvalidEdit>,
    ) -> Result<(), InvalidEdit> {
        let name = self.name(name).ok_or(InvalidEdit::Name)?;
        if PROTECTED.contains(name.class()) {
            return Err(InvalidEdit::Protected);
        }
        let change = change(&name)?;
        self.fields.push(FieldMutation { name, change });
        Ok(())
    }

    /// Returns a field name, reusing one that was created before.
    fn name(&mut self, name: &str) -> Option<FieldName> {
        let mut known = self.names.iter();
        // Filters spell a name the same way each time.
        match known.position(|known| known.as_bytes() == name.as_bytes()) {
            Some(position) => Some(self.names.swap_remove(position)),
            None => FieldName::new(name),
        }
    }

    pub(crate) fn set_path(&mut self, path: &str) -> Result<(), InvalidEdit> {
        // Both ways of writing it have to agree.
        let is_path = path.starts_with('/')
            && OutgoingTarget::new(path.as_bytes(), None).is_some()
            && http::uri::PathAndQuery::try_from(path).is_ok();
        if !is_path {
            return Err(InvalidEdit::Path);
        }
        self.path = Some(path.to_owned());
        Ok(())
    }

    pub(crate) fn set_query(&mut self, query: Option<&str>) -> Result<(), InvalidEdit> {
        if let Some(query) = query {
            let is_query = OutgoingTarget::new(b"/", Some(query.as_bytes())).is_some()
                && http::uri::PathAndQuery::try_from(format!("/?{query}")).is_ok();
            if !is_query {
                return Err(InvalidEdit::Query);
            }
        }
        self.query = Some(query.map(str::to_owned));
        Ok(())
    }

    pub(crate) fn set_host(&mut self, host: &str) -> Result<(), InvalidEdit> {
        let authority = http::uri::Authority::try_from(host).map_err(|_| InvalidEdit::Host)?;
        // Userinfo would become a part of `Host`.
        if authority.host().is_empty() || host.contains('@') {
            return Err(InvalidEdit::Host);
        }
        let host = HeaderValue::from_str(host).map_err(|_| InvalidEdit::Host)?;
        self.host = Some(host);
        Ok(())
    }

    /// Returns true if received fields of this name are removed.
    pub(crate) fn hides(&self, name: &[u8]) -> bool {
        let mut fields = self.fields.iter();
        fields.any(|edit| edit.replaces() && edit.is_of(name))
    }

    /// The values that were written for a name and not taken back.
    pub(crate) fn values<'a, 'n>(
        &'a self,
        name: &'n [u8],
    ) -> impl Iterator<Item = &'a [u8]> + use<'a, 'n> {
        let of_name = move |edit: &&'a FieldMutation| edit.is_of(name);
        // A set or a removal forgets what was written before.
        let from = self
            .fields
            .iter()
            .rposition(|edit| edit.replaces() && edit.is_of(name));
        self.fields[from.unwrap_or(0)..]
            .iter()
            .filter(of_name)
            .filter_map(FieldMutation::written)
            .map(HeaderValue::as_bytes)
    }

    /// The fields that were written and not taken back, in order.
    pub(crate) fn written(&self) -> impl Iterator<Item = (&str, &[u8])> {
        self.fields
            .iter()
            .enumerate()
            .filter_map(|(position, edit)| {
                let value = edit.written()?;
                let name = edit.name.as_bytes();
                let mut later = self.fields[position + 1..].iter();
                if later.any(|later| later.replaces() && later.is_of(name)) {
                    return None;
                }
                // A token is ASCII.
                Some((str::from_utf8(name).ok()?, value.as_bytes()))
            })
    }
}

/// A value without white space around it, which no recipient takes for a part of it.
fn checked(value: impl TryInto<HeaderValue>) -> Result<HeaderValue, InvalidEdit> {
    let value = value.try_into().map_err(|_| InvalidEdit::Value)?;
    let bytes = value.as_bytes();
    let checked = FieldValue::new(bytes).ok_or(InvalidEdit::Value)?.as_bytes();
    if checked.len() == bytes.len() {
        return Ok(value);
    }
    let mut trimmed = HeaderValue::from_bytes(checked).map_err(|_| InvalidEdit::Value)?;
    trimmed.set_sensitive(value.is_sensitive());
    Ok(trimmed)
}
