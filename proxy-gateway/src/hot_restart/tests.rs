use std::net::TcpListener;
use std::path::PathBuf;

use proxy_runtime::server::ListeningSockets;
use tokio::net::UnixStream;

use super::{HotRestartError, Offer, Predecessor, wire};

struct Place {
    folder: tempfile::TempDir,
}

impl Place {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        Self { folder }
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("handover.sock")
    }

    /// An instance that has a socket.
    fn offer(&self) -> (Offer, std::net::SocketAddr) {
        let socket = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = socket.local_addr().unwrap();
        let mut sockets = ListeningSockets::default();
        sockets.add(socket).unwrap();
        let mut offer = Offer::open(&self.path(), sockets).unwrap();
        offer.publish().unwrap();
        (offer, address)
    }

    async fn candidate(&self) -> (Predecessor, ListeningSockets) {
        let found = Predecessor::find(&self.path()).await.unwrap();
        found.expect("there is one")
    }
}

#[tokio::test]
async fn nobody_there_or_somebody_who_has_ended_means_to_be_the_first() {
    let place = Place::new();
    assert!(Predecessor::find(&place.path()).await.unwrap().is_none());
    drop(place.offer());
    assert!(place.path().exists());
    assert!(Predecessor::find(&place.path()).await.unwrap().is_none());
    drop(place.offer());
}

#[tokio::test]
async fn sockets_change_hands_when_the_successor_serves() {
    let place = Place::new();
    let (mut offer, address) = place.offer();
    let waiting = tokio::spawn(async move { offer.taken().await });
    let (predecessor, mut sockets) = place.candidate().await;
    let taken = sockets.take(address);
    assert_eq!((taken.len(), sockets.len()), (1, 0));
    assert!(!waiting.is_finished());
    let mut next = Offer::open(&place.path(), ListeningSockets::default()).unwrap();
    predecessor.replace().await.unwrap();
    waiting.await.unwrap();
    assert!(Predecessor::find(&place.path()).await.unwrap().is_none());
    next.publish().unwrap();
    let client = std::net::TcpStream::connect(address).unwrap();
    let (_, from) = taken[0].accept().unwrap();
    assert_eq!(from, client.local_addr().unwrap());
    let waiting = tokio::spawn(async move { next.taken().await });
    assert!(place.candidate().await.1.is_empty());
    waiting.abort();
    drop(waiting.await);
    let left = std::fs::read_dir(place.folder.path()).unwrap().count();
    assert_eq!(left, 1, "only the socket itself stays");
}

#[tokio::test]
async fn a_successor_that_gives_up_changes_nothing() {
    let place = Place::new();
    let (mut offer, _) = place.offer();
    let waiting = tokio::spawn(async move { offer.taken().await });
    drop(place.candidate().await);
    // A successor that sends nonsense.
    let stream = UnixStream::connect(place.path()).await.unwrap();
    wire::say(&stream, b'?').await.unwrap();
    let (predecessor, sockets) = place.candidate().await;
    assert!(!waiting.is_finished());
    assert_eq!(sockets.len(), 1);
    predecessor.replace().await.unwrap();
    waiting.await.unwrap();
}

#[tokio::test]
async fn of_two_successors_the_quicker_one_wins() {
    let place = Place::new();
    let (mut offer, _) = place.offer();
    let waiting = tokio::spawn(async move { offer.taken().await });
    let (first, _sockets) = place.candidate().await;
    let (second, _more) = place.candidate().await;
    second.replace().await.unwrap();
    waiting.await.unwrap();
    let lost = first.replace().await.unwrap_err();
    assert!(matches!(lost, HotRestartError::Outrun { .. }), "{lost}");
}

#[tokio::test]
async fn a_predecessor_that_ends_meanwhile_leaves_its_sockets() {
    let place = Place::new();
    let (mut offer, _) = place.offer();
    let waiting = tokio::spawn(async move { offer.taken().await });
    let (predecessor, sockets) = place.candidate().await;
    waiting.abort();
    assert!(waiting.await.unwrap_err().is_cancelled());
    predecessor.replace().await.unwrap();
    assert_eq!(sockets.len(), 1);
}

/// The socket of a killed process that had the same process id as this one.
#[tokio::test]
async fn what_is_left_of_another_process_is_in_nobodys_way() {
    let place = Place::new();
    let mut left = place.path().into_os_string();
    left.push(format!(".{}", std::process::id()));
    drop(tokio::net::UnixListener::bind(&left).unwrap());
    assert!(std::path::Path::new(&left).exists());
    let (mut offer, _) = place.offer();
    let _waiting = tokio::spawn(async move { offer.taken().await });
    assert_eq!(place.candidate().await.1.len(), 1);
}

#[tokio::test]
async fn a_predecessor_is_gone_when_it_has_ended_and_not_before() {
    let place = Place::new();
    let (mut offer, _) = place.offer();
    let waiting = tokio::spawn(async move { offer.taken().await });
    let (predecessor, _sockets) = place.candidate().await;
    let early = tokio::time::timeout(std::time::Duration::from_millis(50), predecessor.gone());
    assert!(early.await.is_err());
    waiting.abort();
    drop(waiting.await);
    predecessor.gone().await.unwrap();
    predecessor.replace().await.unwrap();
}

/// The candidate must not serve: another one has already replaced the predecessor.
#[tokio::test]
async fn a_predecessor_that_another_one_has_replaced_is_not_gone() {
    let place = Place::new();
    let (mut offer, _) = place.offer();
    let waiting = tokio::spawn(async move { offer.taken().await });
    let (slow, _sockets) = place.candidate().await;
    let (quick, _more) = place.candidate().await;
    quick.replace().await.unwrap();
    waiting.await.unwrap();
    let outrun = slow.gone().await.unwrap_err();
    assert!(matches!(outrun, HotRestartError::Outrun { .. }), "{outrun}");
}

#[tokio::test]
async fn what_is_wrong_with_the_place_is_said() {
    let place = Place::new();
    // The socket of another program.
    let other = tokio::net::UnixListener::bind(place.path()).unwrap();
    let answering = tokio::spawn(async move {
        let (stream, _) = other.accept().await.unwrap();
        wire::say(&stream, b'7').await.unwrap();
        stream
    });
    let error = Predecessor::find(&place.path()).await.unwrap_err();
    assert!(error.to_string().contains("it says '7'"), "{error}");
    drop(answering.await);

    let nowhere = place.folder.path().join("nowhere/handover.sock");
    let error = Offer::open(&nowhere, ListeningSockets::default()).unwrap_err();
    assert!(error.to_string().contains("directory"), "{error}");
}
