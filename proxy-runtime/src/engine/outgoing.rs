//! The head of a request as a destination gets it.

use proxy_model::RequestHead;
use proxy_model::compiled::{Destination, Route};
use proxy_model::matching::RouteValues;
use proxy_model::transform::{RequestTarget, XForwardedPart, path_and_query};

use super::plan::{HeadPlan, HostRule, known, with_slice};
use crate::filter::HeadEdits;
use crate::http1::{
    FieldOperation, FieldValue, HeadTable, OutgoingTarget, RawRequest, RequestRewrite, RequestView,
    write_request,
};

/// A request's head, and what is made of it for one destination.
#[derive(Clone, Copy)]
pub(super) struct Outgoing<'a> {
    pub(super) buffer: &'a [u8],
    pub(super) request: &'a RawRequest,
    pub(super) table: &'a HeadTable,
    pub(super) view: &'a RequestView<'a>,
    pub(super) route: &'a Route,
    pub(super) plan: &'a HeadPlan,
    /// What filters changed, which comes before what the route says.
    pub(super) edits: Option<&'a HeadEdits>,
    pub(super) destination: &'a Destination,
    /// The client's address, without port.
    pub(super) remote: Option<FieldValue<'a>>,
}

/// The route's changes make no valid request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Invalid;

impl<'a> Outgoing<'a> {
    /// Appends the head to `out`.
    #[inline]
    pub(super) fn write(&self, out: &mut Vec<u8>) -> Result<(), Invalid> {
        if self.plan.rewrites_target || self.destination.address().path() != "/" {
            return self.write_elsewhere(out);
        }
        if let Some(edits) = self.edits {
            return self.write_edited(edits, out);
        }
        self.write_to(None, out);
        Ok(())
    }

    /// The same, as filters changed it.
    #[cold]
    fn write_edited(&self, edits: &HeadEdits, out: &mut Vec<u8>) -> Result<(), Invalid> {
        if edits.path().is_none() && edits.query().is_none() {
            self.write_to(None, out);
            return Ok(());
        }
        let (path, query) = self.target();
        let target = OutgoingTarget::new(path.as_bytes(), query.map(str::as_bytes));
        self.write_to(Some(target.ok_or(Invalid)?), out);
        Ok(())
    }

    /// Path and query, as filters left them.
    fn target(&self) -> (&str, Option<&str>) {
        let path = self.edits.and_then(HeadEdits::path);
        let query = self.edits.and_then(HeadEdits::query);
        (
            path.unwrap_or_else(|| self.view.path()),
            query.unwrap_or_else(|| self.view.query()),
        )
    }

    /// The same, with another path or query.
    #[cold]
    fn write_elsewhere(&self, out: &mut Vec<u8>) -> Result<(), Invalid> {
        let text = elsewhere(
            self.plan,
            self.route,
            self.destination,
            self.view,
            self.target(),
        );
        let (path, query) = match text.split_once('?') {
            Some((path, query)) => (path, Some(query.as_bytes())),
            None => (&*text, None),
        };
        let elsewhere = OutgoingTarget::new(path.as_bytes(), query).ok_or(Invalid)?;
        self.write_to(Some(elsewhere), out);
        Ok(())
    }

    #[inline]
    fn write_to(&self, target: Option<OutgoingTarget<'_>>, out: &mut Vec<u8>) {
        let Some(edits) = self.edits else {
            return self.plan.for_request(
                |part| self.part(part),
                |operations| self.write_by(target, operations, out),
            );
        };
        let route = self.plan.request.iter();
        let route = route.map(|operation| operation.for_request(|part| self.part(part)));
        let operations = edits.operations().chain(route);
        with_slice(operations, |operations| {
            self.write_by(target, operations, out)
        });
    }

    #[inline]
    fn write_by(
        &self,
        target: Option<OutgoingTarget<'_>>,
        operations: &[FieldOperation<'_>],
        out: &mut Vec<u8>,
    ) {
        let rewrite = RequestRewrite {
            target,
            host: self.host(),
            copied: self.plan.request_copy.copied(),
            operations,
            ..RequestRewrite::default()
        };
        write_request(self.buffer, self.request, self.table, &rewrite, out);
    }

    /// `None`: the client's.
    #[inline]
    fn host(&self) -> Option<FieldValue<'a>> {
        let changed = self.edits.and_then(HeadEdits::host);
        match (&self.plan.host, changed) {
            (HostRule::Fixed(value), _) => Some(known(value)),
            (HostRule::Original | HostRule::Destination, Some(changed)) => Some(known(changed)),
            (HostRule::Original, None) if !self.request.authority().is_empty() => None,
            (HostRule::Original | HostRule::Destination | HostRule::Restored, _) => {
                let own = self.destination.host();
                Some(known(
                    own.unwrap_or_else(|| self.destination.address().authority()),
                ))
            }
        }
    }

    /// A part of where the request came from, if it is known.
    #[inline]
    fn part(&self, part: XForwardedPart) -> Option<FieldValue<'a>> {
        const HTTP: FieldValue<'static> = FieldValue::from_static("http");
        const HTTPS: FieldValue<'static> = FieldValue::from_static("https");
        match part {
            XForwardedPart::For => self.remote,
            XForwardedPart::Proto => Some(if self.view.is_https() { HTTPS } else { HTTP }),
            XForwardedPart::Host if self.request.authority().is_empty() => None,
            XForwardedPart::Host => Some(self.request.authority_value(self.buffer)),
            // The proxy serves whole paths: nothing was taken off before it saw the request.
            XForwardedPart::Prefix => None,
        }
    }
}

/// Path and query that a request gets whose route or destination changes them.
#[cold]
pub(super) fn elsewhere<H: RequestHead>(
    plan: &HeadPlan,
    route: &Route,
    destination: &Destination,
    head: &H,
    (path, query): (&str, Option<&str>),
) -> String {
    let values = match plan.rewrites_target {
        true => route.matcher().path().capture(head.path()),
        false => None,
    };
    let values: RouteValues = values.unwrap_or_default();
    let mut target = RequestTarget {
        method: head.method().into(),
        path: path.into(),
        query: query.map(Into::into),
    };
    route.transforms().rewrite(&mut target, &values);
    path_and_query(destination.address(), &target.path, target.query.as_deref())
}
