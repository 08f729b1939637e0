//! What an idle connection costs. Most connections of a proxy are idle, so a few hundred bytes are what it is about.

use tokio::net::{TcpListener, TcpStream};

use super::*;
use crate::Proxy;

#[tokio::test]
async fn an_idle_connection_is_small() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let stream = TcpStream::connect(address).await.unwrap();
    let Bench { worker, .. } = Bench::new(Limits::default());
    let (proxy, _driver) = Proxy::builder().build().unwrap();
    let connection = serve_cleartext(
        stream,
        ConnectionInfo::new(address),
        Rc::new(Served::new(proxy.service())),
        worker.enter(),
        worker,
    );
    let future = size_of_val(&connection);
    let state = size_of::<ConnectionState>();
    let timer = size_of::<tokio::time::Sleep>();
    let sum = future + state + timer;
    // With what the runtime adds to it, a task is a block of 1 KiB up to here.
    assert!(future <= 912, "{future} bytes");
    assert!(sum <= 1250, "{future} and {state} and {timer} bytes");
}
