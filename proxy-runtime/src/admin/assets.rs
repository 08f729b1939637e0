//! Static files of the admin page.

use http::StatusCode;

use super::respond::AdminResponse;

const SCRIPT: &str = "text/javascript; charset=utf-8";

pub(super) fn answer(path: &str) -> AdminResponse {
    match path {
        "/" | "/index.html" => {
            AdminResponse::asset("text/html; charset=utf-8", include_str!("page/index.html"))
        }
        "/assets/style.css" => {
            AdminResponse::asset("text/css; charset=utf-8", include_str!("page/style.css"))
        }
        "/assets/icon.svg" => AdminResponse::asset("image/svg+xml", include_str!("page/icon.svg")),
        "/assets/address.js" => AdminResponse::asset(SCRIPT, include_str!("page/address.js")),
        "/assets/app.js" => AdminResponse::asset(SCRIPT, include_str!("page/app.js")),
        "/assets/chart.js" => AdminResponse::asset(SCRIPT, include_str!("page/chart.js")),
        "/assets/clusters.js" => AdminResponse::asset(SCRIPT, include_str!("page/clusters.js")),
        "/assets/dom.js" => AdminResponse::asset(SCRIPT, include_str!("page/dom.js")),
        "/assets/explain.js" => AdminResponse::asset(SCRIPT, include_str!("page/explain.js")),
        "/assets/flow.js" => AdminResponse::asset(SCRIPT, include_str!("page/flow.js")),
        "/assets/list.js" => AdminResponse::asset(SCRIPT, include_str!("page/list.js")),
        "/assets/lists.js" => AdminResponse::asset(SCRIPT, include_str!("page/lists.js")),
        "/assets/requests.js" => AdminResponse::asset(SCRIPT, include_str!("page/requests.js")),
        "/assets/routes.js" => AdminResponse::asset(SCRIPT, include_str!("page/routes.js")),
        _ => AdminResponse::error(
            StatusCode::NOT_FOUND,
            "no such page; the paths are listed at `/` and `/api/v1/overview` is a good start",
        ),
    }
}
