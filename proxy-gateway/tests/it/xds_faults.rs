//! A control plane of xDS that hangs, says what is no answer, or breaks off.

use std::io;
use std::net::SocketAddr;

use serde_json::Value;
use testkit::client::{Connection, Load};
use testkit::origin::Origin;
use testkit::time::eventually;
use tokio::io::{AsyncReadExt, AsyncWriteExt, copy, sink};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::AbortHandle;

use crate::xds::{ControlPlane, from_xds, gateway};

/// The fate of connections to a control plane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// Passed on.
    Through,
    /// Accepted, without any answer.
    Silence,
    /// Each is closed as soon as it is there.
    Close,
    /// Answered by a server that does not speak HTTP/2.
    Page,
    /// The bytes of messages are corrupted; the frames stay valid.
    OtherMessages,
    /// DATA frames are relabelled, with their payload unchanged.
    OtherFrames,
    /// The connection ends within the first message.
    Half,
}

/// Stands between the program and a control plane. Those that are connected when the way changes are cut off.
struct Relay {
    address: SocketAddr,
    way: watch::Sender<Way>,
    task: AbortHandle,
}

impl Relay {
    async fn start(to: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("it is bound");
        let (way, ways) = watch::channel(Way::Through);
        let task = tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let mut ways = ways.clone();
                let way = *ways.borrow_and_update();
                tokio::spawn(async move {
                    tokio::select! {
                        _ = relay(client, to, way) => {}
                        _ = ways.changed() => {}
                    }
                });
            }
        });
        Self {
            address,
            way,
            task: task.abort_handle(),
        }
    }

    fn turn(&self, way: Way) {
        self.way.send_replace(way);
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn relay(mut client: TcpStream, to: SocketAddr, way: Way) -> io::Result<()> {
    match way {
        Way::Close => return Ok(()),
        Way::Silence => {
            copy(&mut client, &mut sink()).await?;
            return std::future::pending().await;
        }
        Way::Page => {
            let page = "HTTP/1.1 200 OK\r\nContent-Length: 14\r\n\r\n<p>It works</p>";
            client.write_all(page.as_bytes()).await?;
            copy(&mut client, &mut sink()).await?;
            return Ok(());
        }
        Way::Through | Way::OtherMessages | Way::OtherFrames | Way::Half => {}
    }
    let (mut from_client, mut to_client) = client.into_split();
    let (mut from_plane, mut to_plane) = TcpStream::connect(to).await?.into_split();
    tokio::select! {
        ended = copy(&mut from_client, &mut to_plane) => ended.map(drop),
        ended = answers(&mut from_plane, &mut to_client, way) => ended,
    }
}

/// Passes on the frames of HTTP/2 that a control plane sends.
async fn answers(
    from: &mut (impl AsyncReadExt + Unpin),
    to: &mut (impl AsyncWriteExt + Unpin),
    way: Way,
) -> io::Result<()> {
    const DATA: u8 = 0;
    loop {
        let mut head = [0; 9];
        from.read_exact(&mut head).await?;
        let length = u32::from_be_bytes([0, head[0], head[1], head[2]]);
        let mut payload = vec![0; length as usize];
        from.read_exact(&mut payload).await?;
        if head[3] == DATA {
            match way {
                // Whether it is compressed, and its length, come before a message of gRPC.
                Way::OtherMessages => payload.iter_mut().skip(5).for_each(|byte| *byte ^= 0xa5),
                Way::OtherFrames => head[3] = 0x1,
                Way::Half => {
                    to.write_all(&head).await?;
                    return to.write_all(&payload[..payload.len() / 2]).await;
                }
                _ => {}
            }
        }
        to.write_all(&head).await?;
        to.write_all(&payload).await?;
    }
}

fn config(address: SocketAddr) -> String {
    format!(
        r#"{{ "Routes": {{ "r": {{ "ClusterId": "c", "Match": {{ "Path": "/{{**rest}}" }} }} }},
            "Clusters": {{ "c": {{ "Destinations": {{ "d": {{ "Address": "http://{address}/" }} }} }} }} }}"#
    )
}

/// Requests are served as the control plane said last, and what it says when it is right again takes effect.
#[tokio::test(flavor = "multi_thread")]
async fn a_control_plane_that_hangs_lies_or_breaks_off_fails_no_request() {
    let origins = ["one", "other"].map(Origin::named);
    let plane = ControlPlane::start(&config(origins[0].addr())).await;
    let relay = Relay::start(plane.address).await;
    let (mut process, proxy, admin) = gateway(&from_xds(&[relay.address], "Delta")).await;
    let is_live = async || {
        let mut client = Connection::http1(admin).await.expect("it listens");
        let answer = client.get("/api/v1/providers").await.expect("it answers");
        let answer: Value = answer.json();
        let providers = answer["providers"].as_array().expect("there are some");
        let is_it = |it: &&Value| it["name"] == "xds";
        providers.iter().find(is_it).expect("it is there")["state"] == "live"
    };
    let served_by = async |name: &str| {
        let mut client = Connection::http1(proxy).await.expect("it listens");
        client.get("/").await.expect("it answers").text() == name
    };
    eventually("the source lives", is_live).await;
    let pause = std::time::Duration::from_millis(10);
    let load = Load::new(proxy).path("/").connections(2).pause(pause);
    let load = load.start();
    let faults = [
        Way::Silence,
        Way::Close,
        Way::Page,
        Way::OtherMessages,
        Way::OtherFrames,
        Way::Half,
    ];
    for (turn, way) in faults.into_iter().enumerate() {
        relay.turn(way);
        eventually("the source does not live", async || !is_live().await).await;
        // A change that the program does not hear of.
        let now = &origins[(turn + 1) % 2];
        plane.publish(&config(now.addr()));
        let so_far = load.report().finished;
        load.wait_for_finished(so_far + 20).await;
        assert_eq!(load.report().failed, Default::default(), "{way:?}");
        let before = &origins[turn % 2];
        assert!(
            served_by(before.name()).await,
            "{way:?}: it heard of the change"
        );
        relay.turn(Way::Through);
        eventually("what changed is served", async || {
            served_by(now.name()).await
        })
        .await;
        eventually("the source lives again", is_live).await;
    }
    load.stop().await.assert_no_failure();
    process.interrupt();
    assert!(process.wait().await.success());
}
