//! The fields of W3C Trace Context.

use super::parent::TraceParent;

#[test]
fn traceparent_is_read_as_the_specification_has_it() {
    const VALID: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    let cases: [(&str, bool); 14] = [
        (VALID, true),
        (
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00",
            true,
        ),
        // Flags that are not known yet.
        (
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-ff",
            true,
        ),
        // Later versions may say more.
        (
            "cc-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
            true,
        ),
        (
            "cc-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-what",
            true,
        ),
        (
            "cc-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01.what",
            false,
        ),
        (
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-what",
            false,
        ),
        (
            "ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
            false,
        ),
        (
            "00-00000000000000000000000000000000-b7ad6b7169203331-01",
            false,
        ),
        (
            "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
            false,
        ),
        (
            "00-0AF7651916CD43DD8448EB211C80319C-b7ad6b7169203331-01",
            false,
        ),
        (
            "00-0af7651916cd43dd8448eb211c80319c_b7ad6b7169203331-01",
            false,
        ),
        (
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-0",
            false,
        ),
        ("", false),
    ];
    for (value, is_valid) in cases {
        let parsed = TraceParent::parse(value.as_bytes());
        assert_eq!(parsed.is_some(), is_valid, "{value}");
    }
    let parsed = TraceParent::parse(VALID.as_bytes()).unwrap();
    assert_eq!(parsed.value(), VALID);
    assert!(parsed.is_sampled());
}
