//! The admin page in a real browser, by day, by night and on a phone. Its screenshots are those of the docs:
//! they are written to `docs/images` when `UPDATE_SCREENSHOTS` is set, and to a folder of the test otherwise.

use std::path::Path;
use std::time::Duration;

use crate::command;
use testkit::peers::{self, address_after};

/// The time limit: a browser is slow, and the demo plays its story.
const LIMIT: Duration = Duration::from_secs(400);

#[tokio::test]
async fn the_page_shows_what_happens_by_day_by_night_and_on_a_phone() {
    let (Some(chromium), Some(node)) = (peers::find("chromium"), peers::find("node")) else {
        return;
    };
    let Some(modules) = peers::node_module("playwright-core") else {
        return;
    };
    let mut demo = peers::spawn(command(&[
        "--listen",
        "127.0.0.1:0",
        "--admin",
        "127.0.0.1:0",
        "--cluster",
        "127.0.0.1:0",
        "--speed",
        "2",
    ]));
    demo.wait_for_output("Ctrl-C stops").await;
    let screen = demo.output();
    let admin = address_after(&screen, "See what it does:  http://");
    let proxy = address_after(&screen, "curl http://");

    let temporary = tempfile::tempdir().unwrap();
    let committed = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/images");
    let update = std::env::var_os("UPDATE_SCREENSHOTS").is_some();
    let screenshots = if update {
        committed.as_path()
    } else {
        temporary.path()
    };

    // Modules are looked up from where the script lies, which is why it lies beside them while it runs.
    let script = temporary.path().join("browse.mjs");
    std::fs::write(&script, include_str!("admin_page/browse.mjs")).unwrap();
    std::os::unix::fs::symlink(&modules, temporary.path().join("node_modules")).unwrap();

    let mut browse = node.command();
    browse
        .arg(&script)
        .env("ADMIN", format!("http://{admin}/"))
        .env("PROXY", format!("http://{proxy}"))
        .env("CHROMIUM", chromium.path())
        .env("SCREENSHOTS", screenshots);
    peers::output_within(LIMIT, browse).await.expect_success();
    for name in [
        "admin-light.png",
        "admin-dark.png",
        "admin-phone.png",
        "admin-explain.png",
    ] {
        assert!(
            screenshots.join(name).metadata().unwrap().len() > 10_000,
            "{name}"
        );
    }
}
