//! The head of a request as a destination gets it.

use proxy_model::RequestHead;
use proxy_model::compiled::{Destination, Route};
use proxy_model::matching::RouteValues;
use proxy_model::transform::{RequestTarget, XForwardedPart, path_and_query};

use super::plan::{HeadPlan, HostRule, known};
use crate::http1::{
    FieldValue, HeadTable, OutgoingTarget, RawRequest, RequestRewrite, RequestView, write_request,
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
    pub(super) destination: &'a Destination,
    /// The client's address, without port.
    pub(super) remote: Option<FieldValue<'a>>,
}

/// The route's changes make no valid request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Invalid;

impl<'a> Outgoing<'a> {
    /// Appends the head to `out`.
    #[inline]
    pub(super) fn write(&self, out: &mut Vec<u8>) -> Result<(), Invalid> {
        if self.plan.rewrites_target || self.destination.address().path() != "/" {
            return self.write_elsewhere(out);
        }
        self.write_to(None, out);
        Ok(())
    }

    /// The same, with another path or query.
    #[cold]
    fn write_elsewhere(&self, out: &mut Vec<u8>) -> Result<(), Invalid> {
        let text = elsewhere(self.plan, self.route, self.destination, self.view);
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
        self.plan.for_request(
            |part| self.part(part),
            |operations| {
                let rewrite = RequestRewrite {
                    target,
                    host: self.host(),
                    copied: self.plan.request_copy.copied(),
                    operations,
                    ..RequestRewrite::default()
                };
                write_request(self.buffer, self.request, self.table, &rewrite, out);
            },
        );
    }

    /// `None`: the client's.
    #[inline]
    fn host(&self) -> Option<FieldValue<'a>> {
        match &self.plan.host {
            HostRule::Original if !self.request.authority().is_empty() => None,
            HostRule::Fixed(value) => Some(known(value)),
            HostRule::Original | HostRule::Destination => {
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
) -> String {
    let values = match plan.rewrites_target {
        true => route.matcher().path().capture(head.path()),
        false => None,
    };
    let values: RouteValues = values.unwrap_or_default();
    let mut target = RequestTarget {
        method: head.method().into(),
        path: head.path().into(),
        query: head.query().map(Into::into),
    };
    route.transforms().rewrite(&mut target, &values);
    path_and_query(destination.address(), &target.path, target.query.as_deref())
}
