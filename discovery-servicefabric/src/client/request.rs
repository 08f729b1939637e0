//! Calls as requests.

use std::borrow::Cow;
use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderValue};
use http::{Method, Request, Uri};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

use super::endpoint::GatewayEndpoint;
use super::token::BearerToken;
use crate::calls::{CallError, CallErrorKind};
use crate::id::NOT_IN_SEGMENT;

/// The characters that are encoded in a query: all but `unreserved` of RFC 3986 and those that are frequent
/// in names and tokens.
const NOT_IN_VALUE: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~')
    .remove(b':')
    .remove(b'/');

/// One call to a gateway, which can be made at any endpoint and more than once.
#[derive(Clone, Debug)]
pub(super) struct Call {
    method: Method,
    path: String,
    /// Percent-encoded, beginning with the version of the API.
    query: String,
    body: Bytes,
    wrong: Option<&'static str>,
    pub(super) safety: Safety,
    /// True if the call is about one entity that may not exist, as opposed to the whole cluster.
    pub(super) of_entity: bool,
    /// True if the call is made without a token.
    pub(super) anonymous: bool,
}

/// The effect of making a call twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Safety {
    /// No effect.
    Reads,
    /// A change that may be made twice.
    Writes,
}

impl Call {
    /// Creates a reading call in a version of the API.
    pub(super) fn get(api: &'static str) -> Self {
        Self {
            method: Method::GET,
            path: String::new(),
            query: format!("api-version={api}"),
            body: Bytes::new(),
            wrong: None,
            safety: Safety::Reads,
            of_entity: false,
            anonymous: false,
        }
    }

    /// Creates a reading or writing call with a body.
    pub(super) fn post(api: &'static str, safety: Safety, body: impl Into<Bytes>) -> Self {
        Self {
            method: Method::POST,
            body: body.into(),
            safety,
            ..Self::get(api)
        }
    }

    /// Appends a part of the path that is fixed: `/$/GetServices`.
    pub(super) fn at(mut self, fixed: &'static str) -> Self {
        self.path.push_str(fixed);
        self
    }

    /// Appends a name, which is percent-encoded.
    pub(super) fn name(mut self, name: &str) -> Self {
        self.of_entity = true;
        self.segment(&utf8_percent_encode(name, NOT_IN_SEGMENT).to_string());
        self
    }

    /// Marks the call as one for a list: an empty response without a body is not valid for it.
    pub(super) fn of_list(mut self) -> Self {
        self.of_entity = false;
        self
    }

    /// Appends an id, which is already encoded: its escapes stay. Other characters are encoded, so that it
    /// stays one segment.
    pub(super) fn id(mut self, id: &str) -> Self {
        self.of_entity = true;
        let mut encoded = String::with_capacity(id.len());
        let mut rest = id;
        while let Some(at) = rest.find(['%', '/']) {
            let (before, from) = rest.split_at(at);
            encoded.extend(utf8_percent_encode(before, NOT_IN_SEGMENT));
            let escape = from.get(..3).filter(|text| is_escape(text));
            let taken = escape.map_or(1, str::len);
            encoded.push_str(match escape {
                Some(escape) => escape,
                None if from.starts_with('%') => "%25",
                // Ids of versions before 6.0 have the slashes of the name.
                None => "~",
            });
            rest = &from[taken..];
        }
        encoded.extend(utf8_percent_encode(rest, NOT_IN_SEGMENT));
        self.segment(&encoded);
        self
    }

    fn segment(&mut self, encoded: &str) {
        let plain: Cow<'_, [u8]> = percent_decode_str(encoded).into();
        // Without a segment it is another path, and URL libraries resolve dots even when they are escaped.
        if matches!(&*plain, b"" | b"." | b"..") {
            self.wrong = Some("an id is empty or has a meaning of its own in a path");
        }
        self.path.push('/');
        self.path.push_str(encoded);
    }

    /// Adds an argument to the query.
    pub(super) fn argument(mut self, name: &'static str, value: &str) -> Self {
        self.query.push('&');
        self.query.push_str(name);
        self.query.push('=');
        self.query.extend(utf8_percent_encode(value, NOT_IN_VALUE));
        self
    }

    /// Makes the call without a token.
    pub(super) fn anonymous(mut self) -> Self {
        self.anonymous = true;
        self
    }

    /// Marks the call as one that cannot be made.
    pub(super) fn impossible(mut self, reason: &'static str) -> Self {
        self.wrong = Some(reason);
        self
    }

    /// The label of the call for messages: `GET /Applications`.
    pub(super) fn label(&self) -> String {
        const MOST: usize = 300;
        let path = self
            .path
            .get(..MOST)
            .map_or_else(|| self.path.clone(), |beginning| format!("{beginning}…"));
        format!("{} {path}", self.method)
    }

    /// Returns true if the call reports instead of reading.
    pub(super) fn writes(&self) -> bool {
        self.safety == Safety::Writes
    }

    /// An error of this call.
    pub(super) fn error(&self, kind: CallErrorKind, message: impl Into<String>) -> CallError {
        CallError::new(kind, self.label(), message)
    }

    /// Returns the request to one endpoint, with `timeout` as the gateway's time limit.
    pub(super) fn request(
        &self,
        endpoint: &GatewayEndpoint,
        timeout: Duration,
        token: Option<&BearerToken>,
    ) -> Result<Request<Bytes>, CallError> {
        if let Some(reason) = self.wrong {
            return Err(self.error(CallErrorKind::Rejected, reason));
        }
        let seconds = timeout.as_secs();
        let uri = format!(
            "{}{}?{}&timeout={seconds}",
            endpoint.base(),
            self.path,
            self.query
        );
        let uri = Uri::try_from(uri).map_err(|error| {
            self.error(CallErrorKind::Rejected, "the request's URL is not valid")
                .with_source(error)
        })?;
        let mut request = Request::new(self.body.clone());
        *request.method_mut() = self.method.clone();
        *request.uri_mut() = uri;
        let headers = request.headers_mut();
        headers.insert(ACCEPT, HeaderValue::from_static("application/json"));
        if self.method == Method::POST {
            let json = HeaderValue::from_static("application/json; charset=utf-8");
            headers.insert(CONTENT_TYPE, json);
        }
        if let Some(token) = token {
            headers.insert(AUTHORIZATION, token.header());
        }
        Ok(request)
    }
}

fn is_escape(text: &str) -> bool {
    text.strip_prefix('%')
        .is_some_and(|digits| digits.bytes().all(|digit| digit.is_ascii_hexdigit()))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn target(call: &Call) -> Result<String, String> {
        let endpoint = GatewayEndpoint::parse("http://gateway:19080/base").unwrap();
        let request = call.request(&endpoint, Duration::from_millis(7_900), None);
        request
            .map(|request| request.uri().to_string())
            .map_err(|error| error.to_string())
    }

    #[test]
    fn ids_stay_one_segment() {
        let cases = [
            ("App~Svc", "App~Svc"),
            ("a~b~svc%20x", "a~b~svc%20x"),
            ("a b", "a%20b"),
            ("a/b", "a~b"),
            ("100%", "100%25"),
            ("50%zz", "50%25zz"),
            ("%2", "%252"),
            ("a%2Fb", "a%2Fb"),
            ("x?api-version=1&y#z", "x%3Fapi-version=1&y%23z"),
            ("../x", "..~x"),
            ("ü%ü", "%C3%BC%25%C3%BC"),
        ];
        for (id, segment) in cases {
            let call = Call::get("6.0").at("/Services").id(id).at("/$/X");
            assert_eq!(
                target(&call).unwrap(),
                format!(
                    "http://gateway:19080/base/Services/{segment}/$/X?api-version=6.0&timeout=7"
                ),
            );
        }
        for id in ["", ".", "..", "%2e", ".%2E", "%2E%2e"] {
            let error = target(&Call::get("6.0").at("/Services").id(id)).unwrap_err();
            assert!(error.contains("an id is empty"), "{id}: {error}");
        }
    }

    #[test]
    fn names_and_arguments_are_encoded() {
        let call = Call::get("6.0")
            .at("/ApplicationTypes")
            .name("Type/50%20 é~")
            .argument("ContinuationToken", "fabric:/A b&c=d+é#%20~");
        assert_eq!(
            target(&call).unwrap(),
            "http://gateway:19080/base/ApplicationTypes/Type%2F50%2520%20%C3%A9~?api-version=6.0\
             &ContinuationToken=fabric:/A%20b%26c%3Dd%2B%C3%A9%23%2520~&timeout=7"
        );
    }

    #[test]
    fn a_label_is_short() {
        let label = Call::get("6.0")
            .at("/Services")
            .id(&"x".repeat(5_000))
            .label();
        assert!(label.len() < 400, "{label}");
        assert!(label.ends_with('…'), "{label}");
    }

    proptest! {
        #[test]
        fn whatever_an_id_is_the_path_keeps_its_shape(id in any::<String>(), value in any::<String>()) {
            let call = Call::get("6.0").at("/A").id(&id).at("/$/B").argument("v", &value);
            if let Ok(target) = target(&call) {
                let url = url::Url::parse(&target).unwrap();
                let segments: Vec<_> = url.path_segments().unwrap().collect();
                prop_assert_eq!(segments.len(), 5);
                prop_assert_eq!((segments[0], segments[1], segments[3], segments[4]), ("base", "A", "$", "B"));
                let query: Vec<_> = url.query_pairs().collect();
                prop_assert_eq!(query.len(), 3);
                prop_assert_eq!(&query[1].1, &value);
            }
        }
    }
}
