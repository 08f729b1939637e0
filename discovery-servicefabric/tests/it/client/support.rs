//! A gateway in memory.

use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use discovery_servicefabric::client::{
    Client, ClientBuilder, Transport, TransportError, TransportErrorKind,
};
use http::header::{AUTHORIZATION, CONTENT_TYPE, HeaderName};
use http::{HeaderValue, Request, Response, StatusCode};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::time::Instant;

/// The endpoint of the gateway.
pub(crate) const ENDPOINT: &str = "https://gateway:19080";

/// The reaction of the gateway to a request.
#[derive(Clone, Debug)]
pub(crate) enum Act {
    Answer(Response<Bytes>),
    Fail(TransportErrorKind),
    /// No response ever.
    Hang,
}

/// A request as the gateway saw it.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    pub(crate) method: String,
    pub(crate) uri: String,
    pub(crate) authorization: Option<String>,
    pub(crate) content_type: Option<String>,
    pub(crate) body: String,
    pub(crate) at: Instant,
}

impl Seen {
    /// Path and query.
    pub(crate) fn target(&self) -> &str {
        self.uri.strip_prefix(ENDPOINT).unwrap_or(&self.uri)
    }

    /// Returns the value of an argument, still encoded.
    pub(crate) fn argument(&self, name: &str) -> Option<&str> {
        let (_, query) = self.uri.split_once('?')?;
        query
            .split('&')
            .filter_map(|pair| pair.split_once('='))
            .find_map(|(key, value)| (key == name).then_some(value))
    }
}

type Behaviour = Box<dyn FnMut(&Seen) -> Act + Send>;

/// A transport that a function scripts. Clones share it.
#[derive(Clone)]
pub(crate) struct Gateway(Arc<Mutex<State>>);

struct State {
    behaviour: Behaviour,
    seen: Vec<Seen>,
}

impl Gateway {
    /// Creates a transport that is scripted by `behaviour`.
    pub(crate) fn new(behaviour: impl FnMut(&Seen) -> Act + Send + 'static) -> Self {
        Self(Arc::new(Mutex::new(State {
            behaviour: Box::new(behaviour),
            seen: Vec::new(),
        })))
    }

    /// Does these one after the other. A further request fails the test.
    pub(crate) fn acts(acts: impl IntoIterator<Item = Act>) -> Self {
        let mut acts: Vec<_> = acts.into_iter().collect();
        acts.reverse();
        Self::new(move |seen| {
            acts.pop()
                .unwrap_or_else(|| panic!("one request too many: {seen:?}"))
        })
    }

    /// Responds to every request with this.
    pub(crate) fn always(act: Act) -> Self {
        Self::new(move |_| act.clone())
    }

    pub(crate) fn builder(&self) -> ClientBuilder {
        Client::builder(ENDPOINT).transport(self.clone())
    }

    pub(crate) fn client(&self) -> Client {
        self.builder().build().unwrap()
    }

    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.0.lock().seen.clone()
    }

    pub(crate) fn targets(&self) -> Vec<String> {
        let seen = self.seen();
        seen.iter().map(|seen| seen.target().to_owned()).collect()
    }
}

#[async_trait]
impl Transport for Gateway {
    async fn send(
        &self,
        request: Request<Bytes>,
        _max_body: usize,
    ) -> Result<Response<Bytes>, TransportError> {
        let header = |name: HeaderName| {
            let value: &HeaderValue = request.headers().get(name)?;
            Some(value.to_str().unwrap().to_owned())
        };
        let seen = Seen {
            method: request.method().to_string(),
            uri: request.uri().to_string(),
            authorization: header(AUTHORIZATION),
            content_type: header(CONTENT_TYPE),
            body: String::from_utf8(request.body().to_vec()).unwrap(),
            at: Instant::now(),
        };
        let act = {
            let mut state = self.0.lock();
            let act = (state.behaviour)(&seen);
            state.seen.push(seen);
            act
        };
        match act {
            Act::Answer(response) => Ok(response),
            Act::Fail(kind) => Err(TransportError::new(kind, "as the script says")),
            Act::Hang => std::future::pending().await,
        }
    }
}

/// 200 with a JSON body.
#[expect(clippy::needless_pass_by_value, reason = "reads better with `json!`")]
pub(crate) fn ok(body: Value) -> Act {
    text(200, body.to_string())
}

/// A page with the token for the next one; empty for the last.
#[expect(clippy::needless_pass_by_value, reason = "reads better with `json!`")]
pub(crate) fn page(items: Value, token: &str) -> Act {
    ok(json!({"ContinuationToken": token, "Items": items}))
}

/// A status with a body.
pub(crate) fn text(status: u16, body: impl Into<Bytes>) -> Act {
    Act::Answer(response(status, body))
}

/// A status without a body.
pub(crate) fn bare(status: u16) -> Act {
    text(status, "")
}

/// An error in the words of a gateway.
pub(crate) fn error(status: u16, code: &str) -> Act {
    let body = json!({"Error": {"Code": code, "Message": "says the gateway"}});
    text(status, body.to_string())
}

/// Returns a response with one more header.
pub(crate) fn with_header(act: Act, name: &'static str, value: &str) -> Act {
    let Act::Answer(mut response) = act else {
        panic!("only answers have headers");
    };
    let value = HeaderValue::from_str(value).unwrap();
    response
        .headers_mut()
        .append(HeaderName::from_static(name), value);
    Act::Answer(response)
}

fn response(status: u16, body: impl Into<Bytes>) -> Response<Bytes> {
    let mut response = Response::new(body.into());
    *response.status_mut() = StatusCode::from_u16(status).unwrap();
    response
}
