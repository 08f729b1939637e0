//! Static files of the admin page.

use http::StatusCode;

use super::respond::Answer;

const SCRIPT: &str = "text/javascript; charset=utf-8";

pub(super) fn answer(path: &str) -> Answer {
    match path {
        "/" | "/index.html" => {
            Answer::asset("text/html; charset=utf-8", include_str!("page/index.html"))
        }
        "/assets/style.css" => {
            Answer::asset("text/css; charset=utf-8", include_str!("page/style.css"))
        }
        "/assets/icon.svg" => Answer::asset("image/svg+xml", include_str!("page/icon.svg")),
        "/assets/app.js" => Answer::asset(SCRIPT, include_str!("page/app.js")),
        "/assets/clusters.js" => Answer::asset(SCRIPT, include_str!("page/clusters.js")),
        "/assets/dom.js" => Answer::asset(SCRIPT, include_str!("page/dom.js")),
        "/assets/explain.js" => Answer::asset(SCRIPT, include_str!("page/explain.js")),
        "/assets/flow.js" => Answer::asset(SCRIPT, include_str!("page/flow.js")),
        "/assets/lists.js" => Answer::asset(SCRIPT, include_str!("page/lists.js")),
        _ => Answer::error(
            StatusCode::NOT_FOUND,
            "no such page; the paths are listed at `/` and `/api/v1/overview` is a good start",
        ),
    }
}
