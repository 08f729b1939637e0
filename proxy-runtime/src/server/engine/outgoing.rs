//! The head of a request as a destination gets it.

use proxy_model::RequestHead;
use proxy_model::compiled::{Destination, Route};

use crate::connection::ConnectionInfo;
use crate::forward::exchange::readdress::{host_of, is_of_destination};
use crate::head::HeaderMutations;
use crate::http1::{
    Changes, ClassSet, Field, FieldName, FieldOperation, FieldValue, HeadTable, OutgoingMethod,
    OutgoingTarget, RawRequest, RequestRewrite, RequestView, write_changed_request, write_request,
};
use crate::transform::{
    Changed, CompiledTransforms, Host, HostHeaderRule, Invalid, OriginParts, RequestOperation,
    elsewhere, known, mark_host,
};

/// The method and target in place of the client's.
#[derive(Clone, Copy, Default)]
struct Other<'a> {
    method: Option<OutgoingMethod<'a>>,
    target: Option<OutgoingTarget<'a>>,
}

/// The head of a request, to be written for one destination.
#[derive(Clone, Copy)]
pub(crate) struct PreparedHead<'a> {
    pub(crate) buffer: &'a [u8],
    pub(crate) request: &'a RawRequest,
    pub(crate) table: &'a HeadTable,
    pub(crate) view: &'a RequestView<'a>,
    pub(crate) route: &'a Route,
    pub(crate) plan: &'a CompiledTransforms,
    /// The changes of filters, which come before the route's.
    pub(crate) edits: Option<&'a HeaderMutations>,
    pub(crate) destination: &'a Destination,
    /// The client's address, without port.
    pub(crate) remote: Option<FieldValue<'a>>,
    pub(crate) connection: &'a ConnectionInfo,
}

impl<'a> PreparedHead<'a> {
    /// Appends the head to `out`.
    // Apart from the exchange, in which the compiler would inline the writes no more.
    #[inline(never)]
    pub(crate) fn write(&self, out: &mut Vec<u8>) -> Result<(), Invalid> {
        // The base path of a destination precedes the path of the request.
        if self.plan.rewrites_target || self.destination.address().path() != "/" {
            return self.write_elsewhere(out);
        }
        if let Some(edits) = self.edits {
            return self.write_edited(edits, out);
        }
        self.write_to(Other::default(), out);
        Ok(())
    }

    /// Writes the head with the changes of filters.
    #[cold]
    fn write_edited(&self, edits: &HeaderMutations, out: &mut Vec<u8>) -> Result<(), Invalid> {
        // Without another target the request line is copied as received.
        if edits.path().is_none() && edits.query().is_none() {
            self.write_to(Other::default(), out);
            return Ok(());
        }
        let (path, query) = self.target();
        let target = OutgoingTarget::new(path.as_bytes(), query.map(str::as_bytes));
        let other = Other {
            method: None,
            target: Some(target.ok_or(Invalid)?),
        };
        self.write_to(other, out);
        Ok(())
    }

    /// Path and query, as filters left them.
    fn target(&self) -> (&str, Option<&str>) {
        let path = self.edits.and_then(HeaderMutations::path);
        let query = self.edits.and_then(HeaderMutations::query);
        (
            path.unwrap_or_else(|| self.view.path()),
            query.unwrap_or_else(|| self.view.query()),
        )
    }

    /// Writes the head with another method, path or query.
    #[cold]
    fn write_elsewhere(&self, out: &mut Vec<u8>) -> Result<(), Invalid> {
        let elsewhere = elsewhere(
            self.plan,
            self.route,
            self.destination,
            self.view,
            self.target(),
        );
        let other = Other {
            method: elsewhere.method().and_then(OutgoingMethod::new),
            target: Some(elsewhere.target()?),
        };
        self.write_to(other, out);
        Ok(())
    }

    #[inline]
    fn write_to(&self, other: Other<'_>, out: &mut Vec<u8>) {
        // The direct way, if no change depends on another one or on the received fields.
        if let (None, Some(removed)) = (self.edits, self.plan.request_removed)
            && !self.plan.may_be_imitated(self.table.classes())
            && !self.table.has_crumbs(self.buffer)
        {
            let changes = RouteChanges {
                outgoing: self,
                removed,
            };
            let (request, table) = (self.request, self.table);
            // Where nothing is computed, neither is the host.
            let host = self.plan.host.resolve(&[]);
            let rewrite = self.rewrite(other, host, &[]);
            write_changed_request(self.buffer, request, table, &rewrite, &changes, out);
            return;
        }
        self.write_gathered(other, out);
    }

    /// Writes the head after collecting all changes, for routes whose changes affect each other.
    #[cold]
    fn write_gathered(&self, other: Other<'_>, out: &mut Vec<u8>) {
        let joined = self.joined_cookie();
        let cookie = joined.as_ref().map(|(name, value)| {
            let value = FieldValue::checked(value);
            FieldOperation::Set(name, value)
        });
        let changed = Changed {
            route: self.route,
            head: self.view,
            classes: self.table.classes(),
            connection: *self.connection,
            cookie,
            edits: self.edits,
        };
        let fields = self.table.fields().iter();
        let names = fields.map(|field| field.name().get(self.buffer));
        let parts = self.parts();
        let part = |part| parts.get(part);
        let begin = out.len();
        let write = |host: Host<'_>, operations: &[FieldOperation<'_>]| {
            self.write_by(other, host, operations, out);
            // When the head is changed for another destination, the path of the request is gone.
            let is_computed = matches!(self.plan.host, HostHeaderRule::Computed(_));
            if is_computed && !is_of_destination(host, self.edits, self.has_authority()) {
                mark_host(&mut out[begin..]);
            }
        };
        self.plan.for_request(&changed, names, part, write);
    }

    /// The name and value of one `Cookie` for several lines of it: recipients do not agree on what several mean.
    fn joined_cookie(&self) -> Option<(FieldName, Vec<u8>)> {
        const COOKIE: &str = "Cookie";
        let is_copied = self.plan.request_copy.copied().has_name(COOKIE.as_bytes());
        if !is_copied || !self.table.has_crumbs(self.buffer) {
            return None;
        }
        let mut values: Vec<&[u8]> = Vec::new();
        for field in self.table.fields() {
            let name = field.name().get(self.buffer);
            if name.eq_ignore_ascii_case(COOKIE.as_bytes()) {
                values.push(field.value().get(self.buffer));
            }
        }
        // As HTTP/2 joins its crumbs (RFC 9113 section 8.2.3).
        Some((FieldName::new(COOKIE)?, values.join(&b"; "[..])))
    }

    fn write_by(
        &self,
        other: Other<'_>,
        host: Host<'_>,
        operations: &[FieldOperation<'_>],
        out: &mut Vec<u8>,
    ) {
        let rewrite = self.rewrite(other, host, operations);
        write_request(self.buffer, self.request, self.table, &rewrite, out);
    }

    #[inline]
    fn rewrite<'r>(
        &'r self,
        other: Other<'r>,
        host: Host<'r>,
        operations: &'r [FieldOperation<'r>],
    ) -> RequestRewrite<'r> {
        RequestRewrite {
            method: other.method,
            target: other.target,
            host: self.host(host),
            copied: self.plan.request_copy.copied(),
            operations,
            accepts_trailers: self.plan.tells_of_trailers(false) && self.request.accepts_trailers(),
            last: self.plan.loop_line(),
            ..RequestRewrite::default()
        }
    }

    /// `None`: the client's.
    #[inline]
    fn host<'r>(&'r self, host: Host<'r>) -> Option<FieldValue<'r>> {
        if is_of_destination(host, self.edits, self.has_authority()) {
            return Some(known(host_of(self.destination)));
        }
        match host {
            Host::Named(value) => Some(known(value)),
            _ => self.edits.and_then(HeaderMutations::host).map(known),
        }
    }

    /// True if the client named an authority.
    #[inline]
    fn has_authority(&self) -> bool {
        !self.request.authority().is_empty()
    }

    /// The parts of where the request came from.
    #[inline]
    fn parts(&self) -> OriginParts<'a> {
        OriginParts {
            remote: self.remote,
            authority: self
                .has_authority()
                .then(|| self.request.authority_value(self.buffer)),
            is_https: self.view.is_https(),
        }
    }
}

/// The changes of a route to the fields of a request, applied in order.
struct RouteChanges<'o> {
    outgoing: &'o PreparedHead<'o>,
    /// The classes of names whose lines are left out.
    removed: ClassSet,
}

impl Changes for RouteChanges<'_> {
    #[inline]
    fn classes(&self) -> ClassSet {
        self.removed
    }

    fn leaves_out(&self, buffer: &[u8], field: &Field) -> bool {
        let operations = self.outgoing.plan.request.iter();
        let mut names = operations.filter_map(RequestOperation::removed);
        names.any(|name| name.is_of(buffer, field))
    }

    #[inline]
    fn write(&self, out: &mut Vec<u8>) {
        let parts = self.outgoing.parts();
        for operation in &self.outgoing.plan.request {
            match operation {
                RequestOperation::Remove(_) => {}
                RequestOperation::Write(name, value, _) => name.write_line(known(value), out),
                RequestOperation::Tell(name, part, _) => {
                    if let Some(value) = parts.get(*part) {
                        name.write_line(value, out);
                    }
                }
                // Plans that compute values gather their changes.
                RequestOperation::Computed(..) => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::fixtures::snapshot;
    use crate::http1::{HeadLimits, Status, parse_request};

    /// Transforms of which most can be made one by one; each is an object of a route's `Transforms`.
    fn transforms() -> impl Strategy<Value = Vec<String>> {
        let name = prop::sample::select(vec!["X-A", "X-B", "Cookie", "X-Forwarded-For"]);
        let header = (name.clone(), prop::sample::select(vec!["Set", "Append"]));
        let header =
            header.prop_map(|(name, how)| format!(r#"{{"RequestHeader":"{name}","{how}":"new"}}"#));
        let value = name.clone();
        let value = value
            .prop_map(|name| format!(r#"{{"RequestHeaderRouteValue":"{name}","Set":"rest"}}"#));
        let removal = name.prop_map(|name| format!(r#"{{"RequestHeaderRemove":"{name}"}}"#));
        let forwarded = prop::sample::select(vec!["Off", "Set", "Append", "Remove"]);
        let forwarded = forwarded.prop_map(|how| format!(r#"{{"X-Forwarded":"{how}"}}"#));
        prop::collection::vec(prop_oneof![header, value, removal, forwarded], 0..4)
    }

    fn fields() -> impl Strategy<Value = Vec<&'static str>> {
        let field = prop::sample::select(vec![
            "X-A: 1\r\n",
            "x-a: 2\r\n",
            "x_a: imitated\r\n",
            "X-B: 3\r\n",
            "X-C: 4\r\n",
            "Cookie: a\r\n",
            "cookie: b\r\n",
            "Connection: x-c\r\n",
            "X-Forwarded-For: 6.6.6.6\r\n",
            "X-Forwarded-Prefix: /p\r\n",
        ]);
        prop::collection::vec(field, 0..6)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        /// Changes that are made while a head is written make the same head as changes that are gathered first.
        #[test]
        fn one_by_one_is_the_same_as_gathered(
            transforms in transforms(),
            fields in fields(),
            has_remote: bool,
        ) {
            let snapshot = snapshot(&format!(
                r#"{{"Routes":{{"r":{{"ClusterId":"c","Match":{{"Path":"/{{**rest}}"}},"Transforms":[{}]}}}},
                "Clusters":{{"c":{{"Destinations":{{"d":{{"Address":"http://127.0.0.1:1/"}}}}}}}}}}"#,
                transforms.join(","),
            ));
            let route = &snapshot.routes()[0];
            let plan = CompiledTransforms::of(route, None);
            let buffer = format!("GET /a HTTP/1.1\r\nHost: h\r\n{}\r\n", fields.concat());
            let buffer = buffer.as_bytes();
            let mut table = HeadTable::new();
            let parsed = parse_request(buffer, &HeadLimits::default(), &mut table);
            let Ok(Status::Complete(request)) = parsed else {
                panic!("{parsed:?}");
            };
            let outgoing = PreparedHead {
                buffer,
                request: &request,
                table: &table,
                view: &RequestView::new(buffer, &request, &table, false),
                route,
                plan: &plan,
                edits: None,
                destination: &snapshot.clusters()[0].destinations()[0],
                remote: has_remote.then_some(FieldValue::from_static("192.0.2.1")),
                connection: &ConnectionInfo::default(),
            };
            let (mut written, mut gathered) = (Vec::new(), Vec::new());
            outgoing.write(&mut written).expect("it is valid");
            outgoing.write_gathered(Other::default(), &mut gathered);
            prop_assert_eq!(
                written.escape_ascii().to_string(),
                gathered.escape_ascii().to_string()
            );
        }
    }

    #[test]
    fn what_takes_back_an_earlier_change_is_gathered() {
        for (transforms, is_one_by_one) in [
            ("", true),
            (
                r#"{"RequestHeader":"A","Append":"1"},{"RequestHeader":"B","Set":"2"}"#,
                true,
            ),
            (
                r#"{"RequestHeaderRemove":"A"},{"RequestHeader":"a","Set":"2"}"#,
                true,
            ),
            (
                r#"{"RequestHeader":"A","Append":"1"},{"RequestHeader":"a","Append":"2"}"#,
                true,
            ),
            (
                r#"{"RequestHeader":"A","Append":"1"},{"RequestHeader":"a","Set":"2"}"#,
                false,
            ),
            (
                r#"{"RequestHeader":"A","Set":"1"},{"RequestHeaderRemove":"a"}"#,
                false,
            ),
        ] {
            let snapshot = snapshot(&format!(
                r#"{{"Routes":{{"r":{{"Match":{{"Path":"/{{**rest}}"}},"Transforms":[{transforms}]}}}}}}"#
            ));
            let plan = CompiledTransforms::of(&snapshot.routes()[0], None);
            assert_eq!(
                plan.request_removed.is_some(),
                is_one_by_one,
                "{transforms}"
            );
        }
    }
}
