//! Transforms compiled to operations on bytes, when a configuration is published; [`RouteState`](crate::state::RouteState) holds
//! them.

use std::sync::{Arc, OnceLock};

use http::header::{HOST, TE};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use proxy_model::RequestHead;
use proxy_model::compiled::Route;
use proxy_model::matching::RouteValues;
use proxy_model::transform::{
    Forwarded, ForwardedAction, HeaderChange, HeaderCopy, RequestTransform, ResponseCondition,
    ResponseTransform, SetOrAppend, TargetTransform, Transforms, XForwardedPart,
};

use crate::connection::ConnectionInfo;
use crate::head::HeadEdits;
use crate::http1::{ClassSet, Copied, FieldClass, FieldName, FieldOperation, FieldValue};
use crate::transform::{LoopGuard, NoValue, Origin, is_imitation, route_value};

/// The operations on one head that are gathered without an allocation.
const FEW_OPERATIONS: usize = 24;

/// What a route does to heads, as operations on bytes. Made when a configuration is compiled.
#[derive(Debug)]
pub(crate) struct HeadPlan {
    pub(crate) host: HostRule,
    pub(crate) request_copy: CopyRule,
    pub(crate) request: Box<[RequestOperation]>,
    /// The classes of names whose lines these leave out, if they can be made one by one while a head is written: none leaves
    /// out what one before it writes.
    #[cfg_attr(
        not(feature = "server"),
        expect(dead_code, reason = "for the server, which has heads as bytes")
    )]
    pub(crate) request_removed: Option<ClassSet>,
    pub(crate) response_copy: CopyRule,
    pub(crate) response: Box<[ResponseOperation]>,
    /// Method, path or query may change.
    pub(crate) rewrites_target: bool,
    /// The values that are computed for each request, as [`RequestOperation::Computed`] numbers them.
    computed: Box<[Computed]>,
    /// The names of the fields that the route writes, which clients may imitate.
    written: Box<[HeaderName]>,
    /// The route names `TE` among the fields that are sent on.
    copies_te: bool,
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
    /// The value of this number that the plan computes for a request.
    Computed(FieldName, usize, SetOrAppend),
}

/// A value that depends on the request.
#[derive(Clone, Debug)]
enum Computed {
    /// The part of the path that the route's template calls by this name.
    RouteValue(Box<str>),
    /// The value of `Forwarded`.
    Forwarded(Forwarded),
}

/// The values that a plan computes for one request, by number.
type ComputedValues = Vec<Result<HeaderValue, NoValue>>;

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
        // A head that is made over for another destination does not tell where its `Host` came from.
        let computes_host = |change: &RequestTransform| matches!(change, RequestTransform::RouteValue { name, .. } if *name == HOST);
        if changes_trailers
            || transforms.target().iter().any(changes_method)
            || transforms.request().iter().any(computes_host)
        {
            return None;
        }
        let mut host = match transforms.original_host() {
            true => HostRule::Original,
            false => HostRule::Destination,
        };
        let mut request = Vec::new();
        let mut computed = Vec::new();
        for transform in transforms.request() {
            request.extend(request_operation(transform, &mut host, &mut computed));
        }
        let response = transforms.response().iter().filter_map(response_operation);
        Some(Self {
            host,
            copies_te: matches!(transforms.request_copy(), HeaderCopy::Only(names) if names.contains(&TE)),
            request_copy: copy_rule(transforms.request_copy()),
            written: transforms
                .request()
                .iter()
                .filter_map(written_name)
                .collect(),
            request_removed: removed_by(&request).filter(|_| computed.is_empty()),
            request: request.into(),
            computed: computed.into(),
            response_copy: copy_rule(transforms.response_copy()),
            response: response.collect(),
            rewrites_target: !transforms.target().is_empty(),
            loop_line: None,
        })
    }
}

impl HeadPlan {
    /// Returns whether responses have the fields that they came with, but for those of a connection.
    #[cfg(all(feature = "http2", feature = "server"))]
    #[inline]
    pub(crate) fn keeps_responses(&self) -> bool {
        self.response.is_empty() && matches!(self.response_copy, CopyRule::All)
    }

    /// Returns whether a request with fields of these classes may have one that imitates a field that the route writes.
    #[inline]
    pub(crate) fn may_be_imitated(&self, classes: ClassSet) -> bool {
        classes.contains(FieldClass::Underscored) && !self.written.is_empty()
    }

    /// Returns whether a destination learns that the client accepts trailers. In HTTP/1.1 that is between neighbours, unless the route
    /// says otherwise.
    #[inline]
    pub(crate) fn tells_of_trailers(&self, is_http2: bool) -> bool {
        self.copies_te || (is_http2 && matches!(self.request_copy, CopyRule::All))
    }

    /// What the guard against loops adds to requests: a line with the CRLF in front of it, or nothing.
    #[inline]
    pub(crate) fn loop_line(&self) -> &[u8] {
        self.loop_line.as_deref().unwrap_or_default()
    }

    /// The values that the plan computes for a request of `route` with this head.
    #[inline]
    fn compute<H: RequestHead>(
        &self,
        route: &Route,
        head: &H,
        connection: ConnectionInfo,
    ) -> ComputedValues {
        match self.computed.is_empty() {
            true => Vec::new(),
            false => self.compute_all(route, head, connection),
        }
    }

    #[cold]
    fn compute_all<H: RequestHead>(
        &self,
        route: &Route,
        head: &H,
        connection: ConnectionInfo,
    ) -> ComputedValues {
        let origin = Origin::new(head, connection);
        let captured = route.matcher().path().capture(head.path());
        let captured: RouteValues = captured.unwrap_or_default();
        let computed = self.computed.iter().map(|computed| match computed {
            Computed::RouteValue(parameter) => route_value(&captured, parameter),
            Computed::Forwarded(told) => origin.forwarded(told).ok_or(NoValue::NotToBeWritten),
        });
        computed.collect()
    }

    /// The names among `names` that imitate fields that the route writes.
    #[cold]
    fn imitations<'n>(&self, names: impl Iterator<Item = &'n [u8]>) -> Vec<FieldName> {
        let is_imitated = |name: &&[u8]| {
            let mut written = self.written.iter();
            name.contains(&b'_') && written.any(|written| is_imitation(name, written))
        };
        let names = names.filter(is_imitated);
        let names = names.filter_map(|name| FieldName::new(std::str::from_utf8(name).ok()?));
        names.collect()
    }

    /// Calls `write` with the operations for one request: what filters changed, then what the route does.
    #[inline]
    pub(crate) fn for_request<'n, H: RequestHead>(
        &self,
        request: &Changed<'_, H>,
        names: impl Iterator<Item = &'n [u8]>,
        part: impl Fn(XForwardedPart) -> Option<FieldValue<'n>>,
        write: impl FnOnce(&[FieldOperation<'_>]),
    ) {
        let edits = request.edits;
        let values = self.compute(request.route, request.head, request.connection);
        let mut imitations = match self.may_be_imitated(request.classes) {
            true => self.imitations(names),
            false => Vec::new(),
        };
        if let Some(edits) = edits {
            let written = edits.written().map(|(name, _)| name.as_bytes());
            imitations.extend(self.imitations(written));
        }
        let route = self.request.iter();
        let route = route.map(|operation| operation.for_request(&values, &part));
        if edits.is_none() && request.cookie.is_none() && imitations.is_empty() {
            return with_slice(route, write);
        }
        let edited = edits.into_iter().flat_map(HeadEdits::operations);
        let imitated = imitations.iter().map(FieldOperation::Remove);
        let before = request.cookie.into_iter().chain(edited).chain(imitated);
        with_slice(before.chain(route), write);
    }
}

/// A request whose fields are changed.
pub(crate) struct Changed<'a, H> {
    pub(crate) route: &'a Route,
    pub(crate) head: &'a H,
    /// The classes of its fields.
    pub(crate) classes: ClassSet,
    pub(crate) connection: ConnectionInfo,
    /// The operation that replaces several lines of `Cookie` by one.
    pub(crate) cookie: Option<FieldOperation<'a>>,
    /// What filters changed, which comes before what the route says.
    pub(crate) edits: Option<&'a HeadEdits>,
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

    /// The operation for a request for which the plan computed `values`, and of which `part` tells the parts of where it came
    /// from, as far as they are known.
    #[inline]
    fn for_request<'o, 'p: 'o>(
        &'o self,
        values: &'o [Result<HeaderValue, NoValue>],
        part: impl FnOnce(XForwardedPart) -> Option<FieldValue<'p>>,
    ) -> FieldOperation<'o> {
        match self {
            Self::Remove(name) => FieldOperation::Remove(name),
            Self::Write(name, value, action) => written(name, known(value), *action),
            Self::Tell(name, told, action) => match (part(*told), action) {
                (Some(value), action) => written(name, value, *action),
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
    #[cfg_attr(
        not(feature = "server"),
        expect(dead_code, reason = "for the server, which has heads as bytes")
    )]
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
    let mut room = [first; FEW_OPERATIONS];
    let mut count = 1;
    for operation in operations.by_ref().take(FEW_OPERATIONS - 1) {
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

/// The name of a field that the route writes with a value of its own, which a client might imitate.
fn written_name(transform: &RequestTransform) -> Option<HeaderName> {
    match transform {
        RequestTransform::Header { name, .. }
        | RequestTransform::RouteValue { name, .. }
        | RequestTransform::ClientCert(name) => Some(name.clone()),
        _ => None,
    }
}

/// The operation that makes a change; `None` if it is one of `host`, or has no effect.
fn request_operation(
    transform: &RequestTransform,
    host: &mut HostRule,
    computed: &mut Vec<Computed>,
) -> Option<RequestOperation> {
    let mut compute = |value: Computed| {
        computed.push(value);
        computed.len() - 1
    };
    Some(match transform {
        RequestTransform::Header { name, value, .. } if name == HOST => {
            *host = HostRule::Fixed(value.clone());
            return None;
        }
        RequestTransform::Remove(name) if name == HOST => {
            *host = HostRule::Restored;
            return None;
        }
        RequestTransform::Header {
            name,
            value,
            action,
        } => RequestOperation::Write(changeable(name)?, value.clone(), *action),
        RequestTransform::RouteValue {
            name,
            parameter,
            action,
        } => {
            let name = changeable(name)?;
            let number = compute(Computed::RouteValue(parameter.clone()));
            RequestOperation::Computed(name, number, *action)
        }
        RequestTransform::Remove(name) | RequestTransform::ClientCert(name) => {
            // No server of this crate asks clients for certificates yet, so there is none to tell of.
            RequestOperation::Remove(changeable(name)?)
        }
        RequestTransform::XForwarded(told) => {
            let (name, part) = (changeable(told.name())?, told.part());
            match told.action() {
                ForwardedAction::Remove => RequestOperation::Remove(name),
                ForwardedAction::Set => RequestOperation::Tell(name, part, SetOrAppend::Set),
                ForwardedAction::Append => RequestOperation::Tell(name, part, SetOrAppend::Append),
            }
        }
        RequestTransform::Forwarded(told) => {
            let name = changeable(&http::header::FORWARDED)?;
            match told.action() {
                ForwardedAction::Remove => RequestOperation::Remove(name),
                ForwardedAction::Set => {
                    let number = compute(Computed::Forwarded(*told));
                    RequestOperation::Computed(name, number, SetOrAppend::Set)
                }
                ForwardedAction::Append => {
                    let number = compute(Computed::Forwarded(*told));
                    RequestOperation::Computed(name, number, SetOrAppend::Append)
                }
            }
        }
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

fn copy_rule(copy: &HeaderCopy) -> CopyRule {
    match copy {
        HeaderCopy::All => CopyRule::All,
        HeaderCopy::None => CopyRule::None,
        HeaderCopy::Only(names) => CopyRule::Only(names.iter().filter_map(changeable).collect()),
    }
}

/// The name of a field that is the route's to change. The others are the connection's; a configuration that names one gets a
/// warning that it has no effect.
fn changeable(name: &HeaderName) -> Option<FieldName> {
    let name = FieldName::new(name.as_str())?;
    (!FieldOperation::PROTECTED.contains(name.class())).then_some(name)
}
