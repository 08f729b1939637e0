//! Transforms compiled to operations on bytes, when a configuration is published;
//! [`RouteState`](crate::state::RouteState) holds them.

use std::sync::{Arc, OnceLock};

use http::header::{HOST, TE};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use proxy_model::RequestHead;
use proxy_model::compiled::Route;
use proxy_model::matching::RouteValues;
use proxy_model::transform::{
    Forwarded, ForwardedAction, HeaderCopy, RequestTransform, SetOrAppend, TargetTransform,
    Transforms, XForwardedPart,
};

use super::host_rule::{ComputedHost, Host, HostHeaderRule};
use super::operation::{
    RequestOperation, ResponseOperation, changeable, removed_by, response_operation, with_slice,
};
use super::trailers::TrailerPlan;
use crate::connection::ConnectionInfo;
use crate::head::HeaderMutations;
use crate::http1::{ClassSet, Copied, FieldClass, FieldName, FieldOperation, FieldValue};
use crate::transform::{LoopGuard, NoValue, Origin, route_host, route_value};

/// All changes of heads by a route, as operations on bytes. Made when a configuration is compiled.
#[derive(Debug)]
pub(crate) struct CompiledTransforms {
    pub(crate) host: HostHeaderRule,
    pub(crate) request_copy: HeaderCopyRule,
    pub(crate) request: Box<[RequestOperation]>,
    /// The classes of names whose lines the request operations remove. `None` if the operations cannot be applied
    /// one by one while a head is written, because one leaves out what an earlier one writes.
    #[cfg_attr(
        not(feature = "server"),
        expect(dead_code, reason = "for the server, which has heads as bytes")
    )]
    pub(crate) request_removed: Option<ClassSet>,
    pub(crate) response_copy: HeaderCopyRule,
    pub(crate) response: Box<[ResponseOperation]>,
    /// Changes of response trailers, if there are any.
    pub(crate) trailers: Option<Arc<TrailerPlan>>,
    /// True if the method may change.
    pub(crate) changes_method: bool,
    /// True if method, path or query may change.
    pub(crate) rewrites_target: bool,
    /// The values that are computed for each request, as [`RequestOperation::Computed`] numbers them.
    computed: Box<[Computed]>,
    /// The names of the fields that the route writes. Fields of clients that imitate them are removed.
    written: Box<[HeaderName]>,
    /// True if the route names `TE` among the forwarded fields.
    copies_te: bool,
    /// The line that the loop guard adds to requests.
    loop_line: Option<Arc<[u8]>>,
}

/// The fields that are forwarded.
#[derive(Debug)]
pub(crate) enum HeaderCopyRule {
    All,
    None,
    Only(Box<[FieldName]>),
}

/// A value that depends on the request.
#[derive(Clone, Debug)]
enum Computed {
    /// The route value with this name, a part of the path.
    RouteValue(Box<str>),
    /// The route value with this name, as a `Host`.
    Host(Box<str>),
    /// The value of `Forwarded`.
    Forwarded(Forwarded),
    /// The certificate of the client.
    ClientCertificate,
}

/// The values that a plan computes for one request, by number.
type ComputedValues = Vec<Result<HeaderValue, NoValue>>;

impl CompiledTransforms {
    /// Compiles the changes of `route` and its `guard`. Routes without changes, as most are, share one plan.
    pub(crate) fn of(route: &Route, guard: Option<&LoopGuard>) -> Arc<Self> {
        static UNCHANGED: OnceLock<Arc<CompiledTransforms>> = OnceLock::new();
        let made = || {
            let loop_line = guard.map(LoopGuard::line);
            Arc::new(Self {
                loop_line,
                ..Self::new(route.transforms())
            })
        };
        match (&route.config().transforms, guard) {
            (None, None) => Arc::clone(UNCHANGED.get_or_init(made)),
            (None, Some(guard)) => guard.unchanged(made),
            (Some(_), _) => made(),
        }
    }

    fn new(transforms: &Transforms) -> Self {
        let changes_method =
            |change: &TargetTransform| matches!(change, TargetTransform::Method { .. });
        let mut host = match transforms.original_host() {
            true => HostHeaderRule::Original,
            false => HostHeaderRule::Destination,
        };
        let mut request = Vec::new();
        let mut computed = Vec::new();
        for transform in transforms.request() {
            request.extend(request_operation(transform, &mut host, &mut computed));
        }
        let response = transforms.response().iter().filter_map(response_operation);
        Self {
            host,
            copies_te: matches!(transforms.request_copy(), HeaderCopy::Only(names) if names.contains(&TE)),
            request_copy: copy_rule(transforms.request_copy()),
            written: transforms
                .request()
                .iter()
                .filter_map(written_name)
                .collect(),
            // A computed value may be missing, and then leaves the client's line as it is.
            request_removed: removed_by(&request).filter(|_| computed.is_empty()),
            request: request.into(),
            computed: computed.into(),
            response_copy: copy_rule(transforms.response_copy()),
            response: response.collect(),
            trailers: TrailerPlan::of(transforms).map(Arc::new),
            changes_method: transforms.target().iter().any(changes_method),
            rewrites_target: !transforms.target().is_empty(),
            loop_line: None,
        }
    }
}

impl CompiledTransforms {
    /// Makes the route's changes of the fields of a response with this status, in order.
    pub(crate) fn change_response(&self, status: StatusCode, fields: &mut HeaderMap) {
        for operation in &self.response {
            operation.apply(status, fields);
        }
    }

    /// Returns true if responses keep their fields, apart from those about the connection.
    #[cfg(all(feature = "http2", feature = "server"))]
    #[inline]
    pub(crate) fn keeps_responses(&self) -> bool {
        self.response.is_empty() && matches!(self.response_copy, HeaderCopyRule::All)
    }

    /// Returns true if a request with fields of these classes may have one that imitates a field that the route writes.
    #[inline]
    pub(crate) fn may_be_imitated(&self, classes: ClassSet) -> bool {
        classes.contains(FieldClass::Underscored) && !self.written.is_empty()
    }

    /// Returns true if the destination is informed that the client accepts trailers. In HTTP/1.1 `TE` is hop-by-hop,
    /// so only a route that names it forwards it.
    #[inline]
    pub(crate) fn tells_of_trailers(&self, is_http2: bool) -> bool {
        self.copies_te || (is_http2 && matches!(self.request_copy, HeaderCopyRule::All))
    }

    /// The line that the loop guard adds to requests, with the CRLF before it; empty without a guard.
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
        // Captured only here, for the few routes that need values of the path.
        let captured = route.matcher().path().capture(head.path());
        let captured: RouteValues = captured.unwrap_or_default();
        let computed = self.computed.iter().map(|computed| match computed {
            Computed::RouteValue(parameter) => route_value(&captured, parameter),
            Computed::Host(parameter) => route_host(&captured, parameter),
            Computed::Forwarded(told) => origin.forwarded(told).ok_or(NoValue::NotToBeWritten),
            Computed::ClientCertificate => {
                origin.client_certificate().ok_or(NoValue::NotToBeWritten)
            }
        });
        computed.collect()
    }

    /// Returns the names that imitate fields that the route writes, with `_` for `-`.
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

    /// Calls `write` with the `Host` of one request and the operations for it: changes of filters, then
    /// those of the route.
    #[inline]
    pub(crate) fn for_request<'n, H: RequestHead>(
        &self,
        request: &Changed<'_, H>,
        names: impl Iterator<Item = &'n [u8]>,
        part: impl Fn(XForwardedPart) -> Option<FieldValue<'n>>,
        write: impl FnOnce(Host<'_>, &[FieldOperation<'_>]),
    ) {
        let edits = request.edits;
        let values = self.compute(request.route, request.head, request.connection);
        let mut imitations = match self.may_be_imitated(request.classes) {
            true => self.imitations(names),
            false => Vec::new(),
        };
        // A filter may have written such a name, too.
        if let Some(edits) = edits {
            let written = edits.written().map(|(name, _)| name.as_bytes());
            imitations.extend(self.imitations(written));
        }
        let write =
            |operations: &[FieldOperation<'_>]| write(self.host.resolve(&values), operations);
        let route = self.request.iter();
        let route = route.map(|operation| operation.for_request(&values, &part));
        if edits.is_none() && request.cookie.is_none() && imitations.is_empty() {
            return with_slice(route, write);
        }
        let edited = edits.into_iter().flat_map(HeaderMutations::operations);
        let imitated = imitations.iter().map(FieldOperation::Remove);
        // Changes of filters come first, so that the route has the last word.
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
    /// The changes by filters, which precede those of the route.
    pub(crate) edits: Option<&'a HeaderMutations>,
}

impl HeaderCopyRule {
    #[inline]
    pub(crate) fn copied(&self) -> Copied<'_> {
        match self {
            Self::All => Copied::All,
            Self::None => Copied::None,
            Self::Only(names) => Copied::Only(names),
        }
    }
}

/// Returns the name of the field that a transform writes, which a client might imitate.
fn written_name(transform: &RequestTransform) -> Option<HeaderName> {
    match transform {
        RequestTransform::Header { name, .. }
        | RequestTransform::RouteValue { name, .. }
        | RequestTransform::ClientCert(name) => Some(name.clone()),
        _ => None,
    }
}

/// Compiles a transform to an operation. `None` if it changes `host` or has no effect.
fn request_operation(
    transform: &RequestTransform,
    host: &mut HostHeaderRule,
    computed: &mut Vec<Computed>,
) -> Option<RequestOperation> {
    let mut compute = |value: Computed| {
        computed.push(value);
        computed.len() - 1
    };
    Some(match transform {
        // The rule for the host alone writes `Host`.
        RequestTransform::Header { name, value, .. } if name == HOST => {
            *host = HostHeaderRule::Fixed(value.clone());
            return None;
        }
        // No request goes without a `Host`: the destination's takes the place of a removed one.
        RequestTransform::Remove(name) | RequestTransform::ClientCert(name) if name == HOST => {
            *host = HostHeaderRule::Restored;
            return None;
        }
        // A host is set, never appended.
        RequestTransform::RouteValue {
            name, parameter, ..
        } if name == HOST => {
            let computed = ComputedHost {
                number: compute(Computed::Host(parameter.clone())),
                otherwise: std::mem::replace(host, HostHeaderRule::Restored),
            };
            *host = HostHeaderRule::Computed(Box::new(computed));
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
        RequestTransform::Remove(name) => RequestOperation::Remove(changeable(name)?),
        RequestTransform::ClientCert(name) => {
            let name = changeable(name)?;
            let number = compute(Computed::ClientCertificate);
            RequestOperation::Computed(name, number, SetOrAppend::Set)
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

/// Returns true if a name equals another except for `_` in place of `-`. Many programs treat both as the same.
fn is_imitation(name: &[u8], of: &HeaderName) -> bool {
    let plain = |byte: &u8| match byte {
        b'_' => b'-',
        byte => byte.to_ascii_lowercase(),
    };
    let (name, of) = (name.iter(), of.as_str().as_bytes().iter());
    // The name itself imitates nothing.
    name.len() == of.len()
        && name
            .clone()
            .map(u8::to_ascii_lowercase)
            .ne(of.clone().copied())
        && name.map(plain).eq(of.map(plain))
}

fn copy_rule(copy: &HeaderCopy) -> HeaderCopyRule {
    match copy {
        HeaderCopy::All => HeaderCopyRule::All,
        HeaderCopy::None => HeaderCopyRule::None,
        HeaderCopy::Only(names) => {
            HeaderCopyRule::Only(names.iter().filter_map(changeable).collect())
        }
    }
}
