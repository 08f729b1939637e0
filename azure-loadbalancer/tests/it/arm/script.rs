//! A scripted resource manager: one response after the other.

use std::collections::VecDeque;
use std::future::{Ready, ready};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use azure_loadbalancer::arm::{ArmClient, ArmClientBuilder, TowerTransport};
use azure_loadbalancer::resources::ArmId;
use bytes::Bytes;
use http::{Request, Response};
use parking_lot::Mutex;
use tokio::time::Instant;
use tower_service::Service;

/// A request, and its time.
#[derive(Debug)]
pub(crate) struct Asked {
    pub(crate) at: Duration,
    pub(crate) request: Request<Bytes>,
}

impl Asked {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.request.headers().get(name)?.to_str().ok()
    }
}

#[derive(Clone)]
pub(crate) struct Script {
    state: Arc<Mutex<State>>,
    began: Instant,
}

#[derive(Default)]
struct State {
    answers: VecDeque<Option<Response<Bytes>>>,
    asked: Vec<Asked>,
}

/// An answer with headers and a body.
pub(crate) fn answer(status: u16, headers: &[(&str, &str)], body: &str) -> Option<Response<Bytes>> {
    let mut response = Response::builder().status(status);
    for (name, value) in headers {
        response = response.header(*name, *value);
    }
    Some(
        response
            .body(Bytes::copy_from_slice(body.as_bytes()))
            .unwrap(),
    )
}

impl Script {
    /// Creates a script of these responses. `None` closes the connection.
    pub(crate) fn new(answers: Vec<Option<Response<Bytes>>>) -> Self {
        let state = State {
            answers: answers.into(),
            asked: Vec::new(),
        };
        Self {
            state: Arc::new(Mutex::new(state)),
            began: Instant::now(),
        }
    }

    pub(crate) fn builder(&self) -> ArmClientBuilder {
        ArmClient::builder(TowerTransport::new(self.clone())).endpoint("https://arm.test")
    }

    pub(crate) fn client(&self) -> ArmClient {
        self.builder().build().unwrap()
    }

    /// Takes the requests since the last call.
    pub(crate) fn asked(&self) -> Vec<Asked> {
        std::mem::take(&mut self.state.lock().asked)
    }

    /// Returns the times of the requests, in seconds.
    pub(crate) fn times(&self) -> Vec<u64> {
        self.asked()
            .iter()
            .map(|asked| asked.at.as_secs())
            .collect()
    }
}

impl Service<Request<Bytes>> for Script {
    type Response = Response<Bytes>;
    type Error = std::io::Error;
    type Future = Ready<Result<Response<Bytes>, std::io::Error>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Bytes>) -> Self::Future {
        let mut state = self.state.lock();
        state.asked.push(Asked {
            at: self.began.elapsed(),
            request,
        });
        let answer = state.answers.pop_front().expect("the script has an answer");
        ready(answer.ok_or_else(|| std::io::Error::other("the connection ended")))
    }
}

pub(crate) fn lb() -> ArmId {
    ArmId::network("s", "rg", "loadBalancers", "lb")
}
