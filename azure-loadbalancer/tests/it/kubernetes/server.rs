//! A scripted API server: one response after the other.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::future::{Ready, ready};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use azure_loadbalancer::sources::kubernetes::KubernetesClient;
use bytes::Bytes;
use http::request::Parts;
use http::{Method, Request, Response};
use http_body::{Body, Frame};
use parking_lot::Mutex;
use tokio::sync::mpsc;
use tokio::time::Instant;

/// A streamed body.
#[derive(Debug)]
pub(crate) struct Bits(mpsc::UnboundedReceiver<Bytes>);

impl Body for Bits {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        self.0
            .poll_recv(context)
            .map(|bytes| bytes.map(|bytes| Ok(Frame::data(bytes))))
    }
}

/// The writer of a streamed body, which ends when this is dropped.
pub(crate) struct Stream(mpsc::UnboundedSender<Bytes>);

impl Stream {
    pub(crate) fn send(&self, text: &str) {
        // The client may have gone.
        let _ = self.0.send(Bytes::copy_from_slice(text.as_bytes()));
    }
}

#[derive(Clone)]
pub(crate) struct Server {
    state: Arc<Mutex<State>>,
    began: Instant,
}

#[derive(Default)]
struct State {
    answers: VecDeque<Response<Bits>>,
    /// The responses to patches. Without one, patches succeed.
    to_patches: VecDeque<(u16, String)>,
    patches: Vec<(String, Bytes)>,
    asked: Vec<(Duration, Parts, Bytes)>,
}

impl Default for Server {
    fn default() -> Self {
        Self {
            state: Arc::default(),
            began: Instant::now(),
        }
    }
}

impl Server {
    pub(crate) fn client(&self) -> KubernetesClient<Self> {
        KubernetesClient::new(self.clone(), "https://kubernetes.test").unwrap()
    }

    /// Adds a complete response.
    pub(crate) fn answer(&self, status: u16, body: &str) {
        self.next(status).send(body);
    }

    /// Adds a streamed response.
    pub(crate) fn stream(&self) -> Stream {
        self.next(200)
    }

    fn next(&self, status: u16) -> Stream {
        let (sender, receiver) = mpsc::unbounded_channel();
        let response = Response::builder()
            .status(status)
            .body(Bits(receiver))
            .unwrap();
        self.state.lock().answers.push_back(response);
        Stream(sender)
    }

    /// Adds a response to a patch. These are separate from the other responses.
    pub(crate) fn answer_patch(&self, status: u16, body: &str) {
        let mut state = self.state.lock();
        state.to_patches.push_back((status, body.to_owned()));
    }

    /// Takes the patches since the last call: paths and bodies.
    pub(crate) fn patches(&self) -> Vec<(String, Bytes)> {
        std::mem::take(&mut self.state.lock().patches)
    }

    /// Returns the requests: methods and targets.
    pub(crate) fn asked(&self) -> Vec<String> {
        let state = self.state.lock();
        let shown = state.asked.iter().map(|(_, request, _)| {
            format!(
                "{} {}",
                request.method,
                request.uri.path_and_query().unwrap()
            )
        });
        shown.collect()
    }

    pub(crate) fn times(&self) -> Vec<Duration> {
        self.state
            .lock()
            .asked
            .iter()
            .map(|(at, _, _)| *at)
            .collect()
    }

    pub(crate) fn last_request(&self) -> (Parts, Bytes) {
        let (_, request, body) = self.state.lock().asked.pop().unwrap();
        (request, body)
    }
}

impl tower_service::Service<Request<Bytes>> for Server {
    type Response = Response<Bits>;
    type Error = std::io::Error;
    type Future = Ready<Result<Response<Bits>, std::io::Error>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Bytes>) -> Self::Future {
        let mut state = self.state.lock();
        let (parts, body) = request.into_parts();
        // Events are written by the same requests, and get the same responses.
        if parts.method == Method::PATCH || parts.method == Method::POST {
            let patch = (parts.uri.path().to_owned(), body.clone());
            state.patches.push(patch);
            if state.answers.is_empty() || !state.to_patches.is_empty() {
                let done = (200, "{}".to_owned());
                let (status, text) = state.to_patches.pop_front().unwrap_or(done);
                let (sender, receiver) = mpsc::unbounded_channel();
                sender.send(Bytes::from(text)).unwrap();
                let response = Response::builder().status(status);
                return ready(Ok(response.body(Bits(receiver)).unwrap()));
            }
        }
        state.asked.push((self.began.elapsed(), parts, body));
        ready(
            state
                .answers
                .pop_front()
                .ok_or_else(|| std::io::Error::other("nothing more to say")),
        )
    }
}

/// An error as the API server writes it.
pub(crate) fn error(code: u16, message: &str) -> String {
    serde_json::json!({ "kind": "Status", "code": code, "message": message }).to_string()
}
