//! The table of peers, and the messages for missing peers.

use std::collections::BTreeSet;

use super::*;

fn names(peers: &[&Peer]) -> Vec<&'static str> {
    peers.iter().map(|peer| peer.name).collect()
}

#[test]
fn without_names_the_peers_of_the_tests_are_chosen() {
    let chosen = choose(&[]).expect("no name is wrong");
    assert!(chosen.iter().all(|peer| peer.used_by_tests));
    assert!(names(&chosen).contains(&"chromium"));
    assert!(!names(&chosen).contains(&"wrk"));
}

#[test]
fn named_peers_come_in_the_order_in_which_they_need_each_other() {
    let asked = ["playwright-core".to_owned(), "node".to_owned()];
    let chosen = choose(&asked).expect("they are known");
    assert_eq!(names(&chosen), ["node", "playwright-core"]);
}

#[test]
fn an_unknown_peer_is_answered_with_those_that_there_are() {
    let error = choose(&["chrome".to_owned()]).expect_err("it is not known");
    assert!(
        error.starts_with("no peer `chrome`; there are: curl, "),
        "{error}"
    );
}

#[test]
fn no_two_peers_write_the_same_file() {
    let mut stamps = BTreeSet::new();
    let mut programs = BTreeSet::new();
    for peer in PEERS {
        assert!(stamps.insert(peer.name), "{} is there twice", peer.name);
        for program in peer.programs {
            assert!(
                programs.insert(program.name),
                "{} is there twice",
                program.name
            );
        }
    }
}

#[test]
fn wrappers_need_no_quoting() {
    let plain = |text: &str| !text.contains(['\'', '"', '$', '`', '\\']);
    for program in PEERS.iter().flat_map(|peer| peer.programs) {
        assert!(plain(program.path), "{program:?}");
        assert!(
            program.arguments.iter().all(|argument| plain(argument)),
            "{program:?}"
        );
        let paths = program.environment.iter().map(|(_, path)| path);
        assert!(paths.into_iter().all(|path| plain(path)), "{program:?}");
    }
}

#[test]
fn a_stamp_changes_with_what_is_fetched_and_how_it_is_started() {
    let stamps: BTreeSet<_> = PEERS.iter().map(Peer::stamp).collect();
    assert_eq!(stamps.len(), PEERS.len());
}

#[test]
fn a_program_that_cannot_be_loaded_is_no_peer() {
    let directory = tempfile::tempdir().expect("a directory can be made");
    let path = directory.path().join("broken");
    wrapper::write(
        &path,
        "#!/bin/sh\necho 'libgone.so: cannot open' >&2; exit 127\n",
    )
    .expect("can be written");
    let program = PEERS[0].programs.first().expect("curl has a program");
    let error = probe(&path, program, directory.path()).expect_err("it does not run");
    assert!(
        error.to_string().contains("libgone.so: cannot open"),
        "{error}"
    );

    wrapper::write(&path, "#!/bin/sh\necho 'wrk 4.1.0'; exit 1\n").expect("can be written");
    probe(&path, program, directory.path())
        .expect("it prints its version and reports failure, as wrk does");
}

#[test]
fn a_client_that_keeps_failing_is_reported_with_its_last_words() {
    let client = Invocation::new("sh").args(["-c", "echo no route to the mirror >&2; exit 100"]);
    let error = download_with(&client, Duration::ZERO).expect_err("it fails each time");
    assert!(
        error.to_string().contains("no route to the mirror"),
        "{error}"
    );
    assert!(error.to_string().contains("exit status: 100"), "{error}");
}

#[test]
fn a_client_that_fails_once_is_tried_again() {
    let directory = tempfile::tempdir().expect("a directory can be made");
    let client = Invocation::new("sh")
        .args([
            "-c",
            "test -e tried && echo got it && exit; touch tried; exit 1",
        ])
        .in_directory(directory.path());
    let output = download_with(&client, Duration::ZERO).expect("the second try succeeds");
    assert_eq!(output, "got it\n");
}

#[test]
fn only_the_end_of_a_long_output_is_repeated() {
    let output: String = (0..100).map(|line| format!("line {line}\n")).collect();
    let end = last_lines(&output);
    assert!(end.starts_with("line 94"), "{end}");
    assert!(end.ends_with("line 99"), "{end}");
}
