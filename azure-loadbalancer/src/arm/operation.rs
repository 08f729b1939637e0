//! Writes that continue after their response.
//!
//! The resource manager names the URL to poll (`Azure-AsyncOperation`, else `Location`), or the state is in
//! the resource itself. Without any of these, the write is complete.

use std::time::Duration;

use http::{Method, StatusCode};
use serde::Deserialize;
use tokio::time::{Instant, sleep};
use url::Url;

use super::answer::Answer;
use super::call::{ArmCall, Precondition};
use super::call_log::CallClass;
use super::client::ArmClient;
use super::error::{ArmError, ArmErrorKind, ErrorBody};
use crate::progress::logged_while_under_way;

/// The minimum wait between two polls, whatever the resource manager requests.
const SHORTEST_INTERVAL: Duration = Duration::from_millis(100);
/// The maximum wait between two polls.
const LONGEST_INTERVAL: Duration = Duration::from_secs(30);

#[derive(Deserialize)]
struct OperationBody {
    status: String,
    #[serde(default)]
    error: Option<ErrorBody>,
}

#[derive(Default, Deserialize)]
struct ResourceBody {
    #[serde(default)]
    properties: Option<StateBody>,
}

#[derive(Deserialize)]
struct StateBody {
    #[serde(default, rename = "provisioningState")]
    state: Option<String>,
}

/// The URL at which the progress of a write can be polled.
enum Trail {
    Operation(Url),
    Location(Url),
    Resource(Url),
}

/// The progress of a write.
enum Progress {
    Over,
    UnderWay,
}

impl ArmClient {
    /// Waits for the completion of a write with this response.
    pub(super) async fn finish(&self, call: &ArmCall<'_>, answer: &Answer) -> Result<(), ArmError> {
        let Some(trail) = self.trail(call, answer)? else {
            return Ok(());
        };
        let (url, name) = match &trail {
            Trail::Operation(url) | Trail::Location(url) | Trail::Resource(url) => {
                (url.clone(), call.name.clone())
            }
        };
        let question = ArmCall {
            method: Method::GET,
            class: CallClass::Poll,
            url,
            name,
            body: bytes::Bytes::new(),
            precondition: Precondition::None,
        };
        logged_while_under_way(&call.name, self.follow(call, &trail, &question, answer)).await
    }

    /// Polls until the write is over.
    async fn follow(
        &self,
        call: &ArmCall<'_>,
        trail: &Trail,
        question: &ArmCall<'_>,
        answer: &Answer,
    ) -> Result<(), ArmError> {
        let options = &self.inner.options;
        let deadline = Instant::now() + options.operation_timeout;
        let mut interval = options.poll_interval;
        let mut asked = answer.retry_after();
        loop {
            // Without a wait, polls would follow as fast as the network allows.
            let wait = asked.map_or_else(
                || interval.min(LONGEST_INTERVAL),
                |asked| asked.max(SHORTEST_INTERVAL),
            );
            if Instant::now() + wait > deadline {
                let message = format!("it was not over within {:?}", options.operation_timeout);
                return Err(ArmError::new(ArmErrorKind::TimedOut, &call.name, message));
            }
            sleep(wait).await;
            let answer = self.send(question).await?;
            match progress(trail, call, &answer)? {
                Progress::Over => return Ok(()),
                Progress::UnderWay => {}
            }
            asked = answer.retry_after();
            interval = interval.mul_f64(1.5).min(LONGEST_INTERVAL);
        }
    }

    fn trail(&self, call: &ArmCall<'_>, answer: &Answer) -> Result<Option<Trail>, ArmError> {
        let own = |address: &str| self.inner.same_origin(&call.name, address);
        if let Some(address) = answer.header("azure-asyncoperation") {
            return own(address).map(Trail::Operation).map(Some);
        }
        if answer.status == StatusCode::ACCEPTED {
            if let Some(address) = answer.header("location") {
                return own(address).map(Trail::Location).map(Some);
            }
            return Ok(None);
        }
        if call.method != Method::PUT {
            return Ok(None);
        }
        let resource: ResourceBody = answer.read(&call.name)?;
        match of_state(call, resource)? {
            Progress::Over => Ok(None),
            Progress::UnderWay => Ok(Some(Trail::Resource(call.url.clone()))),
        }
    }
}

fn progress(trail: &Trail, call: &ArmCall<'_>, answer: &Answer) -> Result<Progress, ArmError> {
    match trail {
        Trail::Operation(_) => {
            let body: OperationBody = answer.read(&call.name)?;
            ended(call, &body.status, body.error)
        }
        Trail::Location(_) if answer.status == StatusCode::ACCEPTED => Ok(Progress::UnderWay),
        Trail::Location(_) => Ok(Progress::Over),
        Trail::Resource(_) => of_state(call, answer.read(&call.name)?),
    }
}

/// Returns the progress from a resource's state. Without a state the write is complete.
fn of_state(call: &ArmCall<'_>, resource: ResourceBody) -> Result<Progress, ArmError> {
    match resource.properties.and_then(|properties| properties.state) {
        Some(state) => ended(call, &state, None),
        None => Ok(Progress::Over),
    }
}

fn ended(call: &ArmCall<'_>, status: &str, error: Option<ErrorBody>) -> Result<Progress, ArmError> {
    let is = |word: &str| status.eq_ignore_ascii_case(word);
    if is("Succeeded") {
        return Ok(Progress::Over);
    }
    // Any other state is an intermediate step; the time limit ends those that lead nowhere.
    if !is("Failed") && !is("Canceled") {
        return Ok(Progress::UnderWay);
    }
    let error = error.unwrap_or_default();
    let mut error = ArmError::of_body(ArmErrorKind::Operation, &call.name, error);
    error.explain_operation(if is("Failed") {
        "it was taken and has failed"
    } else {
        "it was taken and was cancelled"
    });
    Err(error)
}
