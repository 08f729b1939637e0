use super::{MAX_SEGMENTS, PathTemplate, RouteValues, TemplateErrorKind as Kind};

fn parse(text: &str) -> PathTemplate {
    PathTemplate::parse(text).unwrap_or_else(|e| panic!("{text}: {e}"))
}

fn error(text: &str) -> super::TemplateError {
    PathTemplate::parse(text).expect_err(text)
}

/// `a=1 b=2`, or `-` if the path does not match.
fn captured(template: &str, path: &str) -> String {
    match parse(template).capture(path) {
        None => "-".into(),
        Some(values) => values
            .iter()
            .map(|(name, value)| format!("{name}={value}"))
            .collect::<Vec<_>>()
            .join(" "),
    }
}

#[test]
fn d08_valid_templates() {
    for text in [
        "",
        "/",
        "~/",
        "~/a",
        "a",
        "/a/",
        "/a/**",
        "/a b",
        "/{a}{{b}}",
        "{{a}}",
        "/{a}/{b}",
        "/{a?}",
        "/{a=1}",
        "/{a=}",
        "/{a:int=1}",
        "/{*a}",
        "/{**a}",
        "/{**a=b/c}",
        "/{a}.{b}",
        "/{a}.{b?}",
        "/v{a}-x",
        "/.{a?}",
        "/{a:}",
        "/{a:int:min(1):}",
        "/{ a }",
        "/{a?}/b",
        "/{a?}/{b?}",
        "/{:a}",
        "/{=a}",
        "/{a:regex(^\\d{{3}}-[:=]/(x)?$)}",
        "/{a:regex(a:b):int}",
        "/{a:REGEX((a:b):c)=d}",
        "/{a=b:c}",
        "/{a=b(c}",
        "/%20",
    ] {
        assert_eq!(parse(text).to_string(), text);
    }
}

#[test]
fn d09_invalid_templates_are_refused_where_they_are_wrong() {
    for (text, offset, message) in [
        ("/{***a}", 1, "the parameter name `*a` contains `*`"),
        ("/{", 1, "`{` without a `}`"),
        ("/}", 1, "`}` without a `{`"),
        ("/{ab/c}", 1, "the parameter name `ab/c` contains `/`"),
        ("/a/{b", 3, "`{` without a `}`"),
        ("/a/{b}}", 3, "`{` without a `}`"),
        ("/a}b", 2, "`}` without a `{`"),
        ("/{a{b}", 3, "`{` inside a parameter"),
        ("/{}", 1, "a parameter without a name"),
        ("/{*}", 1, "a parameter without a name"),
        ("/{?}", 1, "a parameter without a name"),
        ("//a", 1, "an empty segment"),
        ("/a//b", 3, "an empty segment"),
        ("a//", 2, "an empty segment"),
        ("~a", 0, "`~` that is not followed by `/`"),
        ("/a?b", 2, "`?` outside of a parameter"),
        ("/{a}/{A}", 5, "two parameters are called `A`"),
        ("/{*a}/b", 1, "something follows the catch-all `a`"),
        (
            "/a{*b}",
            2,
            "the catch-all `b` shares its segment with something else",
        ),
        (
            "/{*a}b",
            1,
            "the catch-all `a` shares its segment with something else",
        ),
        ("/{*a?}", 1, "the catch-all `a` is marked as optional"),
        (
            "/{a=1?}",
            1,
            "the parameter `a` is optional and has a default value",
        ),
        (
            "/{a?}b",
            1,
            "the optional parameter `a` is not the last part of its segment",
        ),
        (
            "/{a}-{b?}",
            5,
            "the optional parameter `b` does not stand after a `.` that is alone",
        ),
        (
            "/a.{b?}",
            3,
            "the optional parameter `b` does not stand after a `.` that is alone",
        ),
        (
            "/{a}{b}",
            4,
            "nothing separates the parameter `b` from the one before it",
        ),
        ("/{a:itn}", 1, "unknown constraint `itn`"),
        ("/{a:min(1}", 1, "unknown constraint `min(1`"),
        ("/{a:int(1)}", 1, "the constraint `int` takes no arguments"),
        (
            "/{a:min}",
            1,
            "the constraint `min` needs an integer: `(1)`",
        ),
        (
            "/{a:max(x)}",
            1,
            "the constraint `max` needs an integer: `(100)`",
        ),
        (
            "/{a:range(5,1)}",
            1,
            "the constraint `range` needs two integers, the smaller first: `(1,100)`",
        ),
        (
            "/{a:length(-1)}",
            1,
            "the constraint `length` needs a length or two, the smaller first: `(10)` or `(2,10)`",
        ),
        (
            "/{a:minlength(1,2)}",
            1,
            "the constraint `minlength` needs a length, which is a number: `(10)`",
        ),
        (
            "/{a:regex}",
            1,
            "the constraint `regex` needs an expression: `(^a+$)`",
        ),
    ] {
        let error = error(text);
        assert_eq!(error.kind().to_string(), message, "{text}");
        assert_eq!(error.offset(), offset, "{text}");
        assert_eq!(error.to_string(), format!("{message} (at byte {offset})"));
    }
    assert!(matches!(
        error("/{a:regex((?=b)c)}").kind(),
        Kind::Regex { .. }
    ));
    assert!(matches!(error("/{a:regex([)}").kind(), Kind::Regex { .. }));
    assert!(matches!(
        error("/{a:regex(\\w{{9999}})}").kind(),
        Kind::Regex { .. }
    ));
}

#[test]
fn errors_suggest_what_to_write() {
    for (text, suggestion) in [
        ("/{***a}", "a catch-all has one or two asterisks: `{**a}`"),
        ("/{a:itn}", "did you mean `int`?"),
        ("/{a:min(1}", "close the parentheses of the constraint"),
        ("/{*a?}", "a catch-all matches nothing, too: write `{**a}`"),
        ("/a{*b}", "give it a segment of its own: `/{**b}`"),
    ] {
        assert_eq!(error(text).suggestion(), Some(suggestion), "{text}");
    }
    assert_eq!(error("/{a:banana}").suggestion(), None);
}

#[test]
fn more_than_28_segments_are_refused() {
    assert!(parse(&"/a".repeat(MAX_SEGMENTS)).matches(&"/a".repeat(MAX_SEGMENTS)));
    let error = error(&"/a".repeat(MAX_SEGMENTS + 1));
    assert_eq!(*error.kind(), Kind::TooManySegments { count: 29 });
}

#[test]
fn precedence_is_asp_net_cores() {
    let in_order = [
        ("/", "0"),
        ("/a", "1"),
        ("/a/b", "1.1"),
        ("/a/b/c", "1.11"),
        ("/a/b/{c}", "1.13"),
        ("/a/b/{**c}", "1.15"),
        ("/a/{b:int}", "1.2"),
        ("/a/{b}.{c}", "1.2"),
        ("/a/{b}", "1.3"),
        ("/a/{b?}", "1.3"),
        ("/a/{b}/c", "1.31"),
        ("/a/{*b:int}", "1.4"),
        ("/a/{**b}", "1.5"),
        ("/{a:int}", "2"),
        ("/{a}", "3"),
        ("/{**a}", "5"),
    ];
    for (text, shown) in in_order {
        assert_eq!(parse(text).precedence().to_string(), shown, "{text}");
    }
    assert!(in_order.is_sorted_by_key(|(text, _)| parse(text).precedence()));
}

#[test]
fn simple_segments_match() {
    for (template, path, expected) in [
        ("/", "/", ""),
        ("/", "", ""),
        ("/", "/a", "-"),
        ("/a/b", "/A/B/", ""),
        ("a", "/a", ""),
        ("~/a", "/a", ""),
        ("/a/**", "/a/**", ""),
        ("/{{a}}", "/%7Ba%7D", ""),
        ("/{p}", "/x", "p=x"),
        ("/{p}", "/", "-"),
        ("/{p}", "//", "-"),
        ("/{p}/b", "//b", "-"),
        ("/{p}", "/x/", "p=x"),
        ("/{p}", "/x//", "-"),
        ("/{p}/{q}", "/x/y", "p=x q=y"),
        ("/a/{p?}", "/a", ""),
        ("/a/{p?}", "/a/", ""),
        ("/a/{p?}", "/a/1", "p=1"),
        ("/a/{p?}", "/a/1/2", "-"),
        ("/{p?}/b", "/b", "-"),
        ("/{p?}/b", "/x/b", "p=x"),
        ("/a/{p=7}", "/a", "p=7"),
        ("/a/{p=7}", "/a/8", "p=8"),
        ("/{p=7}/{q=8}", "/", "p=7 q=8"),
        ("/{p=7}/{q=8}", "/1", "p=1 q=8"),
        ("/{p=7}/{q}", "/", "-"),
    ] {
        assert_eq!(captured(template, path), expected, "{template} {path}");
    }
}

#[test]
fn catch_alls_match_whatever_is_left() {
    for (template, path, expected) in [
        ("/{**r}", "/", ""),
        ("/{**r}", "*", ""),
        ("/{*r}", "/a", "r=a"),
        ("/{**r}", "/a/b/", "r=a/b/"),
        ("/{**r}", "//", "r=/"),
        ("/a/{**r}", "/a", ""),
        ("/a/{**r}", "/a/", ""),
        ("/a/{**r}", "/a//b", "r=/b"),
        ("/a/{**r=x/y}", "/a", "r=x/y"),
        ("/{p?}/{**r}", "/", ""),
        ("/{p?}/{**r}", "/a/b/c", "p=a r=b/c"),
        ("/{p}/{**r}", "/", "-"),
        ("/{p}/{**r}", "//b", "-"),
        ("/{**r:minlength(1)}", "/", "-"),
        ("/{**r:minlength(1)}", "/a", "r=a"),
        ("/{**r:int=5}", "/", "r=5"),
        ("/{**r:int=x}", "/", "-"),
        ("/{**r:nonfile}", "/", ""),
        ("/{**r:nonfile}", "/a/b.c", "-"),
        ("/{**r:nonfile}", "/a.b/c", "r=a.b/c"),
        ("/{**r:file}", "/a.b/c", "-"),
        ("/{**r:file}", "/a/b.c", "r=a/b.c"),
    ] {
        assert_eq!(captured(template, path), expected, "{template} {path}");
    }
}

#[test]
fn segments_of_several_parts_match_from_their_end() {
    for (template, path, expected) in [
        ("/{a}.{b}", "/x.y", "a=x b=y"),
        ("/{a}.{b}", "/x.y.z", "a=x.y b=z"),
        ("/{a}.{b}", "/x.", "-"),
        ("/{a}.{b}", "/.y", "-"),
        ("/{a}.{b}", "/..", "-"),
        ("/{a}.{b}", "/...", "a=. b=."),
        ("/{a}.{b}", "/xy", "-"),
        ("/{f}.{e?}", "/x.y", "f=x e=y"),
        ("/{f}.{e?}", "/x", "f=x"),
        ("/{f}.{e?}", "/x.", "-"),
        ("/{f}.{e?}", "/.y", "f=.y"),
        ("/.{e?}", "/.y", "e=y"),
        ("/.{e?}", "/.", "-"),
        ("/.{e?}", "/", "-"),
        ("/.{e?}", "//", "-"),
        ("/v{n}-x", "/v1-x", "n=1"),
        ("/v{n}-x", "/V1-X", "n=1"),
        ("/v{n}-x", "/v-x", "-"),
        ("/v{n}-x", "/v1-xx", "-"),
        ("/v{n}-x", "/av1-x", "-"),
        ("/v{n}-x", "/v-x-x", "n=-x"),
        ("/{a}-{b}-{c}", "/1-2-3-4", "a=1-2 b=3 c=4"),
        ("/{a}ab{b}", "/aabab", "a=a b=ab"),
        ("/{a}ab{b}", "/abab", "-"),
        ("/{a}ab{b}", "/aababx", "a=aab b=x"),
        ("/{a}%2F{b}", "/x%2Fy", "a=x b=y"),
        ("/{a}é{b}", "/x%C3%89y", "a=x b=y"),
        ("/{a:int}.{b:alpha}", "/1.b", "a=1 b=b"),
        ("/{a:int}.{b:alpha}", "/1.2", "-"),
        ("/{a:int}.{b:alpha?}", "/1", "a=1"),
        ("/{a:int}.{b=x}", "/1", "-"),
    ] {
        assert_eq!(captured(template, path), expected, "{template} {path}");
    }
}

#[test]
fn paths_are_compared_decoded() {
    for (template, path, expected) in [
        ("/a b/{p}", "/a%20b/c%20d", "p=c d"),
        ("/ä/{p}", "/%C3%84/%c3%a4", "p=ä"),
        ("/{p}", "/a%2Fb", "p=a%2Fb"),
        ("/a%2Fb", "/a%2fB", ""),
        ("/{p}", "/%", "p=%"),
        ("/{p}", "/%zz%ff", "p=%zz%ff"),
        ("/{p}", "/a+b", "p=a+b"),
        ("/a%20b", "/a%20b", "-"),
    ] {
        assert_eq!(captured(template, path), expected, "{template} {path}");
    }
}

#[test]
fn constraints_hold() {
    for (constraint, good, bad) in [
        (
            "int",
            &["7", "-7", "+7", "%207"] as &[_],
            &["a", "7.0", "2147483648", "1,000"] as &[_],
        ),
        ("long", &["2147483648"], &["9223372036854775808", "a"]),
        ("bool", &["true", "FALSE"], &["1", "yes"]),
        (
            "datetime",
            &["2016-12-31", "2016-12-31 7:32pm"],
            &["31-31-2016", "a"],
        ),
        ("decimal", &["49.99", "-1,000.01"], &["1e3", "a"]),
        ("double", &["1.234", "-1,001.01e8"], &["a", "1e"]),
        ("float", &["1.234", "NaN"], &["a"]),
        (
            "guid",
            &["CD2C1638-1638-72D5-1638-DEADBEEF1638"],
            &["a", "1"],
        ),
        ("minlength(4)", &["Rick", "Richard"], &["Ric"]),
        ("maxlength(8)", &["MyFile", "12345678"], &["123456789"]),
        ("length(2)", &["ab", "%F0%9F%98%80"], &["a", "abc"]),
        ("length(2, 3)", &["ab", "abc"], &["a", "abcd"]),
        ("min(18)", &["18", "19"], &["17", "a"]),
        ("max(120)", &["91", "-5"], &["121"]),
        ("range(18,120)", &["18", "120"], &["17", "121", "18.5"]),
        ("alpha", &["Rick"], &["Rick1", "%C3%A4"]),
        (
            "regex(^\\d{{3}}-\\d{{2}}$)",
            &["123-45"],
            &["123-456", "1234-5"],
        ),
        ("regex(B)", &["abc", "ABC"], &["ac"]),
        ("regex(^(a|b:c)$)", &["a", "B:C"], &["b"]),
        ("required", &["a"], &[]),
        ("file", &["a.txt", ".git", "a..b"], &["a", "a.", ".."]),
        ("nonfile", &["a", "a.", ".."], &["a.txt"]),
        ("int:min(1)", &["1"], &["0", "a"]),
        ("INT:Max(5)", &["5"], &["6"]),
    ] {
        let template = parse(&format!("/{{p:{constraint}}}"));
        for value in good {
            assert!(
                template.matches(&format!("/{value}")),
                "{constraint} {value}"
            );
        }
        for value in bad {
            assert!(
                !template.matches(&format!("/{value}")),
                "{constraint} {value}"
            );
        }
    }
}

#[test]
fn missing_parameters_satisfy_constraints_only_if_they_are_optional() {
    assert_eq!(captured("/a/{p:int?}", "/a"), "");
    assert_eq!(captured("/a/{p:int?}", "/a/x"), "-");
    assert_eq!(captured("/a/{p:int=7}", "/a"), "p=7");
    assert_eq!(captured("/a/{p:int=x}", "/a"), "-");
}

#[test]
fn names_ignore_case() {
    let template = parse("/{Name}/{*Rest}");
    assert!(template.parameter_names().eq(["Name", "Rest"]));
    let values = template.capture("/a/b").unwrap();
    assert_eq!(values.get("name"), Some("a"));
    assert_eq!(values.get("REST"), Some("b"));
    assert_eq!(values.get("other"), None);
    let mut values = values;
    values.insert("NAME", "c");
    assert!(values.iter().eq([("NAME", "c"), ("Rest", "b")]));
}

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
