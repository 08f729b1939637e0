//! Requests that are too long, too slow or invalid.

use servicefabric_emulator::gateway::Emulator;
use testkit::raw::RawClient;

use super::{Gateway, builder};

async fn raw(emulator: &Emulator, request: &str) -> testkit::raw::RawResponse {
    RawClient::exchange(emulator.address(), request)
        .await
        .expect("there is an answer")
}

#[tokio::test]
async fn long_heads_are_told_so() {
    let gateway = Gateway::start().await;
    let good = "x".repeat(7_000);
    let reply = gateway.get(&format!("/Nodes?Ignored={good}")).await;
    assert_eq!(reply.status, 200);
    let long = "x".repeat(9_000);
    let by_path = gateway.get(&format!("/Nodes?Ignored={long}")).await;
    by_path.expect_error(431, "E_INVALIDARG");
    let request = format!(
        "GET /Nodes?api-version=6.0 HTTP/1.1\r\nHost: a\r\nX-Long: {long}\r\nConnection: close\r\n\r\n"
    );
    let by_field = raw(&gateway.emulator, &request).await;
    assert_eq!(by_field.status(), 431);
    assert!(by_field.text().contains("8192"), "{}", by_field.text());
}

#[tokio::test]
async fn endless_heads_end_the_connection() {
    let gateway = Gateway::start().await;
    let request = format!("GET /{} HTTP/1.1\r\nHost: a\r\n\r\n", "x".repeat(100_000));
    let answer = raw(&gateway.emulator, &request).await;
    assert!((400..500).contains(&answer.status()), "{}", answer.status());
}

#[tokio::test]
async fn bodies_have_at_most_four_mebibytes() {
    let gateway = Gateway::start().await;
    let path = "/Services/Shop~Web/$/ReportHealth?Immediate=true&api-version=6.0";
    let report = |description: usize| {
        format!(
            r#"{{"SourceId":"a","Property":"b","HealthState":"Ok","Description":"{}"}}"#,
            "x".repeat(description)
        )
    };
    let fits = gateway
        .send("POST", path, &report(4 * 1024 * 1024 - 100))
        .await;
    fits.expect_empty(200);

    let length = 4 * 1024 * 1024 + 1;
    let declared = format!("POST {path} HTTP/1.1\r\nHost: a\r\nContent-Length: {length}\r\n\r\n");
    let answer = raw(&gateway.emulator, &declared).await;
    assert_eq!(answer.status(), 413);
    assert!(answer.text().contains("FABRIC_E_VALUE_TOO_LARGE"));

    let mut client = RawClient::connect(gateway.emulator.address())
        .await
        .expect("it listens");
    let head = format!("POST {path} HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n");
    client.write_all(head).await.expect("it is read");
    let chunk = format!("100000\r\n{}\r\n", "x".repeat(0x10_0000));
    for _ in 0..5 {
        if client.write_all(&chunk).await.is_err() {
            break;
        }
    }
    let answer = client.read_response().await.expect("there is an answer");
    assert_eq!(answer.status(), 413);
}

#[tokio::test]
async fn what_is_no_http_is_rejected() {
    let gateway = Gateway::start().await;
    for request in [
        "nonsense\r\n\r\n",
        "GET /Nodes HTTP/1.1\r\nHost: a\r\nContent-Length: x\r\n\r\n",
    ] {
        let answer = raw(&gateway.emulator, request).await;
        assert_eq!(answer.status(), 400, "{request}");
    }
    let reply = gateway.get("/Nodes").await;
    assert_eq!(reply.status, 200);
}

#[tokio::test]
async fn one_connection_serves_many_calls() {
    let gateway = Gateway::start().await;
    let mut connection = gateway.connect().await;
    for _ in 0..5 {
        let answer = connection
            .get("/Nodes?api-version=6.0")
            .await
            .expect("it goes on");
        assert_eq!(answer.status, 200);
    }
}

#[tokio::test]
async fn a_cluster_id_is_compared_if_it_is_there() {
    let gateway = Gateway::of(builder().cluster_id("c1")).await;
    for (field, status) in [
        ("", 200),
        ("ClusterId: C1\r\n", 200),
        ("ClusterId: c2\r\n", 403),
    ] {
        let request = format!(
            "GET /Nodes?api-version=6.0 HTTP/1.1\r\nHost: a\r\n{field}Connection: close\r\n\r\n"
        );
        let answer = raw(&gateway.emulator, &request).await;
        assert_eq!(answer.status(), status, "{field}");
    }
    let other = Gateway::start().await;
    let request = "GET /Nodes?api-version=6.0 HTTP/1.1\r\nHost: a\r\nClusterId: c2\r\nConnection: close\r\n\r\n";
    assert_eq!(raw(&other.emulator, request).await.status(), 200);
}

#[tokio::test]
async fn shutdown_ends_idle_connections_and_frees_the_port() {
    let gateway = Gateway::start().await;
    let mut connection = gateway.connect().await;
    connection
        .get("/Nodes?api-version=6.0")
        .await
        .expect("it answers");
    let address = gateway.emulator.address();
    gateway.emulator.shutdown().await;
    connection.closed().await;
    let again = builder().listen(address.to_string()).start().await;
    again.expect("nobody is there any more").shutdown().await;
}

#[tokio::test]
async fn what_cannot_start_says_why() {
    use servicefabric_emulator::gateway::StartError;
    let gateway = Gateway::start().await;
    let taken = gateway.emulator.address().to_string();
    let error = builder()
        .listen(taken)
        .start()
        .await
        .map(|_| ())
        .unwrap_err();
    assert!(matches!(error, StartError::Listen { .. }), "{error:?}");
    for speed in [0.0, -1.0, f64::NAN, f64::INFINITY, 10_001.0] {
        let error = builder()
            .speed(speed)
            .start()
            .await
            .map(|_| ())
            .unwrap_err();
        assert!(matches!(error, StartError::Speed(_)), "{speed}: {error:?}");
    }
}

#[tokio::test]
async fn what_nobody_could_use_does_not_start() {
    use servicefabric_emulator::gateway::{Role, StartError};
    let error = builder().bearer("", Role::Admin).start().await;
    assert!(matches!(error.map(|_| ()), Err(StartError::Token)));
    let error = builder().page_size(0).start().await;
    assert!(matches!(error.map(|_| ()), Err(StartError::PageSize)));
}

#[tokio::test]
async fn bodies_that_are_no_objects_are_told_so() {
    let gateway = Gateway::start().await;
    for path in [
        "/Applications/$/Create",
        "/Applications/Shop/$/Upgrade",
        "/Applications/Shop/$/GetServices/$/Create",
        "/ApplicationTypes/$/Provision",
        "/ApplicationTypes/ShopType/$/Unprovision",
        "/Names/$/Create",
        "/Nodes/_Node_0/$/Deactivate",
        "/Nodes/_Node_0/$/Restart",
        "/Services/Shop~Web/$/Update",
        "/Services/Shop~Web/$/ReportHealth",
        "/emulator/page-size",
        "/emulator/services/Shop~Web/$/scale",
    ] {
        // The items of a list are not taken for the members of an object in an unknown order.
        for body in [
            "7",
            "\"text\"",
            "[]",
            " [\"fabric:/Seq\",\"ShopType\",\"1.0.0\",[]]",
        ] {
            let reply = gateway.send("POST", path, body).await;
            reply.expect_error(400, "E_INVALIDARG");
            let message = reply.json["Error"]["Message"].as_str().expect("a text");
            assert!(message.contains("an object"), "{path} {body}: {message}");
            assert!(!message.contains("struct"), "{path} {body}: {message}");
        }
    }
}

#[tokio::test]
async fn what_is_answered_unread_leaves_a_connection_that_can_be_used() {
    let gateway = Gateway::start().await;
    let mut client = RawClient::connect(gateway.emulator.address())
        .await
        .unwrap();
    for _ in 0..3 {
        let head = "POST /Nowhere HTTP/1.1\r\nHost: h\r\nContent-Length: 4\r\n\r\n";
        client.write_all(head).await.unwrap();
        // A response is ready already; the amount does not matter.
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        client.write_all("{}  ").await.unwrap();
        let response = client.read_response().await.unwrap();
        assert_eq!(response.head.status, 404);
    }
}
