//! Bodies of errors that the program has chosen in place of the proxy's own.

use std::ops::RangeInclusive;
use std::sync::Arc;

use bytes::Bytes;
use http::header::{CONTENT_TYPE, HeaderMap, HeaderValue, VARY};
use http::{StatusCode, header};

use super::ErrorForm;

/// Bodies for the proxy's own errors and those of [policies](crate::policy), by status.
///
/// Responses of destinations, of [filters](crate::filter) with a body of their own and of routes with `Respond` stay as
/// they are, and so do rejections before routing: the head of such a request is not trusted.
///
/// # Examples
///
/// ```
/// use proxy_runtime::http::HeaderValue;
/// use proxy_runtime::{ErrorPages, Proxy};
///
/// let html = HeaderValue::from_static("text/html; charset=utf-8");
/// let pages = ErrorPages::default()
///     .with_page(500..=599, html.clone(), "<h1>Back soon</h1>")
///     .with_page(404..=404, html, "<h1>Not here</h1>");
/// let builder = Proxy::builder().error_pages(pages);
/// # drop(builder);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ErrorPages(Vec<ErrorPage>);

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ErrorPage {
    name: Option<Box<str>>,
    statuses: RangeInclusive<u16>,
    content_type: HeaderValue,
    /// The form that the page takes the place of.
    form: ErrorForm,
    body: Bytes,
}

impl ErrorPages {
    /// Adds a body for these statuses; those below 400 and above 599 are no errors and have no effect.
    ///
    /// If several pages have a status, the one with the fewest statuses counts, then the one that was added first. If
    /// [errors are negotiated](crate::ProxyBuilder::negotiate_errors), a page is for clients that prefer its form:
    /// `text/html`, JSON, or all the others as plain text. Clients that prefer another form get the proxy's own body.
    #[must_use]
    pub fn with_page(
        mut self,
        statuses: RangeInclusive<u16>,
        content_type: HeaderValue,
        body: impl Into<Bytes>,
    ) -> Self {
        self.0.push(ErrorPage {
            name: None,
            statuses,
            form: ErrorForm::of_media_type(content_type.as_bytes()),
            content_type,
            body: body.into(),
        });
        self
    }

    /// Names the page that was added last, for [`explain`](crate::explain). Default: its statuses and its media type.
    #[must_use]
    pub fn named(mut self, name: impl Into<Box<str>>) -> Self {
        if let Some(page) = self.0.last_mut() {
            page.name = Some(name.into());
        }
        self
    }

    /// Returns true if there is no page.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn find(&self, status: StatusCode, form: Option<ErrorForm>) -> Option<&ErrorPage> {
        let status = status.as_u16();
        let pages = self.0.iter().filter(|page| {
            page.statuses.contains(&status) && form.is_none_or(|form| page.form == form)
        });
        pages.min_by_key(|page| page.statuses.end() - page.statuses.start())
    }
}

impl ErrorPage {
    /// The name, or the statuses and the media type: `500-599 text/html`.
    pub(crate) fn describe(&self) -> String {
        let content_type = String::from_utf8_lossy(self.content_type.as_bytes());
        match (&self.name, self.statuses.start(), self.statuses.end()) {
            (Some(name), ..) => (**name).to_owned(),
            (None, first, last) if first == last => format!("{first} {content_type}"),
            (None, first, last) => format!("{first}-{last} {content_type}"),
        }
    }
}

/// The bodies of errors for one client.
#[derive(Clone, Debug, Default)]
pub(crate) struct ErrorBodies {
    form: ErrorForm,
    /// True if the client has chosen the form.
    is_negotiated: bool,
    pages: Option<Arc<ErrorPages>>,
}

impl ErrorBodies {
    /// The bodies for a client that prefers `form`, if that `is_negotiated`.
    pub(crate) fn new(
        form: ErrorForm,
        is_negotiated: bool,
        pages: Option<Arc<ErrorPages>>,
    ) -> Self {
        Self {
            form,
            is_negotiated,
            pages,
        }
    }

    /// Returns true if they are the proxy's own, as plain text.
    pub(crate) fn are_plain(&self) -> bool {
        self.form == ErrorForm::default() && self.pages.is_none()
    }

    /// The page that takes the place of the proxy's own body, if there is one for the status.
    pub(crate) fn page(&self, status: StatusCode) -> Option<&ErrorPage> {
        let is_error = status.is_client_error() || status.is_server_error();
        let wanted = self.is_negotiated.then_some(self.form);
        let pages = self.pages.as_ref().filter(|_| is_error)?;
        pages.find(status, wanted)
    }

    /// Returns a body for the status: a page, or the status and a sentence that explains it. Adds the fields that
    /// describe the body.
    #[cold]
    pub(crate) fn write(
        &self,
        status: StatusCode,
        detail: Option<&str>,
        fields: &mut HeaderMap,
    ) -> Bytes {
        let Some(page) = self.page(status) else {
            return self.form.write(status, detail, fields);
        };
        fields.insert(CONTENT_TYPE, page.content_type.clone());
        if self.is_negotiated && page.form != ErrorForm::Text {
            fields.append(VARY, HeaderValue::from(header::ACCEPT));
        }
        page.body.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pages() -> Arc<ErrorPages> {
        let [html, json, xml] =
            ["text/html", "application/problem+json", "text/xml"].map(HeaderValue::from_static);
        Arc::new(
            ErrorPages::default()
                .with_page(500..=599, html.clone(), "any 5xx")
                .with_page(400..=599, json, "{}")
                .with_page(503..=503, html.clone(), "503")
                .with_page(503..=503, html, "too late")
                .with_page(404..=404, xml, "<x/>")
                .with_page(200..=399, HeaderValue::from_static("text/html"), "no error"),
        )
    }

    #[test]
    fn the_page_with_the_fewest_statuses_counts() {
        use ErrorForm::{Html, Problem, Text};
        for (status, form, expected, kind, varies) in [
            (503, None, "503", "text/html", false),
            (502, None, "any 5xx", "text/html", false),
            (404, None, "<x/>", "text/xml", false),
            (403, None, "{}", "application/problem+json", false),
            (
                308,
                None,
                "308 Permanent Redirect\n",
                "text/plain; charset=utf-8",
                false,
            ),
            (503, Some(Html), "503", "text/html", true),
            (503, Some(Problem), "{}", "application/problem+json", true),
            (
                503,
                Some(Text),
                "503 Service Unavailable\n",
                "text/plain; charset=utf-8",
                false,
            ),
            (404, Some(Text), "<x/>", "text/xml", false),
        ] {
            let bodies = ErrorBodies::new(form.unwrap_or_default(), form.is_some(), Some(pages()));
            let mut fields = HeaderMap::new();
            let status = StatusCode::from_u16(status).unwrap();
            let body = bodies.write(status, None, &mut fields);
            assert_eq!(body, expected, "{status} {form:?}");
            assert_eq!(fields[CONTENT_TYPE], kind, "{status} {form:?}");
            assert_eq!(fields.contains_key(VARY), varies, "{status} {form:?}");
        }
        let html = ErrorBodies::new(Html, true, Some(pages()));
        let body = html.write(StatusCode::FORBIDDEN, None, &mut HeaderMap::new());
        assert!(body.starts_with(b"<!doctype html>"), "{body:?}");
    }
}
