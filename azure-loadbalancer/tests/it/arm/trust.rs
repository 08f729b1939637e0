//! The endpoints that a client accepts.

use azure_loadbalancer::arm::token::StaticToken;

use crate::arm::script::Script;

#[tokio::test]
async fn endpoints_that_cannot_be_used_are_rejected() {
    let script = Script::new(Vec::new());
    for (endpoint, why) in [
        ("management.azure.com", "relative URL"),
        ("ftp://arm.test", "not an http or https"),
        ("https://arm.test/x", "more than a host"),
        ("https://arm.test?x", "more than a host"),
        ("https://u:p@arm.test", "credentials"),
        ("http://arm.test", "plain HTTP"),
    ] {
        let built = script
            .builder()
            .endpoint(endpoint)
            .tokens(StaticToken::new("t"))
            .build();
        let error = built.unwrap_err().to_string();
        assert!(
            error.contains(why) && error.contains("https://management.azure.com"),
            "{error}"
        );
    }
    for endpoint in [
        "http://127.0.0.1:1",
        "http://localhost",
        "http://[::1]:1",
        "https://arm.test/",
    ] {
        script
            .builder()
            .endpoint(endpoint)
            .tokens(StaticToken::new("t"))
            .build()
            .unwrap();
    }
    script
        .builder()
        .endpoint("http://arm.test")
        .build()
        .unwrap();
}
