//! Answers of a Consul agent.

use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use discovery_consul::client::{
    ConsulClient, ConsulOptions, Query, Token, Transport, TransportError,
};
use http::{HeaderName, HeaderValue, Request, Response, StatusCode};

use crate::input::{MAX_BYTES, check_message, paused};

/// The token of the client. Answers may repeat it.
const TOKEN: &str = "b1gs33cr3t-that-nobody-may-read";

/// Fuzzes the client with one answer for every call: a status line, header lines, an empty line,
/// and the body.
///
/// ```text
/// 200
/// X-Consul-Index: 12
///
/// [{"Node":{"Node":"n1"},"Service":{"ID":"web-1","Service":"web","Port":80}}]
/// ```
///
/// An error is short, on one line, without terminal control characters and without the token. The
/// same answer has the same result again.
pub fn consul_answers(data: &[u8]) {
    let answer = Arc::new(read(&data[..data.len().min(MAX_BYTES)]));
    let token = Token::new(TOKEN).expect("it is one");
    let client = ConsulClient::builder(ConsulOptions::default().with_token(token))
        .transport(Agent(answer))
        .build()
        .expect("the options are right");
    paused().block_on(async {
        let said = all(&client).await;
        for error in said.iter().filter_map(|said| said.strip_prefix("! ")) {
            check_message(error);
            assert!(!error.contains(TOKEN), "{error}");
        }
        assert_eq!(said, all(&client).await);
    });
}

/// The result of each call. An error begins with `! `.
async fn all(client: &ConsulClient) -> Vec<String> {
    let query = Query::new();
    macro_rules! said {
        ($($call:expr),* $(,)?) => {
            vec![$(match $call.await {
                Ok(answer) => format!("{answer:?}"),
                Err(error) => format!("! {}", error.explained()),
            }),*]
        };
    }
    said![
        client.services(&query),
        client.health_service("web", &query),
        client.passing("web", &query),
        client.checks(&query),
        client.datacenters(),
        client.leader(),
        client.kv_get("proxy/defaults", &query),
        client.kv_list("proxy", &query),
    ]
}

/// An agent with the same answer for every call.
struct Agent(Arc<Response<Bytes>>);

#[async_trait]
impl Transport for Agent {
    async fn send(
        &self,
        _: Request<Bytes>,
        max_body: usize,
    ) -> Result<Response<Bytes>, TransportError> {
        assert!(max_body > MAX_BYTES);
        Ok((*self.0).clone())
    }
}

fn read(data: &[u8]) -> Response<Bytes> {
    let end = data.windows(2).position(|two| two == b"\n\n");
    let (head, body) = match end {
        Some(end) => (&data[..end], &data[end + 2..]),
        None => (data, &[][..]),
    };
    let mut response = Response::new(Bytes::copy_from_slice(body));
    let mut lines = head.split(|byte| *byte == b'\n');
    let status = lines
        .next()
        .and_then(|line| StatusCode::from_bytes(line).ok());
    *response.status_mut() = status.unwrap_or(StatusCode::OK);
    for line in lines {
        let mut parts = line.splitn(2, |byte| *byte == b':');
        let name = parts
            .next()
            .and_then(|name| HeaderName::from_bytes(name).ok());
        let value = parts.next().unwrap_or_default();
        let value = HeaderValue::from_bytes(value.trim_ascii()).ok();
        if let (Some(name), Some(value)) = (name, value) {
            response.headers_mut().append(name, value);
        }
    }
    response
}
