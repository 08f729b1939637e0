//! Lists of 500 rows, single rows and charts.

use super::*;
use crate::status::chart;

/// 500 routes, each with a cluster. Of number 300 the destination refuses connections.
fn many(port: u16) -> String {
    let routes = (0..500)
        .map(|n| format!(r#""r{n:03}":{{"ClusterId":"c{n:03}","Match":{{"Path":"/p{n}"}}}}"#));
    let clusters = (0..500).map(|n| {
        let port = if n == 300 { port } else { 1 };
        format!(r#""c{n:03}":{{"Destinations":{{"d":{{"Address":"http://127.0.0.1:{port}/"}}}}}}"#)
    });
    let (routes, clusters): (Vec<_>, Vec<_>) = (routes.collect(), clusters.collect());
    format!(
        r#"{{"Routes":{{{}}},"Clusters":{{{}}}}}"#,
        routes.join(","),
        clusters.join(",")
    )
}

fn ids(list: &Value, key: &str) -> Vec<String> {
    let rows = list[key].as_array().unwrap().iter();
    rows.map(|row| row["id"].as_str().unwrap().to_owned())
        .collect()
}

#[tokio::test]
async fn what_fails_comes_first_in_lists_and_in_the_drawing_with_its_route() {
    let closed = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = closed.local_addr().unwrap().port();
    drop(closed);
    let (proxy, admin) = verdict::proxy_of(&many(port));
    for _ in 0..3 {
        assert_eq!(verdict::get(&proxy, "/p300").await, StatusCode::BAD_GATEWAY);
    }
    chart(proxy.shared()).await;

    let clusters = json(&admin, "/api/v1/clusters");
    assert_eq!(ids(&clusters, "clusters")[..2], ["c300", "c000"]);
    assert_eq!(clusters["matching"], 500);
    let minute = &clusters["clusters"][0]["last_minute"];
    assert_eq!(
        (&minute["requests"], &minute["failures"]),
        (&3.into(), &3.into())
    );
    let routes = json(&admin, "/api/v1/routes?limit=3");
    assert_eq!(ids(&routes, "routes"), ["r300", "r000", "r001"]);
    assert_eq!(routes["routes"][0]["state"], "down");
    assert_eq!(routes["routes"][0]["last_minute"]["failures"], 3);
    assert_eq!(
        ids(&json(&admin, "/api/v1/routes?state=down"), "routes"),
        ["r300"]
    );

    let by_name = json(&admin, "/api/v1/routes?sort=name&limit=2&offset=498");
    assert_eq!(ids(&by_name, "routes"), ["r498", "r499"]);
    assert_eq!(by_name["matching"], 500);
    for sort in ["failed", "p99", "requests", "unknown"] {
        let sorted = json(&admin, &format!("/api/v1/routes?sort={sort}"));
        assert_eq!(ids(&sorted, "routes")[0], "r300", "{sort}");
    }
    let beyond = json(&admin, "/api/v1/clusters?offset=1000");
    assert!(ids(&beyond, "clusters").is_empty());

    let flow = &json(&admin, "/api/v1/overview")["flow"];
    assert_eq!(ids(flow, "routes"), ["r300"], "idle ones are left out");
    assert_eq!(ids(flow, "clusters"), ["c300"]);
    assert_eq!(flow["hidden"]["routes"], 499);
    assert_eq!(flow["hidden"]["clusters"], 499);
}

#[tokio::test]
async fn charts_have_an_hour_and_rows_their_configuration_without_secrets() {
    let admin = admin().await;
    for path in ["history", "history?route=sealed", "history?cluster=orders"] {
        let history = json(&admin, &format!("/api/v1/{path}"));
        for series in ["requests", "failures", "p50_ms", "p90_ms", "p99_ms"] {
            assert_eq!(history[series].as_array().unwrap().len(), 360, "{path}");
        }
        assert_eq!(history["step"], 10);
    }
    for path in ["history?route=no", "history?cluster=no", "routes/no"] {
        let response = ask(&admin, &format!("/api/v1/{path}"));
        assert_eq!(response.status(), StatusCode::NOT_FOUND, "{path}");
    }
    let route = json(&admin, "/api/v1/routes/sealed");
    assert_eq!(route["config"]["Match"]["Path"], "/sealed");
    let cluster = json(&admin, "/api/v1/clusters/orders");
    for (row, kept) in [(route, "Authorization"), (cluster, "Api-Token")] {
        let text = row.to_string();
        assert!(text.contains(kept) && !text.contains("hush"), "{text}");
    }
    assert_eq!(
        json(&admin, "/api/v1/listeners")["listeners"],
        Value::Array(Vec::new())
    );
}
