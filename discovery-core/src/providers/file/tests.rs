use std::fs;
use std::future::Future;

use tempfile::TempDir;

use proxy_model::Problem;

use super::*;
use crate::Merge;
use crate::status::SourceState;

/// A guard against hanging. Tests wait for events and are much faster.
const LONG: Duration = Duration::from_secs(60);

/// Options under which only watching can notice a change.
fn watching() -> FileOptions {
    FileOptions::default()
        .with_poll(Duration::from_secs(3600))
        .with_settle(Duration::from_millis(5))
}

/// Options under which only reading regularly can notice a change.
fn polling() -> FileOptions {
    watching()
        .with_watch(false)
        .with_poll(Duration::from_millis(10))
}

fn text(address: &str) -> String {
    format!(
        r#"{{ "ReverseProxy": {{ "Clusters": {{ "c": {{ "Destinations": {{ "d": {{ "Address": "{address}" }} }} }} }} }} }}"#
    )
}

fn address(state: &ProviderState) -> &str {
    let config = state.config.as_ref().expect("there is a configuration");
    &config.clusters[0].destinations[0].address
}

struct Fixture {
    directory: TempDir,
    path: PathBuf,
}

impl Fixture {
    fn new(content: &str) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("appsettings.json");
        fs::write(&path, content).unwrap();
        Self { directory, path }
    }

    fn beside(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    async fn open(&self, options: FileOptions) -> FileProvider {
        options.open([&self.path]).await.expect("the file is good")
    }
}

async fn wait_for(
    provider: &FileProvider,
    what: impl FnMut(&Arc<ProviderState>) -> bool,
) -> Arc<ProviderState> {
    let mut states = provider.subscribe();
    let state = tokio::time::timeout(LONG, states.wait_for(what)).await;
    let state = state.expect("it happens in time").expect("it is followed");
    Arc::clone(&state)
}

async fn wait_for_address(provider: &FileProvider, expected: &str) -> Arc<ProviderState> {
    wait_for(provider, |state| {
        state.status.state == SourceState::Live && address(state) == expected
    })
    .await
}

/// Runs a test both with watching and with polling.
async fn both<F: Future<Output = ()>>(test: impl Fn(FileOptions) -> F) {
    test(watching()).await;
    test(polling()).await;
}

#[tokio::test]
async fn a_file_is_read() {
    let fixture = Fixture::new(&format!("\u{feff}// comment\n{}", text("http://a")));
    let provider = fixture.open(FileOptions::default()).await;
    let state = provider.state();
    assert_eq!(address(&state), "http://a");
    assert_eq!(state.status.state, SourceState::Live);
    assert_eq!(provider.name(), "file");
    assert_eq!(provider.strictness(), Strictness::AllOrNothing);
    assert!(provider.is_required());
}

#[tokio::test]
async fn files_lie_on_top_of_each_other() {
    let fixture = Fixture::new(
        r#"{ "Logging": {}, "ReverseProxy": {
            "Routes": { "r": { "ClusterId": "c", "Match": { "Path": "/" } } },
            "Clusters": { "c": { "LoadBalancingPolicy": "Random", "Destinations": { "d": { "Address": "http://a" } } } }
        } }"#,
    );
    let above = fixture.beside("above.json");
    fs::write(&above, text("http://b")).unwrap();
    let provider = watching().open([&fixture.path, &above]).await.unwrap();
    let state = provider.state();
    assert_eq!(address(&state), "http://b");
    let config = state.config.as_ref().unwrap();
    assert_eq!(config.routes.len(), 1);
    let policy = config.clusters[0].load_balancing_policy.as_deref();
    assert_eq!(policy, Some("Random"));

    // Each of them is followed.
    fs::write(&above, text("http://c")).unwrap();
    wait_for_address(&provider, "http://c").await;
    fs::write(&above, "{").unwrap();
    let state = wait_for(&provider, |state| {
        state.status.state == SourceState::Failing
    })
    .await;
    let problem = state.problems.to_string();
    assert!(
        problem.contains("above.json") && problem.contains("line 1"),
        "{problem}"
    );
}

#[tokio::test]
async fn what_cannot_be_used_at_start_is_an_error() {
    let missing = Fixture::new("{}").beside("missing.json");
    let error = FileProvider::open([&missing]).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        format!("cannot read `{}`", missing.display())
    );
    assert!(
        matches!(error, FileError::Unreadable { source, .. } if source.kind() == io::ErrorKind::NotFound)
    );

    for (content, expected) in [
        ("", "not JSON"),
        ("{ \"ReverseProxy\": ", "not JSON"),
        ("[]", "the document is not an object"),
        ("{ \"Routes\": {} }", "there is no section `ReverseProxy`"),
        (
            r#"{ "ReverseProxy": { "Route": {} } }"#,
            "appsettings.json:1): unknown key",
        ),
    ] {
        let fixture = Fixture::new(content);
        let error = FileProvider::open([&fixture.path]).await.unwrap_err();
        let message = error.to_string();
        assert!(
            message.contains(expected) && message.contains("appsettings.json"),
            "{message}"
        );
    }

    let fixture = Fixture::new("");
    fs::write(&fixture.path, b"{ \"\xff\": 1 }").unwrap();
    let error = FileProvider::open([&fixture.path]).await.unwrap_err();
    assert!(error.to_string().contains("not UTF-8"));

    let nothing: [&str; 0] = [];
    let error = FileProvider::open(nothing).await.unwrap_err();
    assert!(matches!(error, FileError::NoFile));
}

#[tokio::test]
async fn everything_that_is_wrong_is_told_at_once() {
    let fixture = Fixture::new(
        r#"{ "ReverseProxy": { "Routes": {
            "r1": { "Match": { "Path": "/{unclosed" } },
            "r2": { "Mtach": { "Path": "/" }, "Order": "first" }
        } } }"#,
    );
    let FileError::Invalid { problems, .. } =
        FileProvider::open([&fixture.path]).await.unwrap_err()
    else {
        panic!("another error was expected");
    };
    let pointers: Vec<_> = problems
        .errors()
        .map(|problem| problem.pointer.as_str())
        .collect();
    for expected in [
        "/ReverseProxy/Routes/r1/Match/Path",
        "/ReverseProxy/Routes/r2/Mtach",
        "/ReverseProxy/Routes/r2/Order",
    ] {
        assert!(pointers.contains(&expected), "{pointers:?}");
    }
}

#[test]
fn other_sections_are_there_for_others() {
    let fixture = Fixture::new(r#"{ "Admin": { "Port": 1, "Host": "a" } }"#);
    let above = fixture.beside("above.json");
    fs::write(&above, r#"{ "admin": { "port": 2 } }"#).unwrap();
    let document = read_document(&Layers::of_files([fixture.path, above])).unwrap();
    let admin = document.node.get("Admin").unwrap();
    let number = |key| format!("{:?}", admin.get(key).unwrap());
    assert_eq!(number("Port"), "Number(Number(2))");
    assert!(admin.get("Host").is_some());
    let none = Layers::default();
    assert!(matches!(read_document(&none), Err(FileError::NoFile)));
}

#[tokio::test]
async fn a_section_may_be_missing_if_that_is_said() {
    let fixture = Fixture::new("{}");
    let provider = fixture.open(watching().with_section_required(false)).await;
    assert!(
        provider
            .state()
            .config
            .as_ref()
            .unwrap()
            .clusters
            .is_empty()
    );
}

#[tokio::test]
async fn a_file_that_is_written_again_is_read_again() {
    both(|options| async {
        let fixture = Fixture::new(&text("http://a"));
        let provider = fixture.open(options).await;
        fs::write(&fixture.path, text("http://b")).unwrap();
        let state = wait_for_address(&provider, "http://b").await;
        assert_eq!(state.status.changes, 2);
    })
    .await;
}

#[tokio::test]
async fn a_file_that_is_replaced_by_renaming_is_read_again() {
    both(|options| async {
        let fixture = Fixture::new(&text("http://a"));
        let provider = fixture.open(options).await;
        // Twice: a watch on the file itself would miss the second.
        for address in ["http://b", "http://c"] {
            let temporary = fixture.beside(".appsettings.json.tmp");
            fs::write(&temporary, text(address)).unwrap();
            fs::rename(&temporary, &fixture.path).unwrap();
            wait_for_address(&provider, address).await;
        }
    })
    .await;
}

/// Kubernetes mounts a ConfigMap as `file → ..data/file` and `..data → ..some-time`, and replaces `..data`.
#[cfg(unix)]
#[tokio::test]
async fn a_config_map_that_is_swapped_is_read_again() {
    use std::os::unix::fs::symlink;

    both(|options| async {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        let generation = |name: &str, address: &str| {
            fs::create_dir(at(name)).unwrap();
            fs::write(at(name).join("appsettings.json"), text(address)).unwrap();
            symlink(name, at("..data_tmp")).unwrap();
            fs::rename(at("..data_tmp"), at("..data")).unwrap();
        };
        generation("..2026_1", "http://a");
        symlink("..data/appsettings.json", at("appsettings.json")).unwrap();
        let provider = options.open([at("appsettings.json")]).await.unwrap();
        assert_eq!(address(&provider.state()), "http://a");
        for (name, before, address) in [
            ("..2026_2", "..2026_1", "http://b"),
            ("..2026_3", "..2026_2", "http://c"),
        ] {
            generation(name, address);
            fs::remove_dir_all(at(before)).unwrap();
            wait_for_address(&provider, address).await;
        }
    })
    .await;
}

#[tokio::test]
async fn a_file_that_is_half_written_changes_nothing_but_the_status() {
    both(|options| async {
        let fixture = Fixture::new(&text("http://a"));
        let provider = fixture.open(options).await;
        let whole = text("http://b");
        let (half, _) = whole.split_at(whole.len() / 2);
        fs::write(&fixture.path, half).unwrap();
        let state = wait_for(&provider, |state| {
            state.status.state == SourceState::Failing
        })
        .await;
        assert_eq!(address(&state), "http://a");
        assert!(state.problems.has_errors());
        assert_eq!(state.status.consecutive_failures, 1);
        let error = state.status.last_error.as_ref().unwrap();
        assert!(
            error.message.contains("appsettings.json"),
            "{}",
            error.message
        );

        fs::write(&fixture.path, &whole).unwrap();
        let state = wait_for_address(&provider, "http://b").await;
        assert!(state.problems.is_empty());
        assert_eq!(state.status.consecutive_failures, 0);
    })
    .await;
}

#[tokio::test]
async fn a_file_that_is_deleted_serves_on_and_may_come_back() {
    both(|options| async {
        let fixture = Fixture::new(&text("http://a"));
        let provider = fixture.open(options).await;
        fs::remove_file(&fixture.path).unwrap();
        let state = wait_for(&provider, |state| {
            state.status.state == SourceState::Failing
        })
        .await;
        assert_eq!(address(&state), "http://a");
        assert_eq!(
            state.problems.iter().next().unwrap().code,
            "unreadable_file"
        );
        fs::write(&fixture.path, text("http://a")).unwrap();
        let state = wait_for_address(&provider, "http://a").await;
        assert!(state.problems.is_empty());
        assert_eq!(state.status.changes, 1);
    })
    .await;
}

#[tokio::test]
async fn a_file_that_flaps_ends_as_what_was_written_last() {
    let fixture = Fixture::new(&text("http://start"));
    let options = watching().with_settle_max(Duration::from_millis(20));
    let provider = fixture.open(options).await;
    for i in 0..1000 {
        if i % 3 == 0 {
            fs::write(&fixture.path, "{ half").unwrap();
        }
        fs::write(&fixture.path, text(&format!("http://h{i}"))).unwrap();
        if i % 100 == 0 {
            tokio::task::yield_now().await;
        }
    }
    let state = wait_for_address(&provider, "http://h999").await;
    assert!(state.problems.is_empty());
}

#[tokio::test]
async fn a_file_that_is_too_large_is_not_read() {
    let fixture = Fixture::new(&text("http://a"));
    let provider = fixture.open(polling()).await;
    let file = fs::OpenOptions::new()
        .write(true)
        .open(&fixture.path)
        .unwrap();
    file.set_len(1 << 40).unwrap();
    let state = wait_for(&provider, |state| {
        state.status.state == SourceState::Failing
    })
    .await;
    assert_eq!(address(&state), "http://a");
    assert!(
        state
            .status
            .last_error
            .as_ref()
            .unwrap()
            .message
            .contains("more than")
    );
}

#[tokio::test]
async fn files_are_read_at_once_when_the_program_wants_it() {
    let fixture = Fixture::new(&text("http://a"));
    let reload = Arc::new(Notify::new());
    // Nothing else reads them.
    let options = watching()
        .with_watch(false)
        .with_reload(Arc::clone(&reload));
    let provider = fixture.open(options).await;
    for address in ["http://b", "http://c"] {
        fs::write(&fixture.path, text(address)).unwrap();
        reload.notify_one();
        wait_for_address(&provider, address).await;
    }
}

#[tokio::test]
async fn dropping_the_provider_ends_the_following() {
    let fixture = Fixture::new(&text("http://a"));
    let provider = fixture.open(watching()).await;
    let mut states = provider.subscribe();
    drop(provider);
    let stopped = states.wait_for(|state| state.status.state == SourceState::Stopped);
    let state = tokio::time::timeout(LONG, stopped).await.unwrap().unwrap();
    assert_eq!(address(&state), "http://a");
}

/// A bad value in a file rejects the file as a whole, and is reported.
#[tokio::test]
async fn a_bad_value_rejects_the_file_and_not_what_serves() {
    let fixture = Fixture::new(&text("http://a"));
    let provider = fixture.open(watching()).await;
    let merged = Merge::new().provider(provider).start();
    let state = tokio::time::timeout(LONG, merged.ready()).await.unwrap();
    assert_eq!(state.snapshot.clusters().len(), 1);
    let bad = text("http://b").replace(
        "\"Destinations\"",
        "\"LoadBalancingPolicy\": \"Nonsense\", \"Destinations\"",
    );
    fs::write(&fixture.path, bad).unwrap();
    let mut states = merged.subscribe();
    let state =
        tokio::time::timeout(LONG, states.wait_for(|state| !state.problems.is_empty())).await;
    let state = Arc::clone(&state.unwrap().unwrap());
    assert_eq!(
        state.snapshot.clusters()[0].config().destinations[0].address,
        "http://a"
    );
    assert_eq!(state.problems[0].provider.as_deref(), Some("file"));
    assert!(
        state.problems[0]
            .problem
            .pointer
            .starts_with("/ReverseProxy/Clusters/c/LoadBalancingPolicy")
    );
}

/// Opening a pipe waits for a writer, and never ends without one.
#[cfg(unix)]
#[tokio::test]
async fn what_is_no_regular_file_is_rejected_and_recovered_from() {
    let pipe = |path: &Path| {
        let made = std::process::Command::new("mkfifo").arg(path).status();
        assert!(made.unwrap().success());
    };
    let fixture = Fixture::new(&text("http://1"));
    for (name, make) in [
        ("pipe", &pipe as &dyn Fn(&Path)),
        ("directory", &|path| fs::create_dir(path).unwrap()),
        ("device", &|path| {
            std::os::unix::fs::symlink("/dev/zero", path).unwrap()
        }),
    ] {
        let path = fixture.beside(name);
        make(&path);
        let opened = tokio::time::timeout(LONG, FileProvider::open([path])).await;
        let error = opened.expect("in time").unwrap_err();
        let cause = std::error::Error::source(&error).unwrap().to_string();
        assert!(cause.contains("not a regular file"), "{name}: {cause}");
    }

    let provider = polling().open([fixture.path.clone()]).await.unwrap();
    let mut states = provider.subscribe();
    fs::remove_file(&fixture.path).unwrap();
    pipe(&fixture.path);
    let failing = states.wait_for(|state| {
        let told = |p: &Problem| p.message.contains("not a regular file");
        state.status.state == SourceState::Failing && state.problems.iter().any(told)
    });
    let state = tokio::time::timeout(LONG, failing).await.expect("in time");
    assert_eq!(address(&state.unwrap()), "http://1");
    fs::remove_file(&fixture.path).unwrap();
    fs::write(&fixture.path, text("http://2")).unwrap();
    let live = states.wait_for(|state| state.status.state == SourceState::Live);
    let state = tokio::time::timeout(LONG, live).await.expect("in time");
    assert_eq!(address(&state.unwrap()), "http://2");
}

/// Problems that a merge reports for a file point to the place where they are written, in the current text.
#[tokio::test]
async fn problems_are_placed_in_the_text_that_is_there() {
    let document = |path: &str, cluster: &str| {
        format!(
            r#"{{ "reverseproxy": {{ "Routes": {{ "r": {{ "ClusterId": "{cluster}", "Match": {{ "Path": "{path}" }} }} }},
            "Clusters": {{ "c": {{ "Destinations": {{ "d": {{ "Address": "http://a" }} }} }} }} }} }}"#
        )
    };
    let fixture = Fixture::new(&document("/a", "missing"));
    let merged = Merge::new()
        .provider(fixture.open(watching()).await)
        .start();
    let mut states = merged.subscribe();
    // The serving configuration has a warning too.
    let mut told = async |rejections: u64| {
        let reached =
            states.wait_for(|s| s.ready && s.rejections == rejections && !s.problems.is_empty());
        let state = tokio::time::timeout(LONG, reached).await.expect("in time");
        let state = state.expect("it is followed");
        let problems = state.problems.iter().map(|sourced| &sourced.problem);
        let told = problems.map(|problem| (problem.pointer.clone(), problem.code.to_string()));
        told.collect::<Vec<_>>()
    };
    let warning = (
        "/reverseproxy/Routes/r/ClusterId".to_owned(),
        "unknown_cluster".to_owned(),
    );
    assert_eq!(told(0).await, std::slice::from_ref(&warning));
    fs::write(&fixture.path, document("{", "c")).unwrap();
    let rejected = told(1).await;
    assert_eq!(
        rejected[0].0, "/reverseproxy/Routes/r/Match/Path",
        "{rejected:?}"
    );
    fs::write(&fixture.path, "{").unwrap();
    let unread = told(2).await;
    assert!(
        !unread.contains(&rejected[0]),
        "it is not there any more: {unread:?}"
    );
    assert!(unread.contains(&warning), "it still serves: {unread:?}");
    fs::write(&fixture.path, document("}", "c")).unwrap();
    let rejected = told(3).await;
    assert_eq!(
        rejected[0].0, "/reverseproxy/Routes/r/Match/Path",
        "{rejected:?}"
    );
    let unsupported = Problem::warning("/Routes/r/AuthorizationPolicy", "x", "y");
    let placed = merged.state().placed(unsupported);
    assert_eq!(placed.provider.as_deref(), Some("file"));
    assert_eq!(
        placed.problem.pointer,
        "/reverseproxy/Routes/r/AuthorizationPolicy"
    );
}

#[tokio::test]
async fn a_file_in_utf_16_is_read() {
    let fixture = Fixture::new("{}");
    for order in [u16::to_le_bytes, u16::to_be_bytes] {
        let text = format!("\u{feff}{}", text("http://a"));
        let bytes: Vec<u8> = text.encode_utf16().flat_map(order).collect();
        fs::write(&fixture.path, bytes).unwrap();
        let provider = fixture.open(watching()).await;
        assert_eq!(address(&provider.state()), "http://a");
    }
}
