//! The emulator's own API, below `/emulator`: the log of requests, and faults.

use bytes::Bytes;
use http::header::ORIGIN;
use http::{Method, Request, StatusCode};
use serde_json::{Value, json};

use super::answer::{Reply, method_not_allowed};
use super::fault::Fault;
use super::machine::Machine;
use super::rejection::Rejection;

pub(super) fn answer(machine: &mut Machine, request: &Request<Bytes>) -> Result<Reply, Rejection> {
    // Web pages can send requests to this machine, but browsers add their origin.
    if request.headers().contains_key(ORIGIN) {
        let message = "Pages of a browser may not use the emulator's own calls.";
        return Err(Rejection::new(
            StatusCode::FORBIDDEN,
            "CrossOriginRequest",
            message,
        ));
    }
    match (request.method(), request.uri().path().trim_end_matches('/')) {
        (&Method::GET, "/emulator") => Ok(Reply::ok(help())),
        (&Method::GET, "/emulator/requests") => Ok(Reply::ok(json!({
            "counts": machine.counts(),
            "requests": machine.requests(),
        }))),
        (&Method::DELETE, "/emulator/requests") => {
            machine.clear_log();
            Ok(done())
        }
        (&Method::GET, "/emulator/resources") => {
            Ok(Reply::ok(json!({ "value": machine.resources() })))
        }
        (&Method::POST, "/emulator/faults") => {
            let fault: Fault = serde_json::from_slice(request.body()).map_err(|error| {
                let example = r#"{"method":"PUT","path":"loadBalancers","action":{"kind":"answer","status":429,"code":"TooManyRequests","retry_after":7}}"#;
                Rejection::bad("InvalidFault", format!("This is no fault: {error}. One is for example {example}"))
            })?;
            machine.inject(fault);
            Ok(done())
        }
        (&Method::DELETE, "/emulator/faults") => {
            machine.clear_faults();
            Ok(done())
        }
        (
            method,
            "/emulator" | "/emulator/requests" | "/emulator/resources" | "/emulator/faults",
        ) => Err(method_not_allowed(method)),
        (_, path) => Err(Rejection::new(
            StatusCode::NOT_FOUND,
            "NotFound",
            format!("There is no `{path}`; `/emulator` lists what there is."),
        )),
    }
}

fn done() -> Reply {
    Reply {
        status: StatusCode::NO_CONTENT,
        body: None,
        headers: Vec::new(),
    }
}

fn help() -> Value {
    json!({
        "GET /emulator/requests": "the last requests, and how many there were of each class",
        "DELETE /emulator/requests": "forgets them",
        "GET /emulator/resources": "everything that exists",
        "POST /emulator/faults": "injects a fault into later requests",
        "DELETE /emulator/faults": "nothing goes wrong from here on",
    })
}
