use super::parse;
use crate::matching::template::{
    MAX_LENGTH, MAX_PARAMETERS, MAX_PARTS, MAX_SEGMENTS, PathTemplate, TemplateError,
    TemplateErrorKind as Kind,
};

fn error(text: &str) -> TemplateError {
    PathTemplate::parse(text).expect_err(text)
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
fn d09_invalid_templates_are_rejected_where_they_are_wrong() {
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
    assert_eq!(
        *error("/{a:regex(\\w{{9999}})}").kind(),
        Kind::RegexTooLarge { most: 256 << 10 }
    );
    assert!(parse("/{a:regex(^[a-z0-9_-]{{1,100}}$)}").matches("/ab-c"));
    assert!(parse("/{a:regex(^[\\w-]+$)}").matches("/äb-c"));
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
fn more_than_28_segments_are_rejected() {
    assert!(parse(&"/a".repeat(MAX_SEGMENTS)).matches(&"/a".repeat(MAX_SEGMENTS)));
    // The rest is not checked.
    let error = error(&("/a".repeat(MAX_SEGMENTS + 1) + "//{"));
    assert_eq!(*error.kind(), Kind::TooManySegments);
    assert_eq!(error.offset(), 2 * MAX_SEGMENTS + 1);
}

#[test]
fn templates_are_bounded() {
    let long = |bytes: usize| format!("/{}", "a".repeat(bytes - 1));
    assert_eq!(parse(&long(MAX_LENGTH)).to_string().len(), MAX_LENGTH);
    assert_eq!(*error(&long(MAX_LENGTH + 1)).kind(), Kind::TooLong);
    // Where an error is, a character begins.
    let wide = format!("/a{}", "\u{20ac}".repeat(MAX_LENGTH / 2));
    assert!(wide.is_char_boundary(error(&wide).offset()));
    let in_one = |count: usize| (0..count).map(|i| format!("{{p{i}}}-")).collect::<String>();
    assert!(parse(&in_one(MAX_PARTS / 2)).matches("/1-2-3-4-5-6-7-8-9-10-11-12-13-14-15-16-"));
    assert_eq!(
        *error(&in_one(MAX_PARTS / 2 + 1)).kind(),
        Kind::TooManyParts
    );
    let in_all = |count: usize| {
        let parameters =
            (0..count).map(|i| format!("{}{{p{i}}}", if i % 8 == 0 { '/' } else { '-' }));
        parameters.collect::<String>()
    };
    assert_eq!(
        parse(&in_all(MAX_PARAMETERS)).parameter_names().count(),
        MAX_PARAMETERS
    );
    assert_eq!(
        *error(&in_all(MAX_PARAMETERS + 1)).kind(),
        Kind::TooManyParameters
    );
}

#[test]
fn errors_are_short_whatever_the_template() {
    let long = "n".repeat(4000);
    for text in [
        format!("/{{{long}*}}"),
        format!("/{{a:{long}}}"),
        format!("/{{a:min{long}(}}"),
        format!("/{{*{long}}}x"),
        format!("/{{*{long}?}}"),
        format!("/{{{long}=1?}}"),
        format!("/x{{{long}?}}"),
        format!("/{{a:regex([{long})}}"),
        "/{\n*}".into(),
    ] {
        let error = error(&text);
        assert!(error.to_string().len() < 300, "{error}");
        assert!(error.suggestion().is_none_or(|text| text.len() < 300));
        assert!(!error.to_string().contains('\n'), "{error}");
    }
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
