//! Changes of fields, compiled.

use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use proxy_model::transform::{
    HeaderChange, ResponseCondition, ResponseTransform, SetOrAppend, XForwardedPart,
};
use smallvec::SmallVec;

use crate::http1::{ClassSet, FieldName, FieldOperation, FieldValue};
use crate::transform::NoValue;

/// The operations on one head that are gathered without an allocation.
const FEW_OPERATIONS: usize = 24;

/// One change of a request's fields.
#[derive(Debug)]
pub(crate) enum RequestOperation {
    Remove(FieldName),
    Write(FieldName, HeaderValue, SetOrAppend),
    /// Writes a part of the request's origin. An unknown part is removed instead: the client's value cannot be
    /// trusted.
    Tell(FieldName, XForwardedPart, SetOrAppend),
    /// The value of this number that the plan computes for a request.
    Computed(FieldName, usize, SetOrAppend),
}

/// One change of a response's fields.
#[derive(Debug)]
pub(crate) struct ResponseOperation {
    condition: ResponseCondition,
    name: FieldName,
    header: HeaderName,
    /// `None` removes.
    value: Option<(HeaderValue, SetOrAppend)>,
}

impl ResponseOperation {
    /// The operation for this status.
    #[inline]
    #[cfg_attr(
        not(feature = "server"),
        expect(dead_code, reason = "for the server, which has heads as bytes")
    )]
    pub(crate) fn for_status(&self, status: StatusCode) -> FieldOperation<'_> {
        match &self.value {
            _ if !self.condition.holds(status) => FieldOperation::Nothing,
            None => FieldOperation::Remove(&self.name),
            Some((value, SetOrAppend::Set)) => FieldOperation::Set(&self.name, known(value)),
            Some((value, SetOrAppend::Append)) => FieldOperation::Append(&self.name, known(value)),
        }
    }
}

impl ResponseOperation {
    /// Applies the change to fields in `http` types, if it applies to this status.
    pub(crate) fn apply(&self, status: StatusCode, fields: &mut HeaderMap) {
        if !self.condition.holds(status) {
            return;
        }
        match &self.value {
            None => {
                fields.remove(&self.header);
            }
            Some((value, SetOrAppend::Set)) => {
                fields.insert(&self.header, value.clone());
            }
            Some((value, SetOrAppend::Append)) => {
                // The limit of the map is 32,768 fields.
                let _ = fields.try_append(&self.header, value.clone());
            }
        }
    }

    /// Applies the removals of the route for a response with this status, and adds nothing.
    #[cfg(all(feature = "http2", feature = "server"))]
    pub(crate) fn apply_removal(&self, status: StatusCode, fields: &mut HeaderMap) {
        if self.removal(status).is_some() {
            fields.remove(&self.header);
        }
    }
}

impl RequestOperation {
    /// The name whose lines it leaves out.
    #[inline]
    pub(crate) fn removed(&self) -> Option<&FieldName> {
        match self {
            Self::Remove(name)
            | Self::Write(name, _, SetOrAppend::Set)
            | Self::Tell(name, _, SetOrAppend::Set)
            | Self::Computed(name, _, SetOrAppend::Set) => Some(name),
            Self::Write(..) | Self::Tell(..) | Self::Computed(..) => None,
        }
    }

    /// Returns whether it may write a line of this name.
    fn writes(&self, name: &FieldName) -> bool {
        match self {
            Self::Remove(_) => false,
            Self::Write(own, ..) | Self::Tell(own, ..) | Self::Computed(own, ..) => {
                own.is_same(name)
            }
        }
    }

    /// Returns the operation for one request. The plan has computed `values`; `part` returns the known parts of the
    /// request's origin.
    #[inline]
    pub(super) fn for_request<'o, 'p: 'o>(
        &'o self,
        values: &'o [Result<HeaderValue, NoValue>],
        part: impl FnOnce(XForwardedPart) -> Option<FieldValue<'p>>,
    ) -> FieldOperation<'o> {
        match self {
            Self::Remove(name) => FieldOperation::Remove(name),
            Self::Write(name, value, action) => written(name, known(value), *action),
            Self::Tell(name, told, action) => match (part(*told), action) {
                (Some(value), action) => written(name, value, *action),
                // The client's own line cannot be trusted.
                (None, SetOrAppend::Set) => FieldOperation::Remove(name),
                (None, SetOrAppend::Append) => FieldOperation::Nothing,
            },
            Self::Computed(name, number, action) => match (values.get(*number), action) {
                (Some(Ok(value)), action) => written(name, known(value), *action),
                (Some(Err(NoValue::NotToBeWritten)), SetOrAppend::Set) => {
                    FieldOperation::Remove(name)
                }
                (Some(Err(_)) | None, _) => FieldOperation::Nothing,
            },
        }
    }
}

/// Returns the classes of names whose lines `operations` remove. `None` if one removes what an earlier one writes.
pub(super) fn removed_by(operations: &[RequestOperation]) -> Option<ClassSet> {
    let mut removed = ClassSet::EMPTY;
    for (number, operation) in operations.iter().enumerate() {
        let Some(name) = operation.removed() else {
            continue;
        };
        if operations[..number].iter().any(|other| other.writes(name)) {
            return None;
        }
        removed = removed.with(name.class());
    }
    Some(removed)
}

#[inline]
fn written<'a>(
    name: &'a FieldName,
    value: FieldValue<'a>,
    action: SetOrAppend,
) -> FieldOperation<'a> {
    match action {
        SetOrAppend::Set => FieldOperation::Set(name, value),
        SetOrAppend::Append => FieldOperation::Append(name, value),
    }
}

impl ResponseOperation {
    /// The operation for this status, if it takes something away.
    #[cfg_attr(
        not(feature = "server"),
        expect(dead_code, reason = "for the server, which has heads as bytes")
    )]
    pub(crate) fn removal(&self, status: StatusCode) -> Option<FieldOperation<'_>> {
        // Setting a field removes its other values.
        let removes = matches!(&self.value, None | Some((_, SetOrAppend::Set)));
        (removes && self.condition.holds(status)).then_some(FieldOperation::Remove(&self.name))
    }
}

/// Calls `write` with all operations at once; few are gathered without an allocation.
pub(crate) fn with_slice<'o, T>(
    operations: impl Iterator<Item = FieldOperation<'o>>,
    write: impl FnOnce(&[FieldOperation<'o>]) -> T,
) -> T {
    let mut gathered = SmallVec::<[_; FEW_OPERATIONS]>::new();
    gathered.extend(operations);
    write(&gathered)
}

/// A value that was checked when the configuration was compiled.
#[inline]
pub(crate) fn known(value: &HeaderValue) -> FieldValue<'_> {
    FieldValue::from_header(value)
}

/// The operation that makes a change of a response; `None` if it has no effect.
pub(super) fn response_operation(transform: &ResponseTransform) -> Option<ResponseOperation> {
    let (name, value) = match transform.change() {
        HeaderChange::Set(name, value) => (name, Some((value.clone(), SetOrAppend::Set))),
        HeaderChange::Append(name, value) => (name, Some((value.clone(), SetOrAppend::Append))),
        HeaderChange::Remove(name) => (name, None),
    };
    Some(ResponseOperation {
        condition: transform.condition(),
        header: name.clone(),
        name: changeable(name)?,
        value,
    })
}

/// Returns the name of a field that a route may change. Fields of the connection are excluded; a configuration that
/// names one gets a warning.
pub(super) fn changeable(name: &HeaderName) -> Option<FieldName> {
    let name = FieldName::new(name.as_str())?;
    (!FieldOperation::PROTECTED.contains(name.class())).then_some(name)
}
