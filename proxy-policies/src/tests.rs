//! Helpers of several modules' tests, and policies around the routes of a proxy.

use std::sync::Arc;

use http::{HeaderName, HeaderValue};
use proxy_model::config::ProxyConfig;
use proxy_model::{CompileOptions, Snapshot};

use crate::authorization::Claims;
use crate::head::Head;

pub(crate) mod around;
mod explained;
mod keys;
mod outcomes;
mod reload;
mod remote;
mod tokens;

/// A route with a value in its path.
pub(crate) fn route() -> Snapshot {
    let config = ProxyConfig::from_json(
        r#"{"Routes":{"r":{"ClusterId":"c","Match":{"Path":"/t/{tenant}"}}},"Clusters":{"c":{}}}"#,
    );
    Snapshot::compile(config.unwrap(), &CompileOptions::default())
        .unwrap()
        .0
}

/// A head that notes what policies do.
#[derive(Debug, Default)]
pub(crate) struct TestHead {
    method: String,
    path: String,
    pub(crate) headers: Vec<(String, String)>,
    /// `=name: value` for a header that is set on the response, `+name: value` for one that is appended.
    pub(crate) response: Vec<String>,
    pub(crate) claims: Option<Arc<Claims>>,
}

impl TestHead {
    pub(crate) fn new(method: &str, path: &str, headers: &[(&str, &str)]) -> Self {
        let headers = headers.iter();
        Self {
            method: method.to_owned(),
            path: path.to_owned(),
            headers: headers
                .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
                .collect(),
            ..Self::default()
        }
    }

    /// Makes the changes of the response.
    pub(crate) fn change_response(&self, response: &mut http::HeaderMap) {
        for line in &self.response {
            let (change, rest) = line.split_at(1);
            let (name, value) = rest.split_once(": ").unwrap_or((rest, ""));
            let name: HeaderName = name.parse().unwrap();
            let value = HeaderValue::from_str(value).unwrap();
            match change {
                "-" => drop(response.remove(name)),
                "=" => drop(response.insert(name, value)),
                _ => drop(response.append(name, value)),
            }
        }
    }

    pub(crate) fn get(path: &str, headers: &[(&str, &str)]) -> Self {
        Self::new("GET", path, headers)
    }
}

impl Head for TestHead {
    fn method(&self) -> &str {
        &self.method
    }

    fn path(&self) -> &str {
        &self.path
    }

    fn header(&self, name: &str) -> Option<&[u8]> {
        let mut headers = self.headers.iter();
        let (_, value) = headers.find(|(known, _)| known.eq_ignore_ascii_case(name))?;
        Some(value.as_bytes())
    }

    fn query(&self) -> Option<&str> {
        None
    }

    fn authority(&self) -> &str {
        ""
    }

    fn each_header(&self, see: &mut dyn FnMut(&str, &[u8])) {
        let headers = self.headers.iter();
        headers.for_each(|(name, value)| see(name, value.as_bytes()));
    }

    fn is_repeated(&self, name: &str) -> bool {
        let headers = self.headers.iter();
        headers
            .filter(|(known, _)| known.eq_ignore_ascii_case(name))
            .nth(1)
            .is_some()
    }

    fn is_for_connection(&self, _: &str) -> bool {
        false
    }

    fn append(&mut self, name: HeaderName, value: HeaderValue) {
        let value = value.to_str().unwrap().to_owned();
        self.headers.push((name.as_str().to_owned(), value));
    }

    fn set(&mut self, name: &str, value: HeaderValue) {
        self.remove(name);
        let value = value.to_str().unwrap().to_owned();
        self.headers.push((name.to_owned(), value));
    }

    fn remove(&mut self, name: &str) {
        self.headers
            .retain(|(known, _)| !known.eq_ignore_ascii_case(name));
    }

    fn remove_on_response(&mut self, name: &'static str) {
        self.response.push(format!("-{name}"));
    }

    fn set_on_response(&mut self, name: &'static str, value: HeaderValue) {
        self.response
            .push(format!("={name}: {}", value.to_str().unwrap()));
    }

    fn append_on_response(&mut self, name: &'static str, value: HeaderValue) {
        self.response
            .push(format!("+{name}: {}", value.to_str().unwrap()));
    }
}
