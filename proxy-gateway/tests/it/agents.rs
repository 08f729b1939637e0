//! Agents of destinations, through the program.

use testkit::agent::Agent;
use testkit::origin::Origin;
use testkit::time::eventually;

use crate::common::{ConfigFile, address_after, output};
use crate::run::{get, run};

/// The words of agents decide in the program, which shows them.
#[tokio::test]
async fn agents_of_a_file_are_asked() {
    let (blue, green) = (Origin::named("blue"), Origin::named("green"));
    let (of_blue, of_green) = (Agent::saying("ready up\n"), Agent::saying("ready up\n"));
    let text = |interval: &str| {
        let destination = |origin: &Origin, agent: &Agent| {
            format!(
                r#"{{ "Address": "{}", "Metadata": {{ "AgentCheck.Port": "{}" }} }}"#,
                origin.url(),
                agent.port()
            )
        };
        format!(
            r#"{{
                "Listeners": {{ "web": {{ "Address": "127.0.0.1:0" }} }},
                "Admin": {{ "Address": "127.0.0.1:0" }},
                "ReverseProxy": {{
                    "Routes": {{ "all": {{ "ClusterId": "c", "Match": {{ "Path": "/{{**rest}}" }} }} }},
                    "Clusters": {{ "c": {{
                        "LoadBalancingPolicy": "RoundRobin",
                        "HealthCheck": {{ "Agent": {{ "Enabled": true, "Interval": "{interval}", "Timeout": "5s" }} }},
                        "Destinations": {{ "blue": {}, "green": {} }}
                    }} }}
                }}
            }}"#,
            destination(&blue, &of_blue),
            destination(&green, &of_green),
        )
    };
    let file = ConfigFile::new(&text("00:00:00.02"));
    let (process, address) = run(&file).await;
    let admin = address_after(&process.output(), "admin page on http://");
    let shown = async |id: &str| {
        let cluster = get(admin, "/api/v1/clusters/c").await;
        let cluster: serde_json::Value = serde_json::from_str(&cluster).unwrap();
        let destinations = cluster["destinations"].as_array().unwrap().clone();
        let mut each = destinations.into_iter();
        each.find(|destination| destination["id"] == id).unwrap()
    };
    let hears = async |id: &str, agent: &Agent, line: &str| {
        agent.say(format!("{line}\n"));
        eventually(format!("{id} is heard to say {line}"), async || {
            shown(id).await["agent"]["last"] == line
        })
        .await;
    };
    hears("green", &of_green, "ready up 100%").await;
    hears("blue", &of_blue, "down 50% maxconn:7 #disk full").await;
    let served = async || {
        let mut served = String::new();
        for _ in 0..4 {
            served += get(address, "/").await.trim();
        }
        served
    };
    assert_eq!(served().await, "green".repeat(4));
    let blue_now = shown("blue").await;
    assert_eq!(blue_now["why"], "down by its agent", "{blue_now}");
    let agent = &blue_now["agent"];
    for (key, value) in [
        ("health", "down"),
        ("reason", "disk full"),
        ("mode", "ready"),
        ("weight", "50%"),
    ] {
        assert_eq!(agent[key], value, "{agent}");
    }
    assert_eq!(agent["max_connections"], 7, "{agent}");
    let metrics = get(admin, "/metrics").await;
    for (id, health) in [("blue", -1), ("green", 1)] {
        let line =
            format!("proxy_destination_health{{cluster=\"c\",destination=\"{id}\"}} {health}\n");
        assert!(metrics.contains(&line), "{line} is not in {metrics}");
    }

    // The words outlive a change of the file.
    let reloads = async || {
        let metrics = get(admin, "/metrics").await;
        let mut lines = metrics.lines();
        let line =
            lines.find(|line| line.starts_with("proxy_config_reload_total{result=\"success"));
        line.unwrap().to_owned()
    };
    let before = reloads().await;
    file.write(&text("00:00:00.03"));
    eventually("the file is read", async || reloads().await != before).await;
    assert_eq!(shown("blue").await["why"], "down by its agent");
    hears("blue", &of_blue, "up 100%").await;
    hears("green", &of_green, "maint").await;
    assert_eq!(served().await, "blue".repeat(4));
    let why = shown("green").await["why"].clone();
    assert_eq!(why, "in maintenance by its agent");

    // A port is missing.
    let without = text("00:00:00.03").replace("AgentCheck.Port", "Other");
    let checked = output(&["check", "--config", &ConfigFile::new(&without).argument()]).await;
    let told = format!("{}{}", checked.stdout, checked.stderr);
    assert!(told.contains("HealthCheck/Agent"), "{told}");
}
