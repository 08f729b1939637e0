//! Pages of errors, through the program.

use std::path::Path;

use testkit::client::Connection;
use testkit::time::eventually;

use crate::common::{ConfigFile, address_after, output};
use crate::run::{config, get, run};

#[tokio::test]
async fn pages_of_errors_are_followed() {
    let folder = tempfile::tempdir().unwrap();
    let page = folder.path().join("404.html");
    std::fs::write(&page, "<h1>Not here</h1>").unwrap();
    let text = |pages: &str| {
        let server = format!(r#", "Server": {{ "ErrorPages": {{ {pages} }} }}"#);
        let text = config(([127, 0, 0, 1], 9).into(), &server);
        text.replace("/{**rest}", "/known")
    };
    let not_found = format!(r#""gone": {{ "Statuses": ["404"], "File": {page:?} }}"#);
    let file = ConfigFile::new(&text(&not_found));
    let (process, address) = run(&file).await;
    let admin = address_after(&process.output(), "admin page on http://");
    let mut client = Connection::http1(address).await.unwrap();
    let answer = client.get("/unknown").await.unwrap();
    assert_eq!(answer.status, 404);
    assert_eq!(
        answer.header("content-type"),
        Some("text/html; charset=utf-8")
    );
    assert_eq!(answer.text(), "<h1>Not here</h1>");
    let explained = get(admin, "/api/v1/explain?url=http://h/unknown").await;
    assert!(explained.contains(r#""error_page":"gone""#), "{explained}");
    let url = format!("http://{address}/unknown");
    let explained = output(&["explain", "--config", &file.argument(), "--url", &url]).await;
    let told = "No route takes it: 404.\n  error page gone\n";
    assert!(explained.stdout.contains(told), "{}", explained.stdout);

    std::fs::write(&page, "<h1>Gone</h1>").unwrap();
    eventually("the changed file is read", async || {
        get(address, "/unknown").await == "<h1>Gone</h1>"
    })
    .await;
    let both = format!(r#"{not_found}, "bad": {{ "Statuses": ["5xx"], "Body": "down" }}"#);
    file.write(&text(&both));
    eventually("the new page is there", async || {
        get(address, "/known").await == "down"
    })
    .await;
    // A file that cannot be read leaves the pages as they are.
    std::fs::remove_file(&page).unwrap();
    eventually("the missing file is named", async || {
        let problems = get(admin, "/api/v1/problems").await;
        problems.contains("/Server/ErrorPages/gone/File") && problems.contains("404.html")
    })
    .await;
    assert_eq!(get(address, "/unknown").await, "<h1>Gone</h1>");
    let problems = get(admin, "/api/v1/problems").await;
    assert!(!problems.contains("restart_needed"), "{problems}");

    let checked = output(&["check", "--config", &file.argument()]).await;
    let told = format!("{}{}", checked.stdout, checked.stderr);
    assert!(told.contains("404.html` cannot be read"), "{told}");
    let started = output(&["run", "--config", &file.argument()]).await;
    assert!(!started.status.success());
    assert!(
        started.stderr.contains("/Server/ErrorPages/gone/File"),
        "{}",
        started.stderr
    );
}

/// A reload with a page that cannot be read keeps all pages, those that could be read, too. So does a configuration
/// that is rejected.
#[tokio::test]
async fn pages_of_a_rejected_reload_are_not_served() {
    let folder = tempfile::tempdir().unwrap();
    let [first, second] = ["first.html", "second.html"].map(|name| folder.path().join(name));
    std::fs::write(&first, "first").unwrap();
    let text = |page: &Path, down: &str, path: &str| {
        let server = format!(
            r#", "Server": {{ "ErrorPages": {{
                "gone": {{ "Statuses": ["404"], "File": {page:?} }},
                "down": {{ "Statuses": ["5xx"], "Body": "{down}" }}
            }} }}"#
        );
        let text = config(([127, 0, 0, 1], 9).into(), &server);
        text.replace("/{**rest}", path)
    };
    let file = ConfigFile::new(&text(&first, "down 1", "/known"));
    let (process, address) = run(&file).await;
    let admin = address_after(&process.output(), "admin page on http://");
    let served = async || [get(address, "/unknown").await, get(address, "/known").await];
    let problem_of_page = async || {
        let problems = get(admin, "/api/v1/problems").await;
        problems.contains("/Server/ErrorPages/gone/File")
    };
    assert_eq!(served().await, ["first", "down 1"]);

    file.write(&text(&second, "down 2", "/known"));
    eventually("the missing file is named", problem_of_page).await;
    assert_eq!(served().await, ["first", "down 1"]);
    std::fs::write(&second, "second").unwrap();
    eventually("the file is there", async || {
        served().await == ["second", "down 2"]
    })
    .await;
    eventually("no file is named", async || !problem_of_page().await).await;

    std::fs::write(&second, "x".repeat(65 * 1024)).unwrap();
    eventually("the long file is named", problem_of_page).await;
    assert_eq!(served().await, ["second", "down 2"]);

    // The pages that count are still followed, which tells that the rejected ones were seen.
    file.write(&text(&first, "down 3", "/{bad"));
    eventually("the path is named", async || {
        let problems = get(admin, "/api/v1/problems").await;
        problems.contains("Match/Path")
    })
    .await;
    std::fs::write(&second, "third").unwrap();
    eventually("the changed file is read", async || {
        served().await == ["third", "down 2"]
    })
    .await;
    file.write(&text(&first, "down 3", "/known"));
    eventually("the mistake is corrected", async || {
        served().await == ["first", "down 3"]
    })
    .await;
}
