//! Waves of clients that ask for much and read nothing.

use std::fs;
use std::path::Path;
use std::time::Duration;

use super::program::{Admin, MeasuredProgram};
use super::{Series, client, origin};

/// Connections of HTTP/1.1 and of HTTP/2 in a wave, and the streams of each of the latter.
const HTTP1: usize = 100;
const HTTP2: usize = 16;
const STREAMS: u32 = 100;

/// Number of waves.
const WAVES: usize = 4;

/// The time for which the clients of a wave stay.
const WAVE: Duration = Duration::from_secs(3);

/// The time after a wave at which is looked what it left behind.
const AFTER: Duration = Duration::from_secs(2);

pub(super) fn measure(gateway: &Path) -> crate::Result<Series> {
    let origin = origin::start()?;
    let folder = std::env::temp_dir().join(format!("waves-{}", std::process::id()));
    fs::create_dir_all(&folder)?;
    let file = folder.join("gateway.json");
    // A small budget, so that the measurement does not depend on the machine.
    let config = serde_json::json!({
        "Listeners": { "web": { "Address": "127.0.0.1:0" } },
        "Admin": { "Address": "127.0.0.1:0" },
        "Server": { "Limits": { "MemoryBytes": 16 << 20 } },
        "ReverseProxy": {
            "Routes": { "all": { "ClusterId": "c", "Match": { "Path": "/{**rest}" } } },
            "Clusters": { "c": { "Destinations": { "d": { "Address": format!("http://{origin}") } } } },
        },
    });
    fs::write(&file, config.to_string())?;
    let program = MeasuredProgram::start(gateway, &["run", "--config", &file.to_string_lossy()])?;
    let address = program.address_after("listening on http://")?;
    let admin = Admin(program.address_after("admin page on http://")?);
    admin.wait("the start", |overview| overview["ready"] == true)?;
    client::small(address)?;
    let mut series = Series::new();
    super::pause(AFTER);
    series.add("at the start", program.resident()?);
    for wave in 1..=WAVES {
        program.forget_peak()?;
        let mut clients = Vec::new();
        for _ in 0..HTTP1 {
            clients.push(client::http1(address)?);
        }
        for _ in 0..HTTP2 {
            clients.push(client::http2(address, STREAMS)?);
        }
        super::pause(WAVE);
        series.add(format!("at most in wave {wave}"), program.peak()?);
        drop(clients);
        super::pause(AFTER);
        client::small(address)?;
        series.add(format!("2 s after wave {wave}"), program.resident()?);
    }
    drop(program);
    fs::remove_dir_all(folder)?;
    Ok(series)
}
