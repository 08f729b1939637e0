//! Connections that the gateway did not accept itself.

use servicefabric_emulator::gateway::{Emulator, Role};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::{builder, topology};

/// Returns the response to a request over a pipe, up to the end of the stream.
async fn over_a_pipe(emulator: &Emulator, request: &str) -> String {
    let (mut client, server) = tokio::io::duplex(64 * 1024);
    let talk = async move {
        let written = client.write_all(request.as_bytes()).await;
        written.expect("the pipe is open");
        let mut answer = String::new();
        let read = client.read_to_string(&mut answer).await;
        read.expect("answers are text");
        answer
    };
    let (answer, ()) = tokio::join!(talk, emulator.serve(server));
    answer
}

#[tokio::test]
async fn a_pipe_in_memory_is_a_connection() {
    let emulator = builder().start().await.unwrap();
    let two = "GET /$/GetClusterVersion?api-version=6.4 HTTP/1.1\r\nhost: a\r\n\r\n\
               GET /Nodes/_Node_0?api-version=6.0 HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n";
    let answers = over_a_pipe(&emulator, two).await;
    assert_eq!(
        answers.matches("HTTP/1.1 200 OK\r\n").count(),
        2,
        "{answers}"
    );
    assert!(answers.contains(r#"{"Version":""#), "{answers}");
    assert!(answers.contains(r#""Name":"_Node_0""#), "{answers}");
}

#[tokio::test]
async fn over_a_pipe_a_client_has_to_say_who_it_is_as_well() {
    let emulator = Emulator::builder(topology())
        .listen("127.0.0.1:0")
        .manual_time()
        .bearer("t0ken", Role::Admin)
        .start()
        .await
        .unwrap();
    let request = |field: &str| {
        format!(
            "GET /Nodes?api-version=6.0 HTTP/1.1\r\nhost: a\r\nconnection: close\r\n{field}\r\n"
        )
    };
    let rejected = over_a_pipe(&emulator, &request("")).await;
    assert!(rejected.starts_with("HTTP/1.1 401 "), "{rejected}");
    let let_in = over_a_pipe(&emulator, &request("authorization: Bearer t0ken\r\n")).await;
    assert!(let_in.starts_with("HTTP/1.1 200 "), "{let_in}");
}
