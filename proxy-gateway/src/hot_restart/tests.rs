use std::net::TcpListener;
use std::path::PathBuf;
use std::time::Duration;

use tokio::net::{UnixListener, UnixStream};
use tokio::time::{Instant, timeout};

use super::inheritance::Inheritance;
use super::{HotRestartError, Offer, Predecessor, offer, wire};

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
        let mut offer = Offer::open(&self.path(), vec![socket]).unwrap();
        offer.publish().unwrap();
        (offer, address)
    }

    async fn candidate(&self) -> (Predecessor, Vec<TcpListener>) {
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
    let taken = sockets.pop().unwrap();
    assert_eq!((taken.local_addr().unwrap(), sockets.len()), (address, 0));
    assert!(!waiting.is_finished());
    let mut next = Offer::open(&place.path(), Vec::new()).unwrap();
    predecessor.replace().await.unwrap();
    waiting.await.unwrap();
    assert!(Predecessor::find(&place.path()).await.unwrap().is_none());
    next.publish().unwrap();
    let client = std::net::TcpStream::connect(address).unwrap();
    let (_, from) = taken.accept().unwrap();
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
    drop(UnixListener::bind(&left).unwrap());
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
    let early = timeout(Duration::from_millis(50), predecessor.gone());
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
    let other = UnixListener::bind(place.path()).unwrap();
    let answering = tokio::spawn(async move {
        let (stream, _) = other.accept().await.unwrap();
        wire::say(&stream, b'7').await.unwrap();
        stream
    });
    let error = Predecessor::find(&place.path()).await.unwrap_err();
    assert!(error.to_string().contains("it says '7'"), "{error}");
    drop(answering.await);

    let nowhere = place.folder.path().join("nowhere/handover.sock");
    let error = Offer::open(&nowhere, Vec::new()).unwrap_err();
    assert!(error.to_string().contains("directory"), "{error}");
}

impl Place {
    /// Two instances that wait for one that ends by itself.
    async fn two_that_wait(&self) -> [(Predecessor, Vec<TcpListener>); 2] {
        let (mut offer, _) = self.offer();
        let waiting = tokio::spawn(async move { offer.taken().await });
        let both = [self.candidate().await, self.candidate().await];
        waiting.abort();
        drop(waiting.await);
        both
    }

    /// An instance that hands out its sockets, none, and hangs.
    fn hanging(&self) -> tokio::task::JoinHandle<UnixStream> {
        let listener = UnixListener::bind(self.path()).unwrap();
        tokio::spawn(async move {
            let (stream, _) = listener.accept().await.unwrap();
            wire::say(&stream, wire::HELLO).await.unwrap();
            wire::say(&stream, wire::END).await.unwrap();
            stream
        })
    }
}

/// The one that lost the race would be missed if the other one ended before it served.
#[tokio::test(start_paused = true)]
async fn of_two_that_wait_one_ends_only_when_the_other_one_serves() {
    let place = Place::new();
    let [(first, sockets), (second, _more)] = place.two_that_wait().await;
    first.gone().await.unwrap();
    let long = Duration::from_secs(60);
    assert!(
        timeout(long, second.gone()).await.is_err(),
        "nobody serves yet"
    );
    let mut next = Offer::open(&place.path(), sockets).unwrap();
    next.keep(first.replace().await.unwrap());
    assert!(
        timeout(long, second.gone()).await.is_err(),
        "nobody serves yet"
    );
    next.publish().unwrap();
    let outrun = timeout(long, second.gone()).await.unwrap().unwrap_err();
    assert!(matches!(outrun, HotRestartError::Outrun { .. }), "{outrun}");
    // The next instance that finds the place does not take the mark for that of another successor.
    let waiting = tokio::spawn(async move { next.taken().await });
    let (third, _) = place.candidate().await;
    waiting.abort();
    drop(waiting.await);
    timeout(long, third.gone()).await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn of_two_that_wait_one_serves_when_the_other_one_ends_before_it_serves() {
    let place = Place::new();
    let [(first, _), (second, sockets)] = place.two_that_wait().await;
    first.gone().await.unwrap();
    let waiting = tokio::spawn(async move { (second.gone().await, second) });
    tokio::time::sleep(Duration::from_secs(10)).await;
    assert!(!waiting.is_finished());
    drop(first);
    let (gone, second) = waiting.await.unwrap();
    gone.unwrap();
    assert!(second.replace().await.unwrap().is_some());
    assert_eq!(sockets.len(), 1);
}

/// The system closes the files of a process one after another: the connection may end before the lock does.
#[tokio::test(start_paused = true)]
async fn a_lock_that_a_dying_predecessor_holds_is_waited_for() {
    let place = Place::new();
    let own = Inheritance::take(&place.path())
        .unwrap()
        .expect("it is free");
    own.serves().unwrap();
    let [(first, _), _] = place.two_that_wait().await;
    let closing = tokio::spawn(async move {
        tokio::time::sleep(Duration::from_secs(3)).await;
        drop(own);
    });
    first.gone().await.unwrap();
    assert!(closing.is_finished(), "it had the lock");
    assert!(first.replace().await.unwrap().is_some());
}

/// A predecessor may hold the lock itself, for as long as it hangs.
#[tokio::test(start_paused = true)]
async fn a_predecessor_that_hangs_is_replaced_whether_it_has_the_lock_or_not() {
    for has_lock in [true, false] {
        let place = Place::new();
        let own = has_lock.then(|| Inheritance::take(&place.path()).unwrap());
        let hanging = place.hanging();
        let (successor, _) = place.candidate().await;
        let _stream = hanging.await.unwrap();
        let began = Instant::now();
        let inherited = successor.replace().await.unwrap();
        assert_eq!(inherited.is_some(), !has_lock);
        assert!(began.elapsed() < Duration::from_secs(10));
        drop(own);
    }
}

/// Another user could keep all successors from serving. Two that serve are better than none.
#[tokio::test(start_paused = true)]
async fn a_lock_file_that_is_not_ours_keeps_nobody_from_serving() {
    for is_link in [true, false] {
        let place = Place::new();
        let mut lock = place.path().into_os_string();
        lock.push(".lock");
        let other = place.folder.path().join("other");
        std::fs::write(&other, "untouched").unwrap();
        if is_link {
            std::os::unix::fs::symlink(&other, &lock).unwrap();
        } else {
            std::fs::rename(&other, &lock).unwrap();
            let nobody = Some(rustix::process::Uid::from_raw(65_534));
            if rustix::fs::chown(std::path::Path::new(&lock), nobody, None).is_err() {
                // Only root can give files away, and only root could be harmed by one that was.
                assert!(!rustix::process::geteuid().is_root());
                continue;
            }
        }
        Inheritance::take(&place.path()).unwrap_err();
        for (successor, _) in place.two_that_wait().await {
            timeout(Duration::from_secs(10), successor.gone())
                .await
                .unwrap()
                .unwrap();
            assert!(successor.replace().await.unwrap().is_none());
        }
        let content = std::fs::read_to_string(&lock).unwrap();
        assert_eq!(content, "untouched");
    }
}

/// A candidate that hears of no other one takes the place of a predecessor that has ended.
#[tokio::test]
async fn those_that_were_slower_hear_it_before_the_quicker_one_serves_alone() {
    let (near, far) = UnixStream::pair().unwrap();
    // One stream stands for all, so that what is said first is heard first.
    offer::settle(&near, [&near, &near].into_iter()).await;
    let mut heard = Vec::new();
    for _ in 0..3 {
        heard.push(wire::hear(&far).await.unwrap().0);
    }
    assert_eq!(heard, [wire::TAKEN, wire::TAKEN, wire::YOURS]);
}
