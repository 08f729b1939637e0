use std::fs;

use proxy_model::json::Setting;
use tempfile::TempDir;

use super::*;
use crate::Merge;
use crate::status::SourceState;

/// A guard against hanging. Tests wait for events and are much faster.
const LONG: Duration = Duration::from_secs(60);

/// A file, the file of the environment `Staging`, a directory of values, and settings.
struct Fixture {
    directory: TempDir,
}

impl Fixture {
    fn new(base: &str) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let fixture = Self { directory };
        fs::create_dir(fixture.at("keys")).unwrap();
        fixture.write("appsettings.json", base);
        fixture
    }

    fn at(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Replaces a file by renaming, as deployments do.
    fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        fs::write(self.at("new"), content).unwrap();
        fs::rename(self.at("new"), self.at(name)).unwrap();
    }

    fn layers(&self, settings: &[(&str, &str)]) -> Layers {
        let setting = |(key, value): &(&str, &str)| Setting {
            key: (*key).to_owned(),
            value: (*value).to_owned(),
            origin: format!("variable {key}"),
        };
        Layers::of_files([self.at("appsettings.json")])
            .with_environment("Staging")
            .with_key_directory(self.at("keys"))
            .with_settings(settings.iter().map(setting).collect())
    }

    async fn open(&self, settings: &[(&str, &str)]) -> FileProvider {
        let options = FileOptions::default()
            .with_poll(Duration::from_millis(20))
            .with_settle(Duration::from_millis(5));
        let opened = options.open_layers(self.layers(settings)).await;
        opened.expect("the layers are good")
    }
}

fn base(order: &str) -> String {
    format!(
        "{{ \"ReverseProxy\": {{\n\"Routes\": {{ \"r\": {{ \"ClusterId\": \"c\", {order} \"Match\": {{ \"Path\": \"/\", \"Hosts\": [ \"a\", \"b\" ] }} }} }},\n\
         \"Clusters\": {{ \"c\": {{}} }} }} }}"
    )
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

fn order(state: &ProviderState) -> Option<i32> {
    state.config.as_ref()?.routes[0].order
}

fn hosts(state: &ProviderState) -> Vec<String> {
    let config = state.config.as_ref().unwrap();
    config.routes[0].r#match.hosts.clone().unwrap_or_default()
}

/// One value in all four layers, with a flattened key and in other cases.
#[tokio::test]
async fn the_uppermost_layer_counts_and_each_below_it_is_followed() {
    let fixture = Fixture::new(&base("\"Order\": 1,"));
    fixture.write(
        "appsettings.Staging.json",
        r#"{ "reverseproxy:ROUTES:R:order": 2 }"#,
    );
    fixture.write("keys/ReverseProxy__Routes__r__Order", "3\n");
    let top = fixture.open(&[("REVERSEPROXY:routes:R:ORDER", "4")]).await;
    assert_eq!(order(&top.state()), Some(4));

    let provider = fixture.open(&[]).await;
    assert_eq!(order(&provider.state()), Some(3));
    fixture.write("keys/ReverseProxy__Routes__r__Order", "30");
    wait_for(&provider, |state| order(state) == Some(30)).await;
    fs::remove_file(fixture.at("keys/ReverseProxy__Routes__r__Order")).unwrap();
    wait_for(&provider, |state| order(state) == Some(2)).await;
    fixture.write(
        "appsettings.Staging.json",
        r#"{ "ReverseProxy:Routes:r:Order": 20 }"#,
    );
    wait_for(&provider, |state| order(state) == Some(20)).await;
    // A byte order mark changes nothing, in any layer.
    fixture.write(
        "appsettings.Staging.json",
        "\u{feff}{ \"ReverseProxy:Routes:r:Order\": 21 }",
    );
    wait_for(&provider, |state| order(state) == Some(21)).await;
}

#[tokio::test]
async fn positions_extend_and_replace_the_list_of_a_file() {
    let fixture = Fixture::new(&base(""));
    let key = "ReverseProxy:Routes:r:Match:Hosts:";
    let settings = [
        (format!("{key}1"), "B"),
        (format!("{key}2"), "c"),
        (format!("{key}7"), "d"),
    ];
    let settings: Vec<_> = settings
        .iter()
        .map(|(key, value)| (key.as_str(), *value))
        .collect();
    let provider = fixture.open(&settings).await;
    assert_eq!(hosts(&provider.state()), ["a", "B", "c", "d"]);
    // The list stays that of all layers when the file changes.
    fixture.write(
        "appsettings.json",
        base("\"Order\": 5,").replace("\"b\"", "\"x\", \"y\", \"z\""),
    );
    let state = wait_for(&provider, |state| order(state) == Some(5)).await;
    assert_eq!(hosts(&state), ["a", "B", "c", "z", "d"]);
}

#[tokio::test]
async fn a_section_may_be_in_settings_alone() {
    let fixture = Fixture::new("{ \"Logging\": {} }");
    let provider = fixture
        .open(&[
            ("ReverseProxy:Routes:r:ClusterId", "c"),
            ("ReverseProxy:Routes:r:Match:Path", "/"),
            ("ReverseProxy:Clusters:c:Destinations:d:Address", "http://a"),
        ])
        .await;
    let state = provider.state();
    let config = state.config.as_ref().unwrap();
    assert_eq!((config.routes.len(), config.clusters.len()), (1, 1));
}

#[tokio::test]
async fn a_broken_layer_leaves_the_last_known_good_configuration_and_says_which() {
    let fixture = Fixture::new(&base("\"Order\": 1,"));
    let provider = fixture.open(&[]).await;
    fixture.write(
        "appsettings.Staging.json",
        r#"{ "ReverseProxy:Routes:r:Order": 2 }"#,
    );
    wait_for(&provider, |state| order(state) == Some(2)).await;
    for (content, place) in [
        (&b"{"[..], "appsettings.Staging.json:1): not JSON"),
        (b"\xff{", "appsettings.Staging.json): the file is not UTF-8"),
        (
            b"{\n\n\"ReverseProxy:Routes:r:Order\": \"x\" }",
            "appsettings.Staging.json:3): `x` is not a whole number",
        ),
        (
            b"{ \"ReverseProxy:Routes\": \"none\" }",
            "appsettings.Staging.json:1): there are keys below this value",
        ),
    ] {
        fixture.write("appsettings.Staging.json", content);
        let is_told = |state: &Arc<ProviderState>| state.problems.to_string().contains(place);
        let state = wait_for(&provider, is_told).await;
        assert_eq!(order(&state), Some(2), "{place}");
        assert_eq!(state.status.state, SourceState::Failing);
    }
    // It was there, so its loss is an error.
    fs::remove_file(fixture.at("appsettings.Staging.json")).unwrap();
    let is_told = |state: &Arc<ProviderState>| state.problems.to_string().contains("cannot read");
    assert_eq!(order(&*wait_for(&provider, is_told).await), Some(2));
    fixture.write(
        "appsettings.Staging.json",
        r#"{ "ReverseProxy:Routes:r:Order": 3 }"#,
    );
    wait_for(&provider, |state| order(state) == Some(3)).await;
}

/// Problems that the merge finds, after the file was read, say where the value is as well.
#[tokio::test]
async fn problems_of_values_say_where_they_come_from() {
    let fixture = Fixture::new(&base(""));
    let provider = fixture
        .open(&[("ReverseProxy:Routes:r:Match:Path", "/{a")])
        .await;
    let merged = Merge::new().provider(provider).start();
    let mut states = merged.subscribe();
    let is_told = |state: &crate::MergedState| !state.problems.is_empty();
    let told = tokio::time::timeout(LONG, states.wait_for(|state| is_told(state))).await;
    let problem = told.unwrap().unwrap().problems[0].problem.clone();
    assert_eq!(problem.pointer, "/ReverseProxy/Routes/r/Match/Path");
    assert_eq!(
        problem.origin.as_deref(),
        Some("variable ReverseProxy:Routes:r:Match:Path")
    );
}
