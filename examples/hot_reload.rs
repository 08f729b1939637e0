//! cargo run --package examples --example hot_reload
//!
//! A configuration file that is edited while requests run. A valid edit takes effect at once and
//! fails no request; an invalid one changes nothing and reports the errors.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use discovery_core::{FileProvider, Merge, MergedState};
use examples::{Failure, Folder, get, send, start_service, wait_unless_once};
use http::Method;
use proxy_runtime::Proxy;
use proxy_runtime::server::{Listener, Server};
use tokio::sync::watch;

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let blue = start_service("blue").await?;
    let green = start_service("green").await?;
    let folder = Folder::create("hot-reload")?;
    let file = folder.path().join("appsettings.json");
    write(&file, &blue)?;

    let merged = Merge::new()
        .provider(FileProvider::open([&file]).await?)
        .start();
    merged.ready().await;
    let mut state = merged.subscribe();
    let (proxy, driver) = Proxy::builder().snapshots(merged.snapshots()).build()?;
    tokio::spawn(driver);
    let server = Server::for_proxy(&proxy)
        .with_listener(Listener::http("127.0.0.1:0".parse()?))
        .bind()?;
    let address = server.local_addrs()[0];
    let running = server.start()?;
    println!(
        "curl http://{address}/    # edit {} and ask again",
        file.display()
    );

    // A continuous load.
    let stop = Arc::new(AtomicBool::new(false));
    let failed = Arc::new(AtomicU64::new(0));
    let load = tokio::spawn({
        let (stop, failed) = (Arc::clone(&stop), Arc::clone(&failed));
        async move {
            let mut asked = 0_u64;
            while !stop.load(Ordering::Relaxed) {
                let answer = send(address, Method::GET, "/").await;
                let good = answer.is_ok_and(|answer| answer.status == 200);
                failed.fetch_add(u64::from(!good), Ordering::Relaxed);
                asked += 1;
            }
            asked
        }
    });

    assert_eq!(get(address, "/").await?.text, "blue: GET /\n");
    println!("the file names another destination");
    let mut generations = proxy.generations();
    write(&file, &green)?;
    generations.changed().await?;
    assert_eq!(get(address, "/").await?.text, "green: GET /\n");

    println!("the file is broken");
    std::fs::write(
        &file,
        r#"{ "ReverseProxy": { "Clusters": { "web": { "Destinatons": {} } } } }"#,
    )?;
    for problem in &until(&mut state, |state| !state.problems.is_empty())
        .await?
        .problems
    {
        println!("  {problem}");
    }
    assert_eq!(get(address, "/").await?.text, "green: GET /\n");

    println!("the file is corrected");
    write(&file, &blue)?;
    until(&mut state, |state| state.problems.is_empty()).await?;

    stop.store(true, Ordering::Relaxed);
    let asked = load.await?;
    println!(
        "{asked} requests meanwhile, {} failed",
        failed.load(Ordering::Relaxed)
    );
    assert_eq!(failed.load(Ordering::Relaxed), 0);
    wait_unless_once().await?;
    running.shutdown(Duration::from_secs(5)).await;
    Ok(())
}

async fn until(
    state: &mut watch::Receiver<Arc<MergedState>>,
    wanted: impl Fn(&MergedState) -> bool,
) -> Result<Arc<MergedState>, Failure> {
    Ok(Arc::clone(&*state.wait_for(|state| wanted(state)).await?))
}

/// Replaces the file like editors and deployments do: with a rename.
fn write(file: &Path, destination: &str) -> Result<(), Failure> {
    let text = format!(
        r#"{{
            "ReverseProxy": {{
                "Routes": {{ "all": {{ "ClusterId": "web", "Match": {{ "Path": "/{{**rest}}" }} }} }},
                "Clusters": {{ "web": {{ "Destinations": {{ "1": {{ "Address": "{destination}" }} }} }} }}
            }}
        }}"#
    );
    let new = file.with_extension("new");
    std::fs::write(&new, text)?;
    std::fs::rename(&new, file)?;
    Ok(())
}
