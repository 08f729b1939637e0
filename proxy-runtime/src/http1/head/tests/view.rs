use proxy_model::RequestHead;

use super::*;

#[test]
fn the_view_says_what_the_client_said() {
    for (bytes, method, path, query, authority) in [
        (
            line("GET /a/b?c HTTP/1.1"),
            "GET",
            "/a/b",
            Some("c"),
            "t.example",
        ),
        (
            line("propfind / HTTP/1.1"),
            "propfind",
            "/",
            None,
            "t.example",
        ),
        (
            line("GET http://o.example:81?c HTTP/1.1"),
            "GET",
            "/",
            Some("c"),
            "o.example:81",
        ),
        (
            line("OPTIONS * HTTP/1.1"),
            "OPTIONS",
            "*",
            None,
            "t.example",
        ),
        (
            line("OPTIONS http://o.example HTTP/1.1"),
            "OPTIONS",
            "*",
            None,
            "o.example",
        ),
        (b"GET / HTTP/1.0\r\n\r\n".to_vec(), "GET", "/", None, ""),
    ] {
        let (head, table) = request(&bytes).unwrap();
        let view = RequestView::new(&bytes, &head, &table, true);
        assert_eq!(view.method(), method);
        assert_eq!(view.path(), path);
        let is_said = view
            .plain_path()
            .is_none_or(|plain| plain == path.as_bytes());
        assert!(is_said, "{path}");
        assert_eq!(view.query(), query);
        assert_eq!(view.authority(), authority);
        assert!(view.is_https());
        assert!(!RequestView::new(&bytes, &head, &table, false).is_https());
    }
}

fn values(bytes: &[u8], name: &str, most: usize) -> Vec<String> {
    let (head, table) = request(bytes).unwrap();
    let mut values = Vec::new();
    RequestView::new(bytes, &head, &table, false).for_each_header(name, &mut |value| {
        values.push(String::from_utf8(value.to_vec()).unwrap());
        values.len() < most
    });
    values
}

#[test]
fn values_come_in_order_until_told_to_stop() {
    let bytes = get("X-A: 1\r\nX-B: no\r\nx-a: 2\r\nX-A: 3\r\n\r\n");
    assert_eq!(values(&bytes, "x-a", 9), ["1", "2", "3"]);
    assert_eq!(values(&bytes, "x-a", 2), ["1", "2"]);
    assert_eq!(values(&bytes, "x-c", 9), Vec::<String>::new());
    assert_eq!(values(&bytes, "host", 9), ["t.example"]);
    let absolute = line("GET http://o.example/ HTTP/1.1");
    assert_eq!(values(&absolute, "host", 9), ["o.example"]);
}

#[test]
fn a_path_is_plain_if_there_is_nothing_to_decode() {
    for (target, is_plain) in [
        ("/a-b_c/7", true),
        ("http://o.example/a", true),
        ("/a%2fb", false),
        ("http://o.example", false),
        ("*", false),
    ] {
        let bytes = line(format!("OPTIONS {target} HTTP/1.1"));
        let (head, table) = request(&bytes).unwrap();
        let view = RequestView::new(&bytes, &head, &table, true);
        assert_eq!(view.plain_path().is_some(), is_plain, "{target}");
    }
}
