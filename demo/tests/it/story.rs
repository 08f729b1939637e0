//! Tests of the demo: the commands that it prints work.

use crate::command;
use testkit::client::Connection;
use testkit::peers::{self, address_after};

#[tokio::test]
async fn every_url_that_the_demo_prints_works() {
    let mut demo = peers::spawn(command(&[
        "--listen",
        "127.0.0.1:0",
        "--admin",
        "127.0.0.1:0",
        "--cluster",
        "127.0.0.1:0",
    ]));
    demo.wait_for_output("Ctrl-C stops").await;
    let screen = demo.output();
    assert!(screen.contains("4 routes to 9 replicas"), "{screen}");
    let tried: Vec<_> = screen
        .lines()
        .filter(|line| line.trim_start().starts_with("curl "))
        .collect();
    assert_eq!(tried.len(), 4, "{screen}");
    let mut partitions = 0;
    for line in tried {
        let (command, _) = line.split_once('#').unwrap();
        let url = command.split_whitespace().last().unwrap();
        let url = url.trim_matches('\'');
        let rest = url.strip_prefix("http://").unwrap();
        let (address, path) = rest.split_once('/').unwrap();
        let (method, expected) = if command.contains("-X PUT") {
            ("PUT", 405)
        } else {
            ("GET", 200)
        };
        let mut client = Connection::http1(address.parse().unwrap()).await.unwrap();
        let request = client.request(method, &format!("/{path}"));
        let answer = client
            .send(request.body(testkit::body::empty()).unwrap())
            .await
            .unwrap();
        assert_eq!(answer.status, expected, "{command}");
        // It is seen which partition a key leads to.
        for region in ["eu", "us"] {
            if expected == 200 && path.starts_with(&format!("orders/{region}")) {
                let named = format!("\"partition\": \"{region}\"");
                assert!(answer.text().contains(&named), "{}", answer.text());
                partitions += 1;
            }
        }
    }
    assert!(partitions > 0, "{screen}");
    let admin = address_after(&screen, "See what it does:  http://");
    let page = Connection::http1(admin)
        .await
        .unwrap()
        .get("/")
        .await
        .unwrap();
    assert!(page.text().contains("<title>"));
    demo.interrupt();
    assert!(demo.wait().await.success());
}

#[tokio::test]
async fn the_story_told_once_shows_all_that_happens_in_the_cluster() {
    let arguments = [
        "--listen",
        "127.0.0.1:0",
        "--admin",
        "127.0.0.1:0",
        "--cluster",
        "127.0.0.1:0",
        "--once",
        "--speed",
        "4",
    ];
    let told = peers::output(command(&arguments)).await.expect_success();
    let text = told.stdout + &told.stderr;
    for event in [
        // Scale-out.
        "cluster fabric:/Shop/Catalog: destination",
        // A failing probe.
        "health=Unhealthy",
        // A crash: another replica is the primary.
        "cluster fabric:/Shop/Orders/",
        // A rolling upgrade.
        "cluster fabric:/Site/Web: destination",
        // A bad label.
        "error at /YARP.Routes.payments.Path",
        "left quarantine",
        "cluster fabric:/Shop/Reviews added",
    ] {
        assert!(text.contains(event), "`{event}` is missing:\n{text}");
    }
}
