//! Configuration as .NET operators know it: variables of the environment, files of environments, flattened
//! keys, options, and where each value comes from.

use std::fs;
use std::net::{SocketAddr, TcpListener};

use serde_json::{Value, json};
use testkit::body;
use testkit::client::Connection;
use testkit::origin::Origin;
use testkit::peers::{self, PeerOutput};
use testkit::time::eventually;

use crate::common::{ConfigFile, address_after, command};

/// The last line that `run` prints at its start.
const READY: &str = "a second Ctrl-C stops at once";

const BASE: &str = r#"{
    "Listeners": { "web": { "Address": "127.0.0.1:0" } },
    "Admin": { "Address": "127.0.0.1:0" },
    "ReverseProxy": {
        "Routes": { "r": { "ClusterId": "c", "Order": 1, "Match": { "Path": "/{**rest}", "Hosts": [ "a", "b" ] } } },
        "Clusters": { "c": { "Destinations": { "d": { "Address": "http://127.0.0.1:1/" } } } }
    }
}"#;

/// Runs a command with the file, more arguments and variables.
async fn output(
    file: &ConfigFile,
    what: &str,
    more: &[&str],
    variables: &[(&str, &str)],
) -> PeerOutput {
    let path = file.argument();
    let mut arguments = vec![what, "--config", &path];
    arguments.extend(more);
    let mut command = command(&arguments);
    command.envs(variables.iter().copied());
    peers::output(command).await
}

async fn check(file: &ConfigFile, more: &[&str], variables: &[(&str, &str)]) -> Value {
    let more: Vec<&str> = ["--format", "json"].iter().chain(more).copied().collect();
    let checked = output(file, "check", &more, variables).await;
    serde_json::from_str(&checked.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}{}", checked.stdout, checked.stderr))
}

/// The problems, without those of ports and files of this machine.
fn problems(verdict: &Value) -> Vec<(String, String, String)> {
    let problems = verdict["problems"].as_array().expect("it is a list").iter();
    let text = |problem: &Value, key: &str| problem[key].as_str().unwrap_or_default().to_owned();
    let named = problems.map(|p| (text(p, "pointer"), text(p, "code"), text(p, "origin")));
    named
        .filter(|(_, code, _)| code != "unusable_address")
        .collect()
}

fn value(verdict: &Value, pointer: &str) -> Value {
    let mut values = verdict["values"].as_array().expect("it is a list").iter();
    let found = values.find(|value| value["pointer"] == pointer);
    found
        .unwrap_or_else(|| panic!("there is no {pointer}: {verdict:#}"))
        .clone()
}

/// One value in every layer: the file, the environment's file with a flattened key, a file with one value, a
/// variable in other case, an option.
#[tokio::test]
async fn each_layer_takes_precedence_over_the_ones_below() {
    let file = ConfigFile::new(BASE);
    let keys = file.folder().join("keys");
    fs::create_dir(&keys).unwrap();
    fs::write(
        file.folder().join("appsettings.Staging.json"),
        "\u{feff}{\n\"ReverseProxy:Routes:R:order\": 2 }",
    )
    .unwrap();
    fs::write(keys.join("ReverseProxy__Routes__r__Order"), "3\n").unwrap();
    let (keys, variable) = (keys.display().to_string(), "REVERSEPROXY__routes__R__ORDER");
    let staging = ("ASPNETCORE_ENVIRONMENT", "Staging");
    let (base, staged) = (
        format!("{}:5", file.argument()),
        "appsettings.Staging.json:2",
    );
    let directory = ["--key-per-file", keys.as_str()];
    let option = ["--set", "ReverseProxy:routes:r:order=5"];
    for (more, variables, expected, origin) in [
        (vec![], vec![], json!(1), base.as_str()),
        (vec![], vec![staging], json!(2), staged),
        (
            directory.to_vec(),
            vec![staging],
            json!("3"),
            "ReverseProxy__Routes__r__Order",
        ),
        (
            directory.to_vec(),
            vec![staging, (variable, "4")],
            json!("4"),
            variable,
        ),
        (
            [directory, option].concat(),
            vec![staging, (variable, "4")],
            json!("5"),
            "option --set ReverseProxy:routes:r:order",
        ),
    ] {
        let more: Vec<&str> = more.iter().copied().chain(["--origins"]).collect();
        let verdict = check(&file, &more, &variables).await;
        assert_eq!(verdict["valid"], true, "{verdict:#}");
        let order = value(&verdict, "/ReverseProxy/Routes/r/Order");
        assert_eq!(order["value"], expected);
        let found = order["origin"].as_str().unwrap();
        assert!(found.ends_with(origin), "{order}");
        let below = order["over"].as_array().map_or(0, Vec::len);
        let layers = expected
            .as_i64()
            .or_else(|| expected.as_str()?.parse().ok());
        assert_eq!(
            below,
            usize::try_from(layers.unwrap()).unwrap() - 1,
            "{order}"
        );
    }
    // The option for the environment counts more than the variable, and `explain` reads the same layers.
    let text = output(
        &file,
        "check",
        &["--origins", "--environment", "Staging"],
        &[("DOTNET_ENVIRONMENT", "Other")],
    )
    .await;
    let text = text.expect_success().stdout;
    assert!(text.contains("environment Staging"), "{text}");
    assert!(
        text.contains("/ReverseProxy/Routes/r/Order = 2  ("),
        "{text}"
    );
}

#[tokio::test]
async fn a_position_in_a_variable_extends_the_list_of_the_file() {
    let file = ConfigFile::new(BASE);
    let explained = output(
        &file,
        "explain",
        &["--url", "http://third/x", "--format", "json"],
        &[("ReverseProxy__Routes__r__Match__Hosts__2", "third")],
    )
    .await;
    let explained: Value = serde_json::from_str(&explained.expect_success().stdout).unwrap();
    assert_eq!(explained["outcome"], "matched", "{explained:#}");
}

#[tokio::test]
async fn mistakes_in_variables_are_named_as_mistakes_in_files_are() {
    let file = ConfigFile::new(BASE);
    let verdict = check(
        &file,
        &[],
        &[
            ("ReverseProxy__Routes__r__Order", "first"),
            ("ReverseProxy__Routes__r__Mtach__Path", "/"),
            (
                "reverseproxy__Clusters__c__HttpClient__MaxConnectionsPerServer",
                "-1",
            ),
            ("ReverseProxi__Routes__r__Order", "1"),
            ("Server__Wrokers", "2"),
            ("Admin__Address", "127.0.0.1:0"),
            ("ADMIN__ADDRESS", "127.0.0.1:0"),
            ("ReverseProxy__Routes__r__Match__Hosts", "a"),
            ("ASPNETCORE_HTTP_PORTS", "8080"),
        ],
    )
    .await;
    assert_eq!(verdict["valid"], false);
    let problems = problems(&verdict);
    for (pointer, code, variable) in [
        (
            "/ReverseProxy/Routes/r/Order",
            "invalid_number",
            "ReverseProxy__Routes__r__Order",
        ),
        (
            "/ReverseProxy/Routes/r/Mtach",
            "unknown_key",
            "ReverseProxy__Routes__r__Mtach__Path",
        ),
        ("", "unknown_section", "ReverseProxi__Routes__r__Order"),
        ("/Server/Wrokers", "unknown_key", "Server__Wrokers"),
        ("/Admin/Address", "duplicate_key", "Admin__Address"),
        (
            "/ReverseProxy/Routes/r/Match/Hosts",
            "conflicting_value",
            "ReverseProxy__Routes__r__Match__Hosts",
        ),
        ("", "foreign_variable", "ASPNETCORE_HTTP_PORTS"),
    ] {
        let expected = (
            pointer.to_owned(),
            code.to_owned(),
            format!("variable {variable}"),
        );
        assert!(
            problems.contains(&expected),
            "{expected:?} is not among {problems:#?}"
        );
    }
    let said = verdict.to_string();
    assert!(said.contains("did you mean `Match`?"), "{said}");
    assert!(said.contains("did you mean `Workers`?"), "{said}");

    let ended = output(
        &file,
        "run",
        &[],
        &[("ReverseProxy__Routes__r__Order", "first")],
    )
    .await;
    assert_eq!(ended.status.code(), Some(1));
    let place = "/ReverseProxy/Routes/r/Order (variable ReverseProxy__Routes__r__Order)";
    assert!(ended.stderr.contains(place), "{}", ended.stderr);
}

#[tokio::test]
async fn a_prefix_selects_variables() {
    let file = ConfigFile::new(BASE);
    let variables = [
        ("PROXY_ReverseProxy__Routes__r__Order", "7"),
        ("ReverseProxy__Routes__r__Order", "8"),
        ("PROXY_NONSENSE", "1"),
    ];
    let verdict = check(&file, &["--env-prefix", "PROXY_", "--origins"], &variables).await;
    assert_eq!(
        value(&verdict, "/ReverseProxy/Routes/r/Order")["value"],
        "7"
    );
    let expected = [
        ("unknown_section", "variable PROXY_NONSENSE"),
        ("environment_variable", ""),
    ];
    let expected =
        expected.map(|(code, origin)| (String::new(), code.to_owned(), origin.to_owned()));
    assert_eq!(problems(&verdict), expected);
}

#[tokio::test]
async fn a_merge_that_may_surprise_is_a_warning() {
    let file = ConfigFile::new(BASE);
    fs::write(
        file.folder().join("appsettings.Production.json"),
        r#"{ "ReverseProxy": { "Routes": { "r": { "Match": { "Hosts": [ "x" ] } } }, "Clusters": null } }"#,
    )
    .unwrap();
    let verdict = check(&file, &["--origins"], &[]).await;
    assert_eq!(verdict["valid"], true);
    let codes: Vec<_> = problems(&verdict)
        .into_iter()
        .map(|(pointer, code, _)| (pointer, code))
        .collect();
    let expected = [
        ("/ReverseProxy/Routes/r/Match/Hosts", "merged_list"),
        ("/ReverseProxy/Clusters", "null_over_section"),
    ];
    assert_eq!(codes, expected.map(|(a, b)| (a.to_owned(), b.to_owned())));
    assert_eq!(
        value(&verdict, "/ReverseProxy/Routes/r/Match/Hosts/0")["value"],
        "x"
    );
    assert_eq!(
        value(&verdict, "/ReverseProxy/Routes/r/Match/Hosts/1")["value"],
        "b"
    );
}

#[tokio::test]
async fn secrets_of_every_layer_are_left_out_of_origins() {
    let file =
        ConfigFile::new(&BASE.replacen('{', r#"{ "SerfDiscovery": { "AuthKey": "hunter2" }, "#, 1));
    let checked = output(
        &file,
        "check",
        &[
            "--origins",
            "--set",
            "ReverseProxy:Routes:r:Metadata:api-key=hunter2",
        ],
        &[
            ("ConsulDiscovery__Token", "hunter2"),
            (
                "ReverseProxy__Routes__r__Transforms__0__RequestHeader",
                "Authorization",
            ),
            ("ReverseProxy__Routes__r__Transforms__0__Set", "hunter2"),
        ],
    )
    .await;
    let text = format!("{}{}", checked.stdout, checked.stderr);
    assert!(!text.contains("hunter2"), "{text}");
    assert!(
        text.contains("/ConsulDiscovery/Token = \"(redacted)\"  (variable ConsulDiscovery__Token)"),
        "{text}"
    );
}

#[tokio::test]
async fn wrong_options_are_wrong_usage_or_named() {
    let file = ConfigFile::new(BASE);
    for more in [
        &["--set", "novalue"][..],
        &["--set", "=x"],
        &["--environment", "../other"],
        &["--environment", ""],
    ] {
        let ended = output(&file, "check", more, &[]).await;
        assert_eq!(ended.status.code(), Some(2), "{more:?}: {}", ended.stderr);
    }
    let verdict = check(&file, &["--set", "RevrseProxy:Routes:r:Order=1"], &[]).await;
    assert_eq!(verdict["valid"], false);
    assert!(
        verdict.to_string().contains("did you mean `ReverseProxy`?"),
        "{verdict:#}"
    );
    let verdict = check(&file, &["--environment", "Nowhere"], &[]).await;
    assert_eq!(problems(&verdict)[0].1, "environment_file");
    let missing = check(&file, &["--key-per-file", "/no/such/folder"], &[]).await;
    assert_eq!(problems(&missing)[0].1, "unreadable_file");
}

/// `check` asks what `run` asks of the machine, and `run` rejects it.
#[tokio::test]
async fn check_finds_what_run_would_reject_on_this_machine() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let listener = [("Listeners__web__Address", address.as_str())];
    let log = [("Telemetry__AccessLog__File", "/no/such/folder/access.log")];
    let filter = [("Telemetry__LogFilter", "proxy=[[[")];
    let certificate = [
        (
            "Listeners__web__Tls__Certificates__0__CertificateFile",
            "/no/such.pem",
        ),
        (
            "Listeners__web__Tls__Certificates__0__KeyFile",
            "/no/such.key",
        ),
    ];
    let file = ConfigFile::new(BASE);
    for (variables, code, is_of_machine) in [
        (&listener[..], "unusable_address", true),
        (&log, "unwritable_file", true),
        (&certificate, "unusable_certificate", true),
        (&filter, "invalid_log_filter", false),
    ] {
        let verdict = check(&file, &[], variables).await;
        assert_eq!(verdict["valid"], is_of_machine, "{code}: {verdict:#}");
        let here = check(&file, &["--here"], variables).await;
        assert_eq!(here["valid"], false, "{code}");
        let mut found = here["problems"].as_array().unwrap().iter();
        let problem = found.find(|problem| problem["code"] == code);
        let problem = problem.unwrap_or_else(|| panic!("{code}: {here:#}"));
        assert_eq!(problem["severity"], "error");
        let origin = problem["origin"].as_str().unwrap();
        assert!(origin.starts_with("variable "), "{origin}");
        let ended = output(&file, "run", &[], variables).await;
        assert_eq!(ended.status.code(), Some(1), "{code}: {}", ended.stderr);
    }
    // Nothing was listened on, and nothing was written.
    assert!(
        check(&file, &["--here"], &[]).await["valid"]
            .as_bool()
            .unwrap()
    );
}

async fn get(address: SocketAddr, host: &str) -> String {
    let mut client = Connection::http1(address).await.expect("it listens");
    let request = client.request_for(host, "GET", "/");
    let request = request.body(body::empty()).expect("it is a request");
    client.send(request).await.expect("it answers").text()
}

/// The environment is that of the start; files of all layers are followed.
#[tokio::test]
async fn variables_stay_when_files_of_other_layers_change() {
    let (blue, green) = (Origin::named("blue"), Origin::named("green"));
    let file = ConfigFile::new(BASE);
    let staging = file.folder().join("appsettings.Staging.json");
    let path = file.argument();
    let mut command = command(&["run", "--config", &path]);
    command.env("DOTNET_ENVIRONMENT", "Staging");
    command.env(
        "ReverseProxy__Clusters__c__Destinations__d__Address",
        format!("http://{}/", blue.addr()),
    );
    let mut process = peers::spawn(command);
    process.wait_for_output(READY).await;
    assert!(
        process.output().contains("1 variable of the environment"),
        "{}",
        process.output()
    );
    let address = address_after(&process.output(), "listening on http://");
    assert_eq!(get(address, "a").await, "blue");

    // A file that appears takes effect; the variable stays above it.
    let second = |name: &str, origin: SocketAddr| {
        json!({ "ReverseProxy": {
            "Routes": { "second": { "ClusterId": "second", "Match": { "Hosts": [name] } } },
            "Clusters": {
                "second": { "Destinations": { "d": { "Address": format!("http://{origin}/") } } },
                "c": { "Destinations": { "d": { "Address": "http://127.0.0.1:1/" } } },
            },
        }})
        .to_string()
    };
    fs::write(&staging, second("second", green.addr())).unwrap();
    eventually("the new route answers", async || {
        get(address, "second").await == "green"
    })
    .await;
    assert_eq!(get(address, "a").await, "blue");

    fs::write(
        &staging,
        "{ \"ReverseProxy\": { \"Routes\": { \"second\": {\n\"Order\": \"x\" } } } }",
    )
    .unwrap();
    process.wait_for_output("appsettings.Staging.json:2").await;
    assert_eq!(get(address, "second").await, "green");
}
