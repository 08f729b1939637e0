//! Retries of requests whose destination fails, on each forwarding path.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use proxy_runtime::Proxy;
use proxy_runtime::proxy_model::config::ProxyConfig;
use proxy_runtime::proxy_model::{CompileOptions, Snapshot};
use proxy_runtime::server::ServerHandle;
use serde_json::{Value, json};
use testkit::body;
use testkit::client::{Answer, Connection};
use testkit::faults::RefusingPort;
use testkit::raw::RawOrigin;
use testkit::time::eventually;

use crate::server::ways::{as_bytes, over_types};

/// A forwarding path: the client's version, the destination's version, and the settings that select
/// the path.
#[derive(Clone, Copy, Debug)]
struct Way {
    name: &'static str,
    is_http2: bool,
    is_disguised: bool,
    transforms: &'static str,
}

const WAYS: &[Way] = &[
    Way {
        name: "bytes",
        is_http2: false,
        is_disguised: false,
        transforms: "[]",
    },
    #[cfg(feature = "http2")]
    Way {
        name: "streams",
        is_http2: true,
        is_disguised: false,
        transforms: "[]",
    },
    Way {
        name: "types",
        is_http2: false,
        is_disguised: true,
        transforms: "[]",
    },
    // An operation that bytes do not support.
    Way {
        name: "any",
        is_http2: false,
        is_disguised: true,
        transforms: r#"[{"ResponseTrailer":"x-trailer","Set":"1"}]"#,
    },
];

impl Way {
    /// A proxy that sends everything to the first of these addresses that accepts it.
    fn proxy(&self, addresses: &[String], cluster: Value) -> Proxy {
        let destinations: serde_json::Map<String, Value> = addresses
            .iter()
            .enumerate()
            .map(|(i, address)| (format!("d{i}"), json!({ "Address": address })))
            .collect();
        let mut cluster = cluster;
        cluster["LoadBalancingPolicy"] = json!("FirstAlphabetical");
        cluster["Destinations"] = Value::Object(destinations);
        let transforms: Value = serde_json::from_str(self.transforms).unwrap();
        let config = json!({
            "Routes": { "r": { "ClusterId": "c", "Match": { "Path": "/{**rest}" }, "Transforms": transforms } },
            "Clusters": { "c": cluster },
        });
        let config = ProxyConfig::from_json(&config.to_string()).unwrap();
        let (snapshot, _) = Snapshot::compile(config, &CompileOptions::default()).unwrap();
        let (proxy, driver) = Proxy::builder()
            .snapshot(Arc::new(snapshot))
            .build()
            .unwrap();
        tokio::spawn(driver);
        proxy
    }

    async fn client(&self, proxy: &Proxy) -> (ServerHandle, Connection) {
        let server = match self.is_disguised {
            true => over_types(proxy),
            false => as_bytes(proxy),
        };
        let address = server.local_addrs()[0];
        let client = match self.is_http2 {
            true => Connection::http2(address).await,
            false => Connection::http1(address).await,
        };
        (server, client.unwrap())
    }
}

async fn ask(client: &mut Connection, method: &str, content: &'static str) -> Answer {
    let request = client.request(method, "/a/b?q=1");
    let request = match content {
        "" => request.body(body::empty()),
        content => request.body(body::full(content)),
    };
    client.send(request.unwrap()).await.unwrap()
}

fn read_head(stream: &mut TcpStream) -> bool {
    let mut bytes = Vec::new();
    while !bytes.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        match stream.read(&mut byte) {
            Ok(1..) => bytes.push(byte[0]),
            _ => return false,
        }
    }
    true
}

/// A destination that serves `answers` requests over its first connection, and dies when it has
/// read the next one, or, if `between`, before the next one.
fn dying(answers: usize, between: bool) -> (String, thread::JoinHandle<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let thread = thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        for _ in 0..answers {
            assert!(read_head(&mut stream));
            stream
                .write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\ndying")
                .unwrap();
        }
        if !between {
            assert!(read_head(&mut stream));
        }
        // In this order: a client that sees the end of the connection finds the port closed.
        drop(listener);
        drop(stream);
    });
    (url, thread)
}

/// A destination that responds with the request line.
fn telling() -> RawOrigin {
    RawOrigin::script(|mut connection| async move {
        while let Ok((head, content)) = connection.read_whole_request().await {
            let host = head.header("host").unwrap_or_default();
            let content = String::from_utf8_lossy(&content);
            let text = format!("{} {} {host} {content}", head.method, head.target);
            let length = text.len();
            let answer = format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n{text}");
            connection.write_all(answer).await?;
        }
        Ok(())
    })
}

/// The request may have been processed before the destination died, so only idempotent ones go to
/// another destination, with that one's path and host.
#[tokio::test]
async fn a_repeatable_request_in_flight_at_a_destination_that_dies_goes_to_another() {
    for way in WAYS {
        for (method, content, answers, is_repeated) in [
            ("GET", "", 0, true),
            ("GET", "", 1, true),
            ("DELETE", "", 1, true),
            ("PUT", "content", 1, false),
            ("POST", "", 0, false),
            ("POST", "content", 1, false),
        ] {
            let other = telling();
            let (url, thread) = dying(answers, false);
            let addresses = [url, format!("{}/base/", other.url())];
            let proxy = way.proxy(&addresses, json!({}));
            let (_server, mut client) = way.client(&proxy).await;
            for _ in 0..answers {
                assert_eq!(ask(&mut client, "GET", "").await.text(), "dying");
            }
            let answer = ask(&mut client, method, content).await;
            thread.join().unwrap();
            let case = format!("{} {method} {content:?} after {answers}", way.name);
            match is_repeated {
                true => {
                    let host = other.addr();
                    let expected = format!("{method} /base/a/b?q=1 {host} {content}");
                    assert_eq!(answer.text(), expected, "{case}");
                }
                false => assert_eq!(answer.status, 502, "{case}"),
            }
            assert_eq!(other.traffic().requests(), u64::from(is_repeated), "{case}");
            // A request is counted after its response was written.
            eventually("it is counted", async || {
                let errors = &proxy.clusters()[0].destinations[0].errors;
                errors.values().sum::<u64>() == 1
            })
            .await;
        }
    }
}

/// No destination has processed the request, so another one gets it, whatever its method.
#[tokio::test]
async fn a_destination_that_died_between_two_requests_fails_neither() {
    for way in WAYS {
        for (method, content) in [("GET", ""), ("POST", ""), ("POST", "content")] {
            let other = telling();
            let (url, thread) = dying(1, true);
            let proxy = way.proxy(&[url, other.url()], json!({}));
            let (_server, mut client) = way.client(&proxy).await;
            assert_eq!(ask(&mut client, "GET", "").await.text(), "dying");
            thread.join().unwrap();
            let answer = ask(&mut client, method, content).await;
            let expected = format!("{method} /a/b?q=1 {} {content}", other.addr());
            assert_eq!(answer.text(), expected, "{} {method} {content:?}", way.name);
        }
    }
}

/// The method that is sent decides whether a request is repeated, not the client's. A `Host` from the
/// path stays as it is.
#[tokio::test]
async fn the_method_that_a_route_sends_decides_what_is_repeated() {
    let transforms = r#"[
        { "HttpMethodChange": "GET", "Set": "POST" },
        { "HttpMethodChange": "PATCH", "Set": "PUT" },
        { "RequestHeaderRouteValue": "Host", "Set": "rest" }
    ]"#;
    for way in WAYS {
        let way = Way { transforms, ..*way };
        for (method, expected) in [
            ("GET", None),
            ("PATCH", Some("PUT /base/named.example named.example ")),
        ] {
            let other = telling();
            let (url, thread) = dying(0, false);
            let addresses = [url, format!("{}/base/", other.url())];
            let proxy = way.proxy(&addresses, json!({}));
            let (_server, mut client) = way.client(&proxy).await;
            let request = client.request(method, "/named.example");
            let answer = client.send(request.body(body::empty()).unwrap()).await;
            let answer = answer.unwrap();
            thread.join().unwrap();
            match expected {
                Some(text) => assert_eq!(answer.text(), text, "{} {method}", way.name),
                None => assert_eq!(answer.status, 502, "{} {method}", way.name),
            }
        }
    }
}

/// The client gets an error at once, and three destinations are tried.
#[tokio::test]
async fn destinations_that_all_reject_cost_no_time() {
    let h2c = json!({ "HttpRequest": { "Version": "2", "VersionPolicy": "RequestVersionExact" } });
    let few = json!({ "HttpClient": { "MaxConnectionsPerServer": 1 } });
    for way in WAYS {
        for cluster in [json!({}), few.clone(), h2c.clone()] {
            if cfg!(not(feature = "http2")) && cluster == h2c {
                continue;
            }
            let ports: Vec<_> = (0..5).map(|_| RefusingPort::new()).collect();
            let addresses: Vec<_> = ports.iter().map(RefusingPort::url).collect();
            let proxy = way.proxy(&addresses, cluster.clone());
            let (_server, mut client) = way.client(&proxy).await;
            let mut fastest = Duration::MAX;
            for (method, content) in [("GET", ""), ("POST", "content")] {
                let begun = Instant::now();
                let answer = ask(&mut client, method, content).await;
                let took = begun.elapsed();
                let case = format!("{} {method} {cluster} {took:?}", way.name);
                assert_eq!(answer.status, 502, "{case}");
                // No attempt waits for its connect timeout, which is 15 s.
                assert!(took < Duration::from_secs(14), "{case}");
                fastest = fastest.min(took);
            }
            // Nor does anything wait between attempts. A busy machine may delay one of them.
            assert!(
                fastest < Duration::from_secs(2),
                "{}: {fastest:?}",
                way.name
            );
            let destinations = &proxy.clusters()[0].destinations;
            let asked: Vec<_> = destinations.iter().map(|d| d.connect_failures).collect();
            assert_eq!(asked, [2, 2, 2, 0, 0], "{} {cluster}", way.name);
        }
    }
}
