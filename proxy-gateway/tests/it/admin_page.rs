//! The admin page of a gateway with 500 routes, in a browser: by day, by night and on a phone, and by the rules of
//! accessibility.

use std::path::PathBuf;
use std::time::Duration;

use serde_json::{Value, json};
use testkit::body;
use testkit::certs::{CertificateAuthority, PemFiles};
use testkit::client::Load;
use testkit::faults::RefusingPort;
use testkit::origin::Origin;
use testkit::peers::{self, address_after};

use crate::common::{ConfigFile, start};

/// The time limit: a browser is slow.
const LIMIT: Duration = Duration::from_secs(300);

const ROUTES: usize = 500;

/// Clusters of two destinations. Of number 7 both are dead, of number 13 one is.
fn config(files: &PemFiles, alive: &str, dead: &str) -> String {
    let mut routes = serde_json::Map::new();
    let mut clusters = serde_json::Map::new();
    for number in 0..ROUTES {
        let name = format!("shop%2Fservice-{number:03}");
        let route = json!({
            "ClusterId": name,
            "Match": { "Path": format!("/svc{number:03}/{{**rest}}"), "Hosts": ["shop.example", "127.0.0.1:*"] },
            "Transforms": [{ "PathRemovePrefix": format!("/svc{number:03}") }, { "RequestHeader": "X-Api-Key", "Set": "s3cr3t" }],
            "Timeout": "00:00:30",
        });
        routes.insert(name.clone(), route);
        let addresses = match number {
            7 => [dead, dead],
            13 => [alive, dead],
            _ => [alive, alive],
        };
        let destinations: Value = json!({
            "054917582-8169-a558-000000136557788": { "Address": addresses[0] },
            "2": { "Address": addresses[1] },
        });
        clusters.insert(name, json!({ "Destinations": destinations }));
    }
    let away =
        json!({ "Match": { "Path": "/away/{**rest}" }, "Redirect": { "Host": "new.example" } });
    routes.insert("away".to_owned(), away);
    json!({
        "Listeners": {
            "web": { "Address": "127.0.0.1:0" },
            "secure": { "Address": "127.0.0.1:0", "Tls": { "Certificates": [{
                "CertificateFile": files.certificate(), "KeyFile": files.key(),
            }] } },
        },
        "Admin": { "Address": "127.0.0.1:0" },
        "Telemetry": { "LiveRequests": {} },
        "ReverseProxy": { "Routes": routes, "Clusters": clusters },
    })
    .to_string()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_page_of_500_routes_is_readable_quick_and_accessible() {
    let (Some(chromium), Some(node)) = (peers::find("chromium"), peers::find("node")) else {
        return;
    };
    let Some(modules) = peers::node_module("playwright-core") else {
        return;
    };
    if peers::node_module("axe-core").is_none() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let authority = CertificateAuthority::new("servers");
    let files = authority
        .issue(&["shop.example", "www.shop.example"])
        .write_pem();
    let (origin, closed) = (Origin::named("alive"), RefusingPort::new());
    let file = ConfigFile::new(&config(&files, &origin.url(), &closed.url()));
    let program = start(
        &["run", "--config", &file.argument()],
        "a second Ctrl-C stops at once",
    )
    .await;
    let output = program.output();
    let web = address_after(&output, "listening on http://");
    let admin = address_after(&output, "admin page on http://");
    let load = Load::new(web)
        .connections(2)
        .request(|connection, number| {
            let service = [7, 13, 20, 21, 22, 499][usize::try_from(number % 6).unwrap()];
            let request = connection.request("GET", &format!("/svc{service:03}/{number}"));
            request.body(body::empty()).unwrap()
        })
        .expect(|_| Ok(()))
        .pause(Duration::from_millis(20))
        .start();

    let script = folder.path().join("browse.mjs");
    std::fs::write(&script, include_str!("admin_page/many.mjs")).unwrap();
    std::os::unix::fs::symlink(&modules, folder.path().join("node_modules")).unwrap();
    let screenshots =
        std::env::var_os("SCREENSHOTS").map_or_else(|| folder.path().into(), PathBuf::from);
    let mut browse = node.command();
    browse
        .arg(&script)
        .env("ADMIN", format!("http://{admin}/"))
        .env("CHROMIUM", chromium.path())
        .env("SCREENSHOTS", screenshots);
    peers::output_within(LIMIT, browse).await.expect_success();
    load.stop().await;
}
