//! Tests of what is read.

mod access;
mod access_fields;
mod access_page;
mod differences;
mod domains;
mod foreign;
mod replies;

use proxy_model::RequestHead;
use xds_types::pb::envoy::r#type::matcher::v3::{RegexMatchAndSubstitute, RegexMatcher};

/// A request in parts.
#[derive(Debug, Clone)]
pub(super) struct Request {
    pub(super) method: String,
    pub(super) host: String,
    pub(super) target: String,
    pub(super) headers: Vec<(String, String)>,
}

impl Request {
    pub(super) fn get(host: &str, target: &str) -> Self {
        Self {
            method: "GET".into(),
            host: host.into(),
            target: target.into(),
            headers: Vec::new(),
        }
    }

    pub(super) fn with(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }
}

impl RequestHead for Request {
    fn method(&self) -> &str {
        &self.method
    }

    fn path(&self) -> &str {
        self.target.split('?').next().unwrap_or_default()
    }

    fn query(&self) -> Option<&str> {
        self.target.split_once('?').map(|(_, query)| query)
    }

    fn authority(&self) -> &str {
        &self.host
    }

    fn is_https(&self) -> bool {
        false
    }

    fn for_each_header(&self, name: &str, each: &mut dyn FnMut(&[u8]) -> bool) {
        if name == "host" && !each(self.host.as_bytes()) {
            return;
        }
        for (_, value) in self.headers.iter().filter(|(key, _)| key == name) {
            if !each(value.as_bytes()) {
                return;
            }
        }
    }
}

/// A matcher for a whole text.
fn matcher(regex: &str) -> RegexMatcher {
    RegexMatcher {
        regex: regex.to_owned(),
        engine_type: None,
    }
}

/// A replacement.
fn substitution(pattern: &str, by: &str) -> RegexMatchAndSubstitute {
    RegexMatchAndSubstitute {
        pattern: Some(matcher(pattern)),
        substitution: by.to_owned(),
    }
}
