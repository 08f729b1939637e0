use std::sync::Arc;

use http::{Request, Response};
use parking_lot::Mutex;
use testkit::body::{self, Body};
use testkit::origin::{Incoming, Origin};
use testkit::time::{eventually, guarded};
use tokio::sync::watch;
use tokio::time::timeout;

use super::*;

type Headers = Vec<(String, String)>;

/// The server's document, and the requests that it got.
#[derive(Clone)]
struct Server {
    document: watch::Sender<(u32, String)>,
    asked: Arc<Mutex<Vec<Headers>>>,
}

impl Server {
    fn start(text: &str) -> (Self, Origin) {
        let server = Self {
            document: watch::Sender::new((1, text.to_owned())),
            asked: Arc::default(),
        };
        let answering = server.clone();
        let origin = Origin::start(move |request| {
            let answering = answering.clone();
            async move { answering.answer(&request).await }
        });
        (server, origin)
    }

    fn say(&self, text: &str) {
        self.document.send_modify(|(version, document)| {
            *version += 1;
            text.clone_into(document);
        });
    }

    /// Responds with a tag for each version. A request that prefers to wait waits for another version.
    async fn answer(&self, request: &Request<Incoming>) -> Response<Body> {
        let header = |name: &str| {
            request
                .headers()
                .get(name)?
                .to_str()
                .ok()
                .map(str::to_owned)
        };
        let headers = request
            .headers()
            .keys()
            .map(|name| (name.to_string(), header(name.as_str()).unwrap_or_default()));
        self.asked.lock().push(headers.collect());
        let mut document = self.document.subscribe();
        let known = header("if-none-match");
        let is_known = |version: u32| known == Some(format!("\"{version}\""));
        if let Some(wait) =
            header("prefer").and_then(|wait| wait.strip_prefix("wait=")?.parse().ok())
        {
            let news = document.wait_for(|(version, _)| !is_known(*version));
            let _ = timeout(Duration::from_secs(wait), news).await;
        }
        let (version, text) = document.borrow().clone();
        let answer = Response::builder().header("etag", format!("\"{version}\""));
        match (is_known(version), text.as_str()) {
            (true, _) => answer.status(304).body(body::empty()),
            (false, "broken") => answer.status(500).body(body::empty()),
            (false, text) => answer.body(body::full(text.to_owned())),
        }
        .unwrap()
    }

    fn asked(&self) -> Vec<Headers> {
        self.asked.lock().clone()
    }
}

fn options(origin: &Origin, mode: RegistryMode) -> HttpRegistryOptions {
    HttpRegistryOptions {
        mode,
        ..HttpRegistryOptions::new(origin.url().parse().unwrap())
    }
}

fn names(parsed: &ParsedRegistry) -> Vec<String> {
    parsed
        .services
        .iter()
        .map(|service| service.name.to_string())
        .collect()
}

fn header(headers: &[(String, String)], name: &str) -> Option<String> {
    let found = headers.iter().find(|(known, _)| known == name);
    found.map(|(_, value)| value.clone())
}

#[tokio::test]
async fn a_registry_is_polled_with_its_tag() {
    let (server, origin) = Server::start("services: [{name: a}]");
    let mode = RegistryMode::Poll(Duration::from_millis(200));
    let mut registry = HttpRegistry::new(options(&origin, mode)).unwrap();
    assert_eq!(names(&registry.next().await.unwrap()), ["a"]);
    // The same content under another tag is no change, and the same tag is not sent again.
    server.say("services: [{name: a}]   ");
    let is_polled = eventually("it is polled with the other tag", async || {
        let last = server.asked().pop().unwrap();
        header(&last, "if-none-match").as_deref() == Some("\"2\"")
    });
    tokio::select! {
        next = registry.next() => panic!("it is no change: {:?}", next.map(|parsed| names(&parsed))),
        () = is_polled => {}
    }
    server.say("services: [{name: b}]");
    assert_eq!(names(&registry.next().await.unwrap()), ["b"]);
    assert!(
        server
            .asked()
            .iter()
            .all(|headers| header(headers, "prefer").is_none())
    );
}

#[tokio::test]
async fn a_request_that_waits_is_answered_when_there_is_news() {
    let (server, origin) = Server::start("services: [{name: a}]");
    let mode = RegistryMode::Blocking(Duration::from_secs(30));
    let mut registry = HttpRegistry::new(options(&origin, mode)).unwrap();
    registry.next().await.unwrap();
    let next = tokio::spawn(async move { registry.next().await });
    while server.asked().len() < 2 {
        tokio::task::yield_now().await;
    }
    server.say("services: [{name: a}, {name: b}]");
    let parsed = guarded("the news", next).await.unwrap().unwrap();
    assert_eq!(names(&parsed), ["a", "b"]);
    let asked = server.asked();
    assert_eq!(
        (header(&asked[0], "prefer"), asked.len()),
        (None, 2),
        "the first is answered at once"
    );
    assert_eq!(header(&asked[1], "prefer").as_deref(), Some("wait=30"));
}

#[tokio::test]
async fn errors_are_told_and_the_next_answer_is_news() {
    let (server, origin) = Server::start("broken");
    let mode = RegistryMode::Poll(Duration::from_millis(200));
    let mut registry = HttpRegistry::new(options(&origin, mode)).unwrap();
    assert!(
        registry
            .next()
            .await
            .unwrap_err()
            .to_string()
            .contains("500")
    );
    server.say("services: 5");
    assert!(
        registry
            .next()
            .await
            .unwrap_err()
            .to_string()
            .contains("services")
    );
    server.say("services: [{name: a}]");
    assert_eq!(names(&registry.next().await.unwrap()), ["a"]);
    server.say("broken");
    registry.next().await.unwrap_err();
    server.say("services: [{name: a}]");
    assert_eq!(names(&registry.next().await.unwrap()), ["a"]);
    origin.stop().await;
    assert!(registry.next().await.is_err());
}

#[tokio::test]
async fn a_token_is_read_for_each_request_and_never_shown() {
    let (server, origin) = Server::start("services: []");
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("token");
    std::fs::write(&path, "s3cret\n").unwrap();
    let mut url: url::Url = origin.url().parse().unwrap();
    url.set_query(Some("key=hidden"));
    let mut options = HttpRegistryOptions::new(url);
    options.mode = RegistryMode::Poll(Duration::from_millis(200));
    options.token_file = Some(path.clone());
    let mut registry = HttpRegistry::new(options).unwrap();
    registry.next().await.unwrap();
    let asked = server.asked();
    assert_eq!(
        header(&asked[0], "authorization").as_deref(),
        Some("Bearer s3cret")
    );
    std::fs::write(&path, "two\nlines").unwrap();
    let error = registry.next().await.unwrap_err().to_string();
    assert!(
        error.contains("token") && !error.contains("hidden") && !error.contains("lines"),
        "{error}"
    );
}

/// Independent of the time until the next poll, and although nothing has changed since.
#[tokio::test]
async fn it_is_asked_again_without_a_tag_and_at_once() {
    let (server, origin) = Server::start("services: [{name: a}]");
    for mode in [
        RegistryMode::Poll(Duration::from_secs(3600)),
        RegistryMode::Blocking(Duration::from_secs(3600)),
    ] {
        let mut registry = HttpRegistry::new(options(&origin, mode)).unwrap();
        registry.next().await.unwrap();
        let again = guarded("a response", registry.again());
        assert_eq!(names(&again.await.unwrap()), ["a"]);
        let last = server.asked().pop().unwrap();
        assert_eq!(header(&last, "if-none-match"), None);
        assert_eq!(header(&last, "prefer"), None);
    }
}
