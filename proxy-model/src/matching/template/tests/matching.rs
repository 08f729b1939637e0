use super::parse;

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
