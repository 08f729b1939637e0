//! A request's head in the plainest form.

use proxy_model::RequestHead;

/// A request's head in the plainest form, so that what is measured is the look-up and not the way to the header.
#[derive(Clone, Debug)]
pub struct Head {
    method: &'static str,
    authority: String,
    path: String,
    query: Option<String>,
    header: Option<(&'static str, String)>,
}

impl Head {
    /// A `GET` for `path` at `authority`.
    pub fn get(authority: impl Into<String>, path: impl Into<String>) -> Self {
        Self {
            method: "GET",
            authority: authority.into(),
            path: path.into(),
            query: None,
            header: None,
        }
    }

    /// The same with another method.
    #[must_use]
    pub fn with_method(mut self, method: &'static str) -> Self {
        self.method = method;
        self
    }

    /// The same with a query.
    #[must_use]
    pub fn with_query(mut self, query: impl Into<String>) -> Self {
        self.query = Some(query.into());
        self
    }

    /// The same with one header, whose name is in lower case.
    #[must_use]
    pub fn with_header(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.header = Some((name, value.into()));
        self
    }
}

impl RequestHead for Head {
    fn method(&self) -> &str {
        self.method
    }

    fn path(&self) -> &str {
        &self.path
    }

    fn query(&self) -> Option<&str> {
        self.query.as_deref()
    }

    fn authority(&self) -> &str {
        &self.authority
    }

    fn is_https(&self) -> bool {
        false
    }

    fn for_each_header(&self, name: &str, each: &mut dyn FnMut(&[u8]) -> bool) {
        if let Some((_, value)) = self.header.as_ref().filter(|(other, _)| *other == name) {
            each(value.as_bytes());
        }
    }
}
