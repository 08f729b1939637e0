//! Discovery of many services from an emulated Service Fabric cluster.

use std::fs;
use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};

use super::Series;
use super::program::{Admin, MeasuredProgram};

/// Services in an application.
const EACH: usize = 100;

/// The time after the first configuration: several rounds, in which everything was read once more.
const AFTER: Duration = Duration::from_secs(60);

pub(super) fn measure(gateway: &Path, emulator: &Path, services: usize) -> crate::Result<Series> {
    let folder = std::env::temp_dir().join(format!("services-{}", std::process::id()));
    fs::create_dir_all(&folder)?;
    let topology = folder.join("topology.toml");
    fs::write(&topology, cluster(services.div_ceil(EACH)))?;
    let topology = topology.to_string_lossy();
    let arguments = ["serve", "--listen", "127.0.0.1:0", "--topology", &topology];
    let cluster = MeasuredProgram::start(emulator, &arguments)?;
    let address = cluster.address_after("http://")?;
    let file = folder.join("gateway.json");
    let config = json!({
        "Listeners": { "web": { "Address": "127.0.0.1:0" } },
        "Admin": { "Address": "127.0.0.1:0" },
        "ServiceFabricDiscovery": {
            "Gateways": [format!("http://{address}")],
            "DiscoveryPeriod": "10s",
            "DiscoverInsecureHttpDestinations": true,
            "ReportServicesHealth": false,
        },
        "ReverseProxy": { "Routes": {}, "Clusters": {} },
    });
    fs::write(&file, config.to_string())?;
    let program = MeasuredProgram::start(gateway, &["run", "--config", &file.to_string_lossy()])?;
    let admin = Admin(program.address_after("admin page on http://")?);
    let all = json!(services.div_ceil(EACH) * EACH);
    admin.wait("the discovery of all services", |overview: &Value| {
        overview["counts"]["clusters"] == all
    })?;
    let mut series = Series::new();
    series.add("at most until all are served", program.peak()?);
    series.add("when all are served", program.resident()?);
    super::pause(AFTER);
    series.add("at most in a minute after it", program.peak()?);
    series.add("a minute later", program.resident()?);
    drop((program, cluster));
    fs::remove_dir_all(folder)?;
    Ok(series)
}

/// A cluster with so many applications of a hundred services, each with a route of its own and three instances.
fn cluster(applications: usize) -> String {
    let mut text =
        "[cluster]\nname = \"many\"\nnodes = 20\n\n[[application_types]]\nname = \"StoreType\"\n\
        parameters = { Host = \"store.example\" }\n"
            .to_owned();
    for service in 0..EACH {
        text += &format!(
            r#"
[application_types.service_types.Type{service:02}.labels.YARP]
Enable = true
Routes.main.Path = "/frontend-{service:02}/{{**rest}}"
Routes.main.Hosts = "[Host]"
Routes.main."Transforms.[0].PathRemovePrefix" = "/frontend"
Backend.LoadBalancingPolicy = "PowerOfTwoChoices"
Backend.Metadata.Team = "store"
"#
        );
    }
    text += &format!(
        r#"
[applications."Store{{n}}"]
type = "StoreType"
count = {applications}
parameters = {{ Host = "store{{n}}.example" }}
"#
    );
    for service in 0..EACH {
        text += &format!(
            "\n[applications.\"Store{{n}}\".services.Frontend{service:02}]\ntype = \"Type{service:02}\"\ninstances = 3\n"
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cluster_has_so_many_applications() {
        let text = cluster(7);
        let topology: toml::Table = text.parse().unwrap();
        let store = &topology["applications"]["Store{n}"];
        assert_eq!(store["count"].as_integer(), Some(7));
        let services = store["services"].as_table().unwrap();
        assert_eq!(services.len(), EACH);
        assert_eq!(services["Frontend07"]["type"].as_str(), Some("Type07"));
    }
}
