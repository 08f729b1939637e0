//! Reloads of a file with many routes.

use std::fs;
use std::path::Path;
use std::time::Duration;

use serde_json::{Map, Value, json};

use super::Series;
use super::program::{Admin, MeasuredProgram};

/// Number of reloads.
const RELOADS: usize = 6;

/// The time after a reload at which is looked what it left behind: replaced configurations are freed in the background.
const AFTER: Duration = Duration::from_secs(5);

pub(super) fn measure(gateway: &Path, routes: usize) -> crate::Result<Series> {
    let folder = std::env::temp_dir().join(format!("reloads-{}", std::process::id()));
    fs::create_dir_all(&folder)?;
    let file = folder.join("gateway.json");
    fs::write(&file, config(routes, 0).to_string())?;
    let program = MeasuredProgram::start(gateway, &["run", "--config", &file.to_string_lossy()])?;
    let admin = Admin(program.address_after("admin page on http://")?);
    let serves = |overview: &Value| {
        overview["ready"] == true && overview["counts"]["routes"] == json!(routes)
    };
    let overview = admin.wait("the start", serves)?;
    let mut revision = overview["revision"].clone();
    let mut series = Series::new();
    super::pause(AFTER);
    series.add("at most at the start", program.peak()?);
    series.add("after the start", program.resident()?);
    for reload in 1..=RELOADS {
        program.forget_peak()?;
        // Written aside, so that no half of it is read.
        let aside = folder.join("next");
        fs::write(&aside, config(routes, reload).to_string())?;
        fs::rename(&aside, &file)?;
        let overview = admin.wait("the reload", |now| now["revision"] != revision)?;
        revision = overview["revision"].clone();
        super::pause(AFTER);
        series.add(format!("at most in reload {reload}"), program.peak()?);
        series.add(format!("after reload {reload}"), program.resident()?);
    }
    drop(program);
    fs::remove_dir_all(folder)?;
    Ok(series)
}

/// A configuration with so many routes to clusters of their own. Every address differs between versions.
fn config(routes: usize, version: usize) -> Value {
    let each = (0..routes).map(|n| {
        let route = json!({ "ClusterId": format!("cluster-{n}"), "Match": { "Path": format!("/route-{n}/{{**rest}}") } });
        (format!("route-{n}"), route)
    });
    let clusters = (0..routes).map(|n| {
        let address = format!("http://10.{version}.{}.{}:8080", n / 250, n % 250);
        let cluster = json!({ "Destinations": { "d": { "Address": address } } });
        (format!("cluster-{n}"), cluster)
    });
    json!({
        "Listeners": { "web": { "Address": "127.0.0.1:0" } },
        "Admin": { "Address": "127.0.0.1:0" },
        "ReverseProxy": {
            "Routes": each.collect::<Map<_, _>>(),
            "Clusters": clusters.collect::<Map<_, _>>(),
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_have_the_same_routes_and_other_addresses() {
        let (one, other) = (config(300, 1), config(300, 2));
        assert_eq!(
            one["ReverseProxy"]["Routes"],
            other["ReverseProxy"]["Routes"]
        );
        let address =
            |of: &Value| of["ReverseProxy"]["Clusters"]["cluster-260"]["Destinations"].clone();
        assert_eq!(
            address(&one),
            json!({ "d": { "Address": "http://10.1.1.10:8080" } })
        );
        assert_ne!(address(&one), address(&other));
    }
}
