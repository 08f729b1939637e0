//! Tests of routes that answer themselves.

use std::net::SocketAddr;

use proxy_model::compiled::RouteTarget;
use proxy_model::matching::Lookup;
use proxy_model::{CompileOptions, Snapshot};
use testkit::client::Connection;
use testkit::peers;
use testkit::time::eventually;

use super::super::{DIFFERS, LEFT_OUT};
use super::envoy::Request;
use super::round_trip::back;
use super::{bridged, validate};

/// Redirects and responses that Envoy has, too.
const REPLIES: &str = r#"{"Routes":{
    "secure":{"Match":{"Hosts":["plain.test"]},"Redirect":{"Scheme":"https","Status":308}},
    "named":{"Match":{"Hosts":["old.test","old.test:81"]},"Redirect":{"Scheme":"https","Host":"new.test:8443","Status":301}},
    "host":{"Match":{"Hosts":["host.test","host.test:81"]},"Redirect":{"Host":"new.test","Status":302}},
    "page":{"Match":{"Path":"/page"},"Redirect":{"Path":"/other page/","Status":303}},
    "moved":{"Match":{"Path":"/old/{**rest}"},"Redirect":{"Path":"/new/{**rest}"}},
    "parts":{"Match":{"Path":"/by/{id}/{**rest}"},"Redirect":{"Host":"[::1]","Path":"/items/{id}/of/{**rest}"}},
    "root":{"Match":{"Path":"/home"},"Redirect":{"Path":"/"}},
    "closed":{"Match":{"Path":"/closed"},"Respond":{"Status":503,"Body":"back at noon"}},
    "gone":{"Match":{"Path":"/gone"},"Respond":{"Status":410}},
    "text":{"Match":{"Path":"/text"},"Respond":{"Body":"as it is","Headers":{"Content-Type":"text/plain"}}}},
  "Clusters":{}}"#;

const REQUESTS: &[(&str, &str)] = &[
    ("plain.test", "/x?a=b"),
    ("old.test", "/x/y"),
    ("old.test:81", "/"),
    ("host.test:81", "/x?y"),
    ("o.test", "/page"),
    ("o.test:81", "/page?q=1&r"),
    ("o.test", "/old/a%20b/c?d=/old/"),
    ("o.test", "/old"),
    ("o.test", "/OLD/x/"),
    ("o.test", "/by/7/a/b"),
    ("o.test", "/by/a%2Fb"),
    ("o.test", "/home?x"),
    ("o.test", "/closed"),
    ("o.test", "/gone"),
    ("o.test", "/text"),
];

/// The status, the `Location` and the body that a snapshot answers with.
fn own(snapshot: &Snapshot, (host, target): (&str, &str)) -> (u16, String, String) {
    let request = Request::get(host, target);
    let Lookup::Matched(index) = snapshot.find(&request) else {
        return (404, String::new(), String::new());
    };
    let route = snapshot.route_at(index);
    match route.target() {
        RouteTarget::Redirect(redirect) => {
            let path = target.split('?').next().unwrap_or_default();
            let values = route.matcher().path().capture(path).unwrap_or_default();
            let location = redirect.location(&request, &values).unwrap();
            (redirect.status().as_u16(), location, String::new())
        }
        RouteTarget::Respond(fixed) => {
            let body = fixed.body().to_owned();
            (fixed.status().as_u16(), String::new(), body)
        }
        _ => (503, String::new(), String::new()),
    }
}

#[test]
fn a_gateway_reads_replies_that_carry_no_original() {
    let (snapshot, bridged) = bridged(REPLIES);
    let composed = back(&bridged);
    let (read, _) = Snapshot::compile(composed.config, &CompileOptions::default()).unwrap();
    for asked in REQUESTS {
        let path = asked.1.split('?').next().unwrap_or_default();
        let expected = match path {
            // Escapes, and values of single segments.
            path if path == "/page" || path.starts_with("/by/") => {
                (503, String::new(), String::new())
            }
            _ => own(&snapshot, *asked),
        };
        assert_eq!(own(&read, *asked), expected, "{asked:?}");
    }
}

#[tokio::test]
async fn a_real_envoy_answers_as_the_proxy_does() {
    let Some(envoy) = peers::find("envoy") else {
        return;
    };
    let (snapshot, bridged) = bridged(REPLIES);
    assert!(!bridged.problems.has_errors(), "{}", bridged.problems);
    let port = peers::free_port();
    let file = validate::write(&bridged, port);
    let mut command = envoy.command();
    command
        .args([
            "--use-dynamic-base-id",
            "--concurrency",
            "1",
            "-l",
            "warning",
            "-c",
        ])
        .arg(file.path());
    let process = peers::spawn(command);
    let address = SocketAddr::from(([127, 0, 0, 1], port));
    eventually("Envoy listens", async || {
        Connection::http1(address).await.is_ok()
    })
    .await;
    let mut client = Connection::http1(address).await.unwrap();
    for asked in REQUESTS {
        let request = client.request_for(asked.0, "GET", asked.1);
        let request = request.body(testkit::body::empty()).unwrap();
        let answer = client.send(request).await.unwrap();
        let location = answer.header("location").unwrap_or_default().to_owned();
        let answer = (answer.status.as_u16(), location, answer.text());
        assert_eq!(
            answer,
            own(&snapshot, *asked),
            "{asked:?}\n{}",
            process.output()
        );
    }
}

#[test]
fn replies_that_envoy_does_not_have_are_named() {
    for (reply, path, code, key) in [
        (
            r#""Redirect":{"Scheme":"https"}"#,
            "/x",
            DIFFERS,
            "Redirect/Scheme",
        ),
        (
            r#""Redirect":{"Path":"/{a}-{b}"}"#,
            "/{a}/{b}",
            LEFT_OUT,
            "Redirect/Path",
        ),
        (
            r#""Respond":{"Status":503,"Headers":{"Retry-After":"5"}}"#,
            "/x",
            LEFT_OUT,
            "Respond/Headers",
        ),
    ] {
        let json = format!(
            r#"{{"Routes":{{"r":{{"Match":{{"Path":"{path}"}},{reply}}}}},"Clusters":{{}}}}"#
        );
        let (_, bridged) = bridged(&json);
        let problems = bridged.problems.iter();
        let problems: Vec<_> = problems
            .map(|one| (one.pointer.as_str(), &*one.code))
            .collect();
        let place = format!("/Routes/r/{key}");
        assert_eq!(problems, [(&*place, code)], "{reply}");
    }
}
