//! The calls of filters and their order.

use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use http::{HeaderMap, StatusCode};
use parking_lot::Mutex;

use super::*;
use crate::ForwardErrorKind;
use crate::connection::ConnectionInfo;
use crate::fixtures::snapshot;
use crate::head::{ErrorBodies, HeaderMutations};

type Calls = Arc<Mutex<Vec<String>>>;

/// Records its calls, and acts by its name.
struct Scripted(&'static str, Calls);

impl Filter for Scripted {
    fn on_request(&self, head: &mut RequestEdit<'_>, context: &FilterContext<'_>) -> Flow {
        let seen = format!("{}:{}{}", self.0, context.route.id(), context.cluster.id());
        self.1.lock().push(seen);
        head.append("x-seen", self.0).unwrap();
        match self.0 {
            "answers" => Reply::new(StatusCode::IM_A_TEAPOT).into(),
            "panics" => panic!("as asked"),
            _ => Flow::Continue,
        }
    }

    fn on_response(&self, head: &mut ResponseEdit<'_>, _: &FilterContext<'_>) {
        self.1.lock().push(format!("{} back", self.0));
        head.append("x-seen", self.0).unwrap();
        assert!(self.0 != "panics late", "as asked");
    }
}

/// Runs filters of these names. Returns the result, the result for the response, and the calls.
fn run(names: &[&'static str]) -> (FilterDecision, Result<(), ForwardErrorKind>, Vec<String>) {
    let config = snapshot(
        r#"{ "Routes": { "r": { "ClusterId": "c", "Match": { "Path": "/" } } }, "Clusters": { "c": {} } }"#,
    );
    let context = FilterContext::new(
        &config.routes()[0],
        &config.clusters()[0],
        ConnectionInfo::default(),
    );
    let calls = Calls::default();
    let filters = names.iter().map(|name| NamedFilter {
        name: Arc::from(*name),
        filter: Arc::new(Scripted(name, Arc::clone(&calls))),
    });
    let filters = Filters::new(filters.collect());
    let received = Received::new("GET / HTTP/1.1\r\nHost: h\r\n\r\n");
    let mut edits = HeaderMutations::default();
    let verdict = filters.on_request((0, None), &mut received.edit(&mut edits), &context);
    let mut passed = match &verdict {
        FilterDecision::Pass => filters.len(),
        FilterDecision::Reply(_, passed)
        | FilterDecision::Failed(_, passed)
        | FilterDecision::Wait(_, passed) => *passed,
    };
    let headers = HeaderMap::new();
    let mut edits = HeaderMutations::default();
    let received = ReceivedResponse::of_http(StatusCode::OK, &headers);
    let changes = (&mut edits, &mut ResponseWork::default());
    let mut cx = Context::from_waker(Waker::noop());
    let Poll::Ready(shown) =
        filters.poll_response(&mut cx, &mut passed, received, changes, &context)
    else {
        panic!("no filter waits");
    };
    let shown = shown.map_err(|error| error.kind());
    let calls = calls.lock().clone();
    (verdict, shown, calls)
}

#[test]
fn requests_pass_in_order_and_responses_in_the_opposite_one() {
    let (verdict, shown, calls) = run(&["a", "b", "c"]);
    assert!(matches!(verdict, FilterDecision::Pass) && shown.is_ok());
    assert_eq!(
        calls,
        ["a:rc", "b:rc", "c:rc", "c back", "b back", "a back"]
    );
}

#[test]
fn an_answer_ends_it_and_passes_those_before() {
    let (verdict, shown, calls) = run(&["a", "b", "answers", "c"]);
    assert!(matches!(verdict, FilterDecision::Reply(_, 2)) && shown.is_ok());
    assert_eq!(calls, ["a:rc", "b:rc", "answers:rc", "b back", "a back"]);
}

#[test]
fn a_panic_ends_one_request() {
    for _ in 0..2 {
        let (verdict, shown, calls) = run(&["a", "panics", "b"]);
        let FilterDecision::Failed(error, 1) = verdict else {
            panic!("it passed, replied or waits");
        };
        assert_eq!(error.kind(), ForwardErrorKind::Extension);
        assert_eq!(error.status(), StatusCode::INTERNAL_SERVER_ERROR);
        assert!(shown.is_ok());
        assert_eq!(calls, ["a:rc", "panics:rc", "a back"]);
    }
    let (_, shown, calls) = run(&["a", "panics late", "b"]);
    assert_eq!(shown, Err(ForwardErrorKind::Extension));
    assert_eq!(calls[3..], ["b back", "panics late back"]);
}

#[test]
fn replies_say_nothing_that_a_connection_lives_by() {
    let reply = Reply::new(StatusCode::UNAUTHORIZED)
        .with_header(http::header::WWW_AUTHENTICATE, "Basic".parse().unwrap())
        .with_header(http::header::CONTENT_LENGTH, 99.into())
        .with_header(http::header::CONNECTION, "close".parse().unwrap())
        .with_body("no");
    let response = reply.into_response(&ErrorBodies::default());
    assert_eq!(response.status(), StatusCode::UNAUTHORIZED);
    assert_eq!(response.headers().len(), 1);
    assert_eq!(*response.body(), "no");

    let none = Reply::new(StatusCode::NO_CONTENT).with_body("never");
    assert!(
        none.into_response(&ErrorBodies::default())
            .body()
            .is_empty()
    );
    let interim =
        Reply::new(StatusCode::SWITCHING_PROTOCOLS).into_response(&ErrorBodies::default());
    assert_eq!(interim.status(), StatusCode::INTERNAL_SERVER_ERROR);
}
