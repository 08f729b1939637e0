//! Transforms compiled to operations on bytes, when a configuration is published; [`RouteState`](crate::state::RouteState) holds
//! them.

use std::sync::{Arc, OnceLock};

use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use proxy_model::compiled::Route;
use proxy_model::transform::{
    ForwardedAction, HeaderChange, HeaderCopy, RequestTransform, ResponseCondition,
    ResponseTransform, SetOrAppend, TargetTransform, Transforms, XForwardedPart,
};

use crate::http1::{ClassSet, Copied, FieldClass, FieldName, FieldOperation, FieldValue};
use crate::transform::LoopGuard;

/// What most routes get along with.
const FEW_OPERATIONS: usize = 8;

/// The most changes of one head that are made on bytes. Routes with more take the typed lane.
pub(crate) const MOST_OPERATIONS: usize = 24;

/// What a route does to heads, as operations on bytes. Made when a configuration is compiled.
#[derive(Debug)]
pub(crate) struct HeadPlan {
    pub(crate) host: HostRule,
    pub(crate) request_copy: CopyRule,
    pub(crate) request: Box<[RequestOperation]>,
    /// The classes of names whose lines these leave out, if they can be made one by one while a head is written: none leaves
    /// out what one before it writes.
    pub(crate) request_removed: Option<ClassSet>,
    pub(crate) response_copy: CopyRule,
    pub(crate) response: Box<[ResponseOperation]>,
    /// Method, path or query may change.
    pub(crate) rewrites_target: bool,
    /// Requests get fields that the route names.
    writes_fields: bool,
    /// What the guard against loops adds to requests.
    loop_line: Option<Arc<[u8]>>,
}

/// Which `Host` a destination gets.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum HostRule {
    /// The client's.
    Original,
    /// Its own.
    Destination,
    /// Its own, whatever filters say.
    Restored,
    /// The one that the route names.
    Fixed(HeaderValue),
}

/// Which fields are sent on.
#[derive(Debug)]
pub(crate) enum CopyRule {
    All,
    None,
    Only(Box<[FieldName]>),
}

/// One change of a request's fields.
#[derive(Debug)]
pub(crate) enum RequestOperation {
    Remove(FieldName),
    Write(FieldName, HeaderValue, SetOrAppend),
    /// A part of where the request came from. What is not known and to be set is removed: it is not to be believed.
    Tell(FieldName, XForwardedPart, SetOrAppend),
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

impl HeadPlan {
    /// What `route` does, and its `guard`. Routes that change nothing, as most do, share one.
    pub(crate) fn of(route: &Route, guard: Option<&LoopGuard>) -> Option<Arc<Self>> {
        static UNCHANGED: OnceLock<Option<Arc<HeadPlan>>> = OnceLock::new();
        let made = || {
            let plan = Self::new(route.transforms())?;
            let loop_line = guard.map(LoopGuard::line);
            Some(Arc::new(Self { loop_line, ..plan }))
        };
        match (&route.config().transforms, guard) {
            (None, None) => UNCHANGED.get_or_init(made).clone(),
            (None, Some(guard)) => guard.unchanged(made),
            (Some(_), _) => made(),
        }
    }

    /// `None` if something of it cannot be said in operations on bytes.
    fn new(transforms: &Transforms) -> Option<Self> {
        let changes_trailers =
            !transforms.trailers().is_empty() || *transforms.trailers_copy() != HeaderCopy::All;
        // What a response looks like depends on the method that it answers, which has to be the client's.
        let changes_method =
            |change: &TargetTransform| matches!(change, TargetTransform::Method { .. });
        if changes_trailers || transforms.target().iter().any(changes_method) {
            return None;
        }
        let mut host = match transforms.original_host() {
            true => HostRule::Original,
            false => HostRule::Destination,
        };
        let mut request = Vec::new();
        for transform in transforms.request() {
            request.extend(request_operation(transform, &mut host)?);
        }
        let response = transforms.response().iter().map(response_operation);
        let response: Box<[_]> = response.collect::<Option<_>>()?;
        (request.len() <= MOST_OPERATIONS && response.len() <= MOST_OPERATIONS).then_some(())?;
        Some(Self {
            host,
            request_copy: copy_rule(transforms.request_copy())?,
            writes_fields: request
                .iter()
                .any(|operation| matches!(operation, RequestOperation::Write(..))),
            request_removed: removed_by(&request),
            request: request.into(),
            response_copy: copy_rule(transforms.response_copy())?,
            response,
            rewrites_target: !transforms.target().is_empty(),
            loop_line: None,
        })
    }
}

impl HeadPlan {
    /// Whether responses have the fields that they came with, but for those of a connection.
    #[cfg(feature = "http2")]
    #[inline]
    pub(crate) fn keeps_responses(&self) -> bool {
        self.response.is_empty() && matches!(self.response_copy, CopyRule::All)
    }

    /// Whether a request with fields of these classes may have one that imitates what the route writes: then it is for the typed lane,
    /// which removes that.
    #[inline]
    pub(crate) fn may_be_imitated(&self, classes: ClassSet) -> bool {
        self.writes_fields && classes.contains(FieldClass::Underscored)
    }

    /// What the guard against loops adds to requests: a line with the CRLF in front of it, or nothing.
    #[inline]
    pub(crate) fn loop_line(&self) -> &[u8] {
        self.loop_line.as_deref().unwrap_or_default()
    }

    /// Calls `write` with the operations for a request of which `part` tells the parts of where it came from, as far as they
    /// are known.
    #[inline]
    pub(crate) fn for_request<'a>(
        &'a self,
        part: impl Fn(XForwardedPart) -> Option<FieldValue<'a>>,
        write: impl FnOnce(&[FieldOperation<'a>]),
    ) {
        match self.request.len() {
            0..=FEW_OPERATIONS => self.for_request_of::<FEW_OPERATIONS>(part, write),
            _ => self.for_request_of::<MOST_OPERATIONS>(part, write),
        }
    }

    #[inline]
    fn for_request_of<'a, const MOST: usize>(
        &'a self,
        part: impl Fn(XForwardedPart) -> Option<FieldValue<'a>>,
        write: impl FnOnce(&[FieldOperation<'a>]),
    ) {
        let given = &*self.request;
        let mut room = [FieldOperation::Nothing; MOST];
        for (place, given) in room.iter_mut().zip(given) {
            *place = given.for_request(&part);
        }
        write(&room[..given.len().min(MOST)]);
    }
}

impl CopyRule {
    #[inline]
    pub(crate) fn copied(&self) -> Copied<'_> {
        match self {
            Self::All => Copied::All,
            Self::None => Copied::None,
            Self::Only(names) => Copied::Only(names),
        }
    }
}

impl ResponseOperation {
    /// The operation for this status.
    #[inline]
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
    /// Makes the change to fields in `http` types, if it is one for this status.
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
                fields.append(&self.header, value.clone());
            }
        }
    }

    /// Takes away what the route takes away from responses of this status, and adds nothing.
    #[cfg(feature = "http2")]
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
            | Self::Tell(name, _, SetOrAppend::Set) => Some(name),
            Self::Write(..) | Self::Tell(..) => None,
        }
    }

    /// Whether it may write a line of this name.
    fn writes(&self, name: &FieldName) -> bool {
        match self {
            Self::Remove(_) => false,
            Self::Write(own, ..) | Self::Tell(own, ..) => own.is_same(name),
        }
    }

    /// The operation for a request of which `part` tells the parts of where it came from, as far as they are known.
    #[inline]
    pub(crate) fn for_request<'a>(
        &'a self,
        part: impl FnOnce(XForwardedPart) -> Option<FieldValue<'a>>,
    ) -> FieldOperation<'a> {
        match self {
            Self::Remove(name) => FieldOperation::Remove(name),
            Self::Write(name, value, action) => written(name, known(value), *action),
            Self::Tell(name, told, action) => match (part(*told), action) {
                (Some(value), action) => written(name, value, *action),
                (None, SetOrAppend::Set) => FieldOperation::Remove(name),
                (None, SetOrAppend::Append) => FieldOperation::Nothing,
            },
        }
    }
}

/// The classes of names whose lines `operations` leave out; `None` if one leaves out what one before it writes.
fn removed_by(operations: &[RequestOperation]) -> Option<ClassSet> {
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
    pub(crate) fn removal(&self, status: StatusCode) -> Option<FieldOperation<'_>> {
        let removes = matches!(&self.value, None | Some((_, SetOrAppend::Set)));
        (removes && self.condition.holds(status)).then_some(FieldOperation::Remove(&self.name))
    }
}

/// Calls `write` with all operations at once; few are gathered without an allocation.
pub(crate) fn with_slice<'o, T>(
    mut operations: impl Iterator<Item = FieldOperation<'o>>,
    write: impl FnOnce(&[FieldOperation<'o>]) -> T,
) -> T {
    let Some(first) = operations.next() else {
        return write(&[]);
    };
    let mut room = [first; MOST_OPERATIONS];
    let mut count = 1;
    for operation in operations.by_ref().take(MOST_OPERATIONS - 1) {
        room[count] = operation;
        count += 1;
    }
    match operations.next() {
        None => write(&room[..count]),
        Some(next) => {
            let mut all = room.to_vec();
            all.push(next);
            all.extend(operations);
            write(&all)
        }
    }
}

/// A value that was checked when the configuration was compiled.
#[inline]
pub(crate) fn known(value: &HeaderValue) -> FieldValue<'_> {
    FieldValue::from_header(value)
}

/// Nothing in it: there is nothing to do. `None`: it cannot be done here.
fn request_operation(
    transform: &RequestTransform,
    host: &mut HostRule,
) -> Option<Option<RequestOperation>> {
    Some(match transform {
        RequestTransform::Header { name, value, .. } if name == http::header::HOST => {
            *host = HostRule::Fixed(value.clone());
            None
        }
        RequestTransform::Remove(name) if name == http::header::HOST => {
            *host = HostRule::Restored;
            None
        }
        RequestTransform::Header {
            name,
            value,
            action,
        } => Some(RequestOperation::Write(
            changeable(name)?,
            value.clone(),
            *action,
        )),
        RequestTransform::Remove(name) | RequestTransform::ClientCert(name) => {
            Some(RequestOperation::Remove(changeable(name)?))
        }
        RequestTransform::XForwarded(told) => {
            let name = changeable(told.name())?;
            match told.action() {
                ForwardedAction::Remove => Some(RequestOperation::Remove(name)),
                ForwardedAction::Set => {
                    Some(RequestOperation::Tell(name, told.part(), SetOrAppend::Set))
                }
                ForwardedAction::Append => Some(RequestOperation::Tell(
                    name,
                    told.part(),
                    SetOrAppend::Append,
                )),
            }
        }
        RequestTransform::Forwarded(told) if told.action() == ForwardedAction::Remove => Some(
            RequestOperation::Remove(changeable(&http::header::FORWARDED)?),
        ),
        _ => return None,
    })
}

fn response_operation(transform: &ResponseTransform) -> Option<ResponseOperation> {
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

fn copy_rule(copy: &HeaderCopy) -> Option<CopyRule> {
    Some(match copy {
        HeaderCopy::All => CopyRule::All,
        HeaderCopy::None => CopyRule::None,
        HeaderCopy::Only(names) => {
            CopyRule::Only(names.iter().map(changeable).collect::<Option<_>>()?)
        }
    })
}

/// The name of a field that is the route's to change. The others are the connection's, on bytes.
fn changeable(name: &HeaderName) -> Option<FieldName> {
    const CONNECTION: ClassSet = ClassSet::CONNECTION
        .with(FieldClass::ContentLength)
        .with(FieldClass::TransferEncoding);
    let name = FieldName::new(name.as_str())?;
    (!CONNECTION.contains(name.class())).then_some(name)
}
