//! A request head in its simplest form.

use proxy_model::RequestHead;

/// A request head in its simplest form, so that benchmarks measure look-ups and not access to
/// headers.
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

    /// Sets the method.
    #[must_use]
    pub fn with_method(mut self, method: &'static str) -> Self {
        self.method = method;
        self
    }

    /// Sets the query.
    #[must_use]
    pub fn with_query(mut self, query: impl Into<String>) -> Self {
        self.query = Some(query.into());
        self
    }

    /// Adds a header, whose name must be in lower case.
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
