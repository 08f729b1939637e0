//! A table of what ASP.NET's `CorsService` and `CorsMiddleware` do.

use super::*;
use crate::tests::TestHead;

fn config(change: impl Fn(&mut CorsConfig)) -> Cors {
    let mut config = CorsConfig {
        origins: Some(vec!["https://app.example".to_owned()]),
        methods: Some(Vec::new()),
        headers: Some(Vec::new()),
        ..CorsConfig::default()
    };
    change(&mut config);
    Cors::new(&config)
}

fn texts(texts: &[&str]) -> Option<Vec<String>> {
    Some(texts.iter().map(|text| (*text).to_owned()).collect())
}

/// The answer to a preflight request for `PUT`, line by line.
fn preflight(cors: &Cors, origin: &str) -> Vec<String> {
    let headers = [
        ("origin", origin),
        ("access-control-request-method", "PUT"),
        ("access-control-request-headers", "x-a, x-b"),
    ];
    let mut head = TestHead::new("OPTIONS", "/", &headers);
    let answer = cors.check(&mut head).expect("a preflight is answered");
    assert_eq!(head.response, Vec::<String>::new());
    let response = answer.into_response();
    let mut lines = vec![response.status().as_str().to_owned()];
    let fields = response.headers().iter();
    lines.extend(fields.map(|(name, value)| format!("{name}: {}", value.to_str().unwrap())));
    lines
}

/// Returns the headers that a request of another kind adds to its response.
fn simple(cors: &Cors, headers: &[(&str, &str)]) -> Vec<String> {
    let mut head = TestHead::get("/", headers);
    assert!(
        cors.check(&mut head).is_none(),
        "only preflights are answered"
    );
    // Whatever the destination says about it goes.
    let (removed, said) = head.response.split_at(SAID.len());
    assert!(
        removed
            .iter()
            .all(|line| line.starts_with("-access-control-"))
    );
    said.to_vec()
}

/// Headers of destinations permit no more than the policy, for allowed and for other origins.
#[test]
fn the_destination_permits_nothing_beside_the_policy() {
    let allow = "access-control-allow";
    for (cors, origin, expected) in [
        (Cors::default(), "https://app.example", vec![]),
        (config(|_| {}), "https://evil.example", vec![]),
        (
            config(|_| {}),
            "https://app.example",
            vec![format!("{allow}-origin: https://app.example")],
        ),
    ] {
        let mut head = TestHead::get("/", &[("origin", origin)]);
        assert!(cors.check(&mut head).is_none());
        let mut response = http::HeaderMap::new();
        for (name, value) in [
            ("access-control-allow-origin", "*"),
            ("access-control-allow-credentials", "true"),
            ("access-control-expose-headers", "x-secret"),
        ] {
            response.insert(name, HeaderValue::from_static(value));
        }
        head.change_response(&mut response);
        let lines = response.iter();
        let lines: Vec<_> = lines
            .map(|(name, value)| format!("{name}: {}", value.to_str().unwrap()))
            .collect();
        assert_eq!(lines, expected, "{origin}");
    }
}

#[test]
fn preflights_are_answered_with_204_and_what_is_allowed() {
    let origin = "https://app.example";
    let allow = "access-control-allow";
    let listed = config(|config| {
        config.methods = texts(&["PUT", "PATCH"]);
        config.headers = texts(&["X-A", "X-B"]);
        config.credentials = true;
        config.max_age = Some(proxy_model::TimeSpan::from_secs(600));
        config.exposed_headers = vec!["X-C".to_owned()];
    });
    assert_eq!(
        preflight(&listed, origin),
        [
            "204".to_owned(),
            format!("{allow}-origin: {origin}"),
            format!("{allow}-credentials: true"),
            format!("{allow}-headers: X-A,X-B"),
            format!("{allow}-methods: PUT,PATCH"),
            "access-control-max-age: 600".to_owned(),
        ]
    );
    // Whatever is asked for is allowed.
    let any = config(|config| {
        config.origins = None;
        config.methods = None;
        config.headers = None;
    });
    assert_eq!(
        preflight(&any, "https://elsewhere.example"),
        [
            "204".to_owned(),
            format!("{allow}-origin: *"),
            format!("{allow}-headers: x-a,x-b"),
            format!("{allow}-methods: PUT"),
        ]
    );
    // Lists without an entry are not sent.
    let simple = config(|_| {});
    assert_eq!(
        preflight(&simple, origin),
        ["204".to_owned(), format!("{allow}-origin: {origin}")]
    );
    // Who may not is told nothing, with the same status.
    assert_eq!(preflight(&listed, "https://evil.example"), ["204"]);
    assert_eq!(preflight(&Cors::default(), origin), ["204"], "`Disable`");
}

#[test]
fn other_requests_are_forwarded_and_their_responses_say_who_may_read() {
    let origin = ("origin", "https://app.example");
    let exposed = config(|config| {
        config.credentials = true;
        config.exposed_headers = vec!["X-C".to_owned(), "X-D".to_owned()];
        config.methods = texts(&["PUT"]);
        config.max_age = Some(proxy_model::TimeSpan::from_secs(600));
    });
    assert_eq!(
        simple(&exposed, &[origin]),
        [
            "=access-control-allow-origin: https://app.example",
            "=access-control-allow-credentials: true",
            "=access-control-expose-headers: X-C,X-D",
        ]
    );
    // With several origins the response depends on the request.
    let several = config(|config| {
        config.origins = texts(&["https://app.example", "https://b.example"]);
    });
    assert_eq!(
        simple(&several, &[origin]),
        [
            "=access-control-allow-origin: https://app.example",
            "+vary: Origin"
        ]
    );
    let any = config(|config| config.origins = None);
    assert_eq!(simple(&any, &[origin]), ["=access-control-allow-origin: *"]);

    let nothing: [&str; 0] = [];
    assert_eq!(
        simple(&exposed, &[("origin", "https://evil.example")]),
        nothing
    );
    assert_eq!(simple(&exposed, &[]), nothing, "it is of no other origin");
    assert_eq!(simple(&Cors::default(), &[origin]), nothing, "`Disable`");
    // A GET that asks as a preflight does is none.
    let asks = ("access-control-request-method", "PUT");
    assert_eq!(
        simple(&any, &[origin, asks]),
        ["=access-control-allow-origin: *"]
    );
    // Nor is an OPTIONS without the method that it asks for.
    let mut head = TestHead::new("OPTIONS", "/", &[origin]);
    assert!(any.check(&mut head).is_none());
}

#[test]
fn origins_are_compared_as_browsers_send_them() {
    let exact = |allowed: &str| {
        let allowed = normalized(allowed).unwrap();
        config(move |config| config.origins = Some(vec![allowed.clone()]))
    };
    let subdomains = |allowed: &str| {
        let allowed = normalized(allowed).unwrap();
        config(move |config| {
            config.origins = Some(vec![allowed.clone()]);
            config.wildcard_subdomains = true;
        })
    };
    for (cors, origin, expected) in [
        (
            exact("https://App.Example:443/"),
            "https://app.example",
            true,
        ),
        (exact("https://app.example"), "https://APP.example", false),
        (exact("https://app.example"), "http://app.example", false),
        (
            exact("https://app.example"),
            "https://app.example:8443",
            false,
        ),
        (
            exact("https://app.example"),
            "https://app.example.evil.example",
            false,
        ),
        (exact("https://app.example"), "null", false),
        (
            exact("http://localhost:3000"),
            "http://localhost:3000",
            true,
        ),
        (exact("http://[::1]:3000"), "http://[::1]:3000", true),
        (exact("https://*.a.example"), "https://b.a.example", false),
        (
            subdomains("https://*.a.example"),
            "https://b.a.example",
            true,
        ),
        (
            subdomains("https://*.a.example"),
            "https://c.b.a.example",
            true,
        ),
        (
            subdomains("https://*.a.example"),
            "https://a.example",
            false,
        ),
        (
            subdomains("https://*.a.example"),
            "http://b.a.example",
            false,
        ),
        (
            subdomains("https://*.a.example"),
            "https://b.a.example:8443",
            false,
        ),
        (
            subdomains("https://*.a.example:8443"),
            "https://b.a.example:8443",
            true,
        ),
        (
            subdomains("https://*.a.example"),
            "https://evila.example",
            false,
        ),
        (
            subdomains("https://*.a.example"),
            "https://.a.example",
            false,
        ),
        (
            subdomains("https://*.a.example"),
            "https://evil.example/.a.example",
            false,
        ),
        (
            subdomains("https://*.a.example"),
            "https://x@b.a.example",
            false,
        ),
        (
            subdomains("https://*.a.example"),
            "https://evil.example:1.a.example",
            false,
        ),
    ] {
        let is_allowed = !simple(&cors, &[("origin", origin)]).is_empty();
        assert_eq!(is_allowed, expected, "{origin} with {cors:?}");
    }
    for text in [
        "app.example",
        "https://",
        "https://a.example/path",
        "https://u@a.example",
        "https://*a.example",
        "https://a.*.example",
        "1s://a.example",
        "https://a.example:99999",
        "https://a b.example",
    ] {
        assert_eq!(normalized(text), Err(OriginError::Form), "{text}");
    }
}

/// `CorsService.EvaluatePolicy` and `PopulateResult`, where they are easily read otherwise.
#[test]
fn odd_requests_get_what_asp_net_gives_them() {
    let any = config(|config| {
        config.origins = None;
        config.methods = None;
        config.headers = None;
    });
    let allow = "access-control-allow";
    let (origin, method) = (
        ("origin", "https://a.example"),
        "access-control-request-method",
    );
    let asked = "access-control-request-headers";
    for (method, headers, expected) in [
        // Without an origin it is no matter of CORS.
        ("OPTIONS", vec![(method, "PUT")], None),
        // OPTIONS without a method to ask for is a request as others.
        ("OPTIONS", vec![origin], None),
        ("GET", vec![origin, (method, "PUT")], None),
        // `StringValues.IsNullOrEmpty`.
        (
            "OPTIONS",
            vec![("origin", ""), (method, "PUT")],
            Some(vec![]),
        ),
        (
            "options",
            vec![
                origin,
                (method, "PUT"),
                (asked, " x-a ,,x-b"),
                (asked, "x-c"),
            ],
            Some(vec![
                format!("{allow}-origin: *"),
                format!("{allow}-headers: x-a,x-b,x-c"),
                format!("{allow}-methods: PUT"),
            ]),
        ),
        (
            "OPTIONS",
            vec![origin, (method, ""), (asked, "")],
            Some(vec![format!("{allow}-origin: *")]),
        ),
        // Two lines are the text `a,b`, which is no origin.
        (
            "OPTIONS",
            vec![origin, origin, (method, "PUT")],
            Some(vec![]),
        ),
    ] {
        let mut head = TestHead::new(method, "/", &headers);
        let answer = any.check(&mut head).map(|answer| {
            let response = answer.into_response();
            assert_eq!(response.status(), 204, "{headers:?}");
            let fields = response.headers().iter();
            fields
                .map(|(name, value)| format!("{name}: {}", value.to_str().unwrap()))
                .collect::<Vec<_>>()
        });
        assert_eq!(answer, expected, "{method} {headers:?}");
    }
    // Of other requests as well.
    for headers in [vec![("origin", "")], vec![origin, origin]] {
        assert_eq!(simple(&any, &headers), Vec::<String>::new(), "{headers:?}");
    }
}
