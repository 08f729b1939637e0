use super::parse;
use crate::matching::RouteValues;

/// The path that is made of `a=1 b=2`, or `-`.
fn formatted(template: &str, values: &[(&str, &str)]) -> String {
    let values: RouteValues = values.iter().copied().collect();
    parse(template)
        .format(&values)
        .unwrap_or_else(|| "-".into())
}

#[test]
fn f16_f17_values_are_put_into_paths() {
    let values = [("a", "6"), ("b", "7"), ("c", "8")];
    assert_eq!(formatted("/{a}/{b}/{c}", &values), "/6/7/8");
    assert_eq!(formatted("/{a}/foo/{b}/{c}/{d}", &values), "/6/foo/7/8");
    let values = [("a", "abc"), ("b", "def"), ("remainder", "klm/nop/qrs")];
    assert_eq!(
        formatted("/{a}/{b}/{**remainder}", &values),
        "/abc/def/klm/nop/qrs"
    );
    assert_eq!(
        formatted("/{a}/{b}/{*remainder}", &values),
        "/abc/def/klm%2Fnop%2Fqrs"
    );
}

#[test]
fn missing_values_are_left_out_at_the_end_only() {
    for (template, values, expected) in [
        ("/", &[] as &[_], ""),
        ("/{a}", &[], ""),
        ("/{**a}", &[], ""),
        ("/a/{b}/c", &[], "-"),
        ("/a/{b}/c", &[("b", "")], "-"),
        ("/a/{b?}/{c?}", &[("c", "1")], "-"),
        ("/a/{b?}/{c?}", &[("b", "1")], "/a/1"),
        ("/{f}.{e?}", &[("f", "x")], "/x"),
        ("/{f}.{e?}", &[("f", "x"), ("e", "y")], "/x.y"),
        ("/{f}.{e}", &[("f", "x")], "-"),
        ("/{f}.{e}", &[("e", "y")], "-"),
        ("/a/{f}.{e?}/b", &[("f", "x")], "/a/x/b"),
        ("/v{n}", &[], "-"),
        // A default is written only if something follows.
        ("/a/{b=1}", &[("b", "1")], "/a"),
        ("/a/{b=1}", &[("b", "2")], "/a/2"),
        ("/a/{b=x}/c", &[("b", "X")], "/a/X/c"),
        ("/a/{b=1}/{c=2}", &[("b", "1"), ("c", "2")], "/a"),
        ("/a/{b=1}/{c=2}", &[("b", "1"), ("c", "3")], "/a/1/3"),
        ("/{b=1}/{c}", &[("b", "1"), ("c", "3")], "/1/3"),
        ("/a/{b=1}/{c=2}", &[("c", "3")], "-"),
        ("/x{b=1}", &[("b", "1")], "/x1"),
        ("/{b=1}x", &[("b", "1")], "/1x"),
        // Values that no parameter takes are dropped.
        ("/a", &[("b", "1")], "/a"),
    ] {
        assert_eq!(
            formatted(template, values),
            expected,
            "{template} {values:?}"
        );
    }
}

#[test]
fn paths_are_encoded() {
    assert_eq!(
        formatted("/ä b/{p}", &[("p", "c/d?e#f%g:@&=+")]),
        "/%C3%A4%20b/c%2Fd%3Fe%23f%25g:@&=+"
    );
    assert_eq!(formatted("/%20", &[]), "/%2520");
    assert_eq!(formatted("/{**p}", &[("p", "/a//b/")]), "/a//b/");
}

#[test]
fn captured_values_keep_their_escapes() {
    for (template, made, path, expected) in [
        ("/{a}", "/x/{a}", "/a%2Fb", "/x/a%2Fb"),
        ("/{a}", "/x/{a}", "/a%252Fb", "/x/a%252Fb"),
        ("/{a}", "/x/{a}", "/a%3Ab%zz", "/x/a%3Ab%25zz"),
        ("/o/{**r}", "/n/{**r}", "/o/a%20b/c%2Fd/", "/n/a%20b/c%2Fd/"),
        ("/o/{**r}", "/n/{*r}", "/o/a%20b/c", "/n/a%20b%2Fc"),
        ("/{a}.{b}", "/{b}/{a}", "/%C3%A4%20.b%2Ec", "/c/%C3%A4%20.b"),
        ("/{a}-{b}", "/{b}/{a}", "/%41-%2F", "/%2F/%41"),
        ("/{a}", "/{a}", "/a{b}", "/a%7Bb%7D"),
    ] {
        let values = parse(template).capture(path).unwrap();
        assert_eq!(
            parse(made).format(&values).as_deref(),
            Some(expected),
            "{path}"
        );
    }
}
