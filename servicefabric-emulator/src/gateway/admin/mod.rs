//! The emulator's own API, below `/emulator`: faults and operations of a cluster, and time.
//!
//! | call | body | does |
//! |---|---|---|
//! | `GET /emulator` | | time, speed, faults that wait |
//! | `POST /emulator/time/advance` | `{"By":"30s"}` | moves the clock, by at most 31 days |
//! | `GET`, `POST`, `DELETE /emulator/faults` | a [`Fault`](super::Fault) | lists, injects, forgets faults |
//! | `POST /emulator/page-size` | `{"Items":2}`; `{"Items":null}` ends it | cuts all lists |
//! | `POST /emulator/resolve-cache` | `{"Age":"infinite"}` | how old answers of the naming service may be |
//! | `POST /emulator/report-interval` | `{"Interval":0}` | how often reports are sent |
//! | `POST /emulator/nodes/NODE/stop`, `/start` | | power off, power on |
//! | `POST /emulator/nodes/NODE/crash` | `{"Application","Manifest","CodePackage","ExitCode"}` | ends a process |
//! | `POST /emulator/services/SERVICE/$/scale` | `{"Count":5}` | instances or replicas |
//! | `POST /emulator/applications/APPLICATION/$/upgrade` | `{"Version":"2.0.0"}` | a rolling upgrade |
//! | `POST /emulator/partitions/PARTITION/status` | `{"Status":"InQuorumLoss"}`; `{"Status":null}` ends it | shows this status |
//! | `POST /emulator/partitions/PARTITION/replicas/REPLICA/drain` | `{"For":"60s"}` | takes it out of the naming service |
//! | `POST /emulator/partitions/PARTITION/replicas/REPLICA/address` | `{"Address":"…"}`; `{"Address":null}` ends it | publishes any text |
//! | `POST /emulator/partitions/PARTITION/replicas/REPLICA/flap` | `{"Every":"5s"}`, 0 ends it | changes the address again and again |

mod body;
mod cluster;
mod control;
mod origin;

use super::route::Route;

pub(crate) use self::control::move_time;
pub(crate) use self::origin::check_origin;

/// Returns true if the path belongs to the emulator's own API, which no fault affects.
pub(crate) fn is_own(path: &str) -> bool {
    path.strip_prefix("/emulator")
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

pub(super) const ROUTES: &[Route] = &[
    Route::get("/emulator", control::overview).unversioned(),
    Route::post("/emulator/time/advance", control::overview)
        .unversioned()
        .moving_time(),
    Route::get("/emulator/faults", control::faults).unversioned(),
    Route::post("/emulator/faults", control::inject).unversioned(),
    Route::delete("/emulator/faults", control::clear).unversioned(),
    Route::post("/emulator/page-size", control::page_size).unversioned(),
    Route::post("/emulator/resolve-cache", control::resolve_cache).unversioned(),
    Route::post("/emulator/report-interval", control::report_interval).unversioned(),
    Route::post("/emulator/nodes/{node}/stop", cluster::stop_node).unversioned(),
    Route::post("/emulator/nodes/{node}/start", cluster::start_node).unversioned(),
    Route::post("/emulator/nodes/{node}/crash", cluster::crash).unversioned(),
    Route::post("/emulator/services/{service*}/$/scale", cluster::scale).unversioned(),
    Route::post(
        "/emulator/applications/{application*}/$/upgrade",
        cluster::upgrade,
    )
    .unversioned(),
    Route::post(
        "/emulator/partitions/{partition}/status",
        cluster::partition_status,
    )
    .unversioned(),
    Route::post(
        "/emulator/partitions/{partition}/replicas/{replica}/drain",
        cluster::drain,
    )
    .unversioned(),
    Route::post(
        "/emulator/partitions/{partition}/replicas/{replica}/address",
        cluster::address,
    )
    .unversioned(),
    Route::post(
        "/emulator/partitions/{partition}/replicas/{replica}/flap",
        cluster::flap,
    )
    .unversioned(),
];
