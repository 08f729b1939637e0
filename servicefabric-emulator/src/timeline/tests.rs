//! Tests of reading and running scripts.

use super::{Entry, Script};
use crate::hosting::Timestamp;

#[track_caller]
fn errors(text: &str) -> Vec<String> {
    let errors = Script::read(text).expect_err("this should not be a script");
    errors.problems().iter().map(ToString::to_string).collect()
}

#[test]
fn toml_and_json_say_the_same() {
    let toml = r#"
        title = "x"
        show = [5, "7s"]
        until = "1m"
        config = { DeactivationScanInterval = "10m", RetryOnInternalError = false }
        [[package]]
        name = "P"
        activation_id = "a"
        code = [{ name = "Code", types = ["T", "U"], setup = "s.exe", guest = true }, { name = "Side", run_to_completion = true }]
        download = { takes = 1.5, fails = 2, internal_errors = 1, jitter = ["1s"] }
        process.Code = { registers = "never", lives = ["5s", { lasts = 3, exit_code = 0 }], repeat = true, start_fails = "always" }
        [[event]]
        at = 1
        place = "p/-7"
        type = "U"
        existing = true
        persisted = true
        [[event]]
        at = 2
        exit = "Side"
        code = -5
        [[event]]
        at = 3
        upgrade = "P"
        version = "2.0"
        types = ["V"]
        [[event]]
        at = 4
        behave = "P"
        activation.fails = "always"
    "#;
    let json = r#"{
        "title": "x", "show": [5, "7s"], "until": "1m",
        "config": { "DeactivationScanInterval": "10m", "RetryOnInternalError": false },
        "package": [{
            "name": "P", "activation_id": "a",
            "code": [{ "name": "Code", "types": ["T", "U"], "setup": "s.exe", "guest": true },
                     { "name": "Side", "run_to_completion": true }],
            "download": { "takes": 1.5, "fails": 2, "internal_errors": 1, "jitter": ["1s"] },
            "process": { "Code": { "registers": "never", "lives": ["5s", { "lasts": 3, "exit_code": 0 }],
                                   "repeat": true, "start_fails": "always" } }
        }],
        "event": [
            { "at": 1, "place": "p/-7", "type": "U", "existing": true, "persisted": true },
            { "at": 2, "exit": "Side", "code": -5 },
            { "at": 3, "upgrade": "P", "version": "2.0", "types": ["V"] },
            { "at": 4, "behave": "P", "activation": { "fails": "always" } }
        ]
    }"#;
    assert_eq!(Script::read(toml).unwrap(), Script::read(json).unwrap());
}

#[test]
fn all_errors_come_together_with_their_lines() {
    let text = r#"titel = "x"
until = 3

[[package]]
name = "P"
types = "T"

[[package]]
label = "Q"
types = ["T", "U"]
name = "Q"
download.fails = "sometimes"
process.Cod = {}

[[event]]
at = -5
place = "r"
package = "Q"

[[event]]
at = 7
place = "r"
package = "Q"
type = "V"

[[event]]
at = 7
close = "r"
activate = "P"

[[event]]
at = 7
exit = "Kode"
package = "Q"

[[event]]
node = "explode"
at = 7
"#;
    assert_eq!(
        errors(text),
        [
            "line 1: titel: there is no such key (did you mean `title`?)",
            "line 6: package[0].types: expected a list, found a text (write for example [])",
            "line 12: package[1].download.fails: expected how many attempts fail, found a text (write a number, or \"always\")",
            "line 13: package[1].process.Cod: the package has no code package `Cod` (did you mean `Code`?)",
            "line 16: event[0].at: a length of time cannot be negative (write seconds, such as 601, or a text, such as \"601s\", \"250ms\", \"10m\" or \"1h\")",
            "line 17: event[0].place: package `Q` has 2 service types (choose one with `type`: T, U)",
            "line 24: event[1].type: package `Q` has no service type `V` (it has T, U)",
            "line 26: event[2]: an event does one thing, this one has `close` and `activate` (write two events with the same `at`)",
            "line 33: event[3].exit: package `Q` has no code package `Kode` (did you mean `Code`?)",
            "line 37: event[4].node: a node cannot `explode` (write \"restart\", \"stop\" or \"start\")",
        ]
    );
}

#[test]
fn what_is_no_toml_and_no_json() {
    assert!(errors("a = 1\nb = = 2")[0].starts_with("line 2: this is no TOML: "));
    assert!(errors("{\n\"a\": ,\n}")[0].starts_with("line 2: this is no JSON: "));
    assert!(errors(r#"{ "until": 1, "until": 2 }"#)[0].contains("the key `until` is there twice"));
    assert!(errors("")[0].contains("`package` is missing (add package = "));
    let nested = format!(
        "{{ \"package\": {}{} }}",
        "[".repeat(10_000),
        "]".repeat(10_000)
    );
    assert!(errors(&nested)[0].contains("this is no JSON"));
    let nested = format!("package = {}{}", "[".repeat(10_000), "]".repeat(10_000));
    assert!(errors(&nested)[0].contains("this is no TOML"));
}

#[test]
fn packages_must_be_told_apart() {
    let twice = r#"package = [{ name = "P", types = ["T"] }, { name = "P", types = ["T"] }]"#;
    assert_eq!(
        errors(twice),
        ["line 1: package[1]: there is already a package `P` (give one of them another `label`)"]
    );
    let same =
        r#"package = [{ name = "P", types = ["T"] }, { name = "P", label = "Q", types = ["T"] }]"#;
    assert_eq!(
        errors(same),
        [
            "line 1: package[1]: fabric:/App/P is described twice (give one of them another `activation_id`)"
        ]
    );
    let two = r#"
        package = [{ name = "P", types = ["T"] }, { name = "Q", types = ["T"] }]
        event = [{ at = 0, place = "r" }, { at = 0, activate = "R" }]
    "#;
    assert_eq!(
        errors(two),
        [
            "line 3: event[0]: there are 2 packages (choose one with `package`: P, Q)",
            "line 3: event[1].activate: there is no package `R` (there are P, Q)",
        ]
    );
}

#[test]
fn a_script_must_not_end_before_its_last_event() {
    let text = "until = 5\nshow = [7]\npackage = [{ name = 'P', types = ['T'] }]";
    assert_eq!(
        errors(text),
        [
            "line 1: until: the script ends at 5s, before its last event or show at 7s (write until = \"7s\" or later)"
        ]
    );
}

#[test]
fn rejected_instructions_are_lines_of_the_log() {
    let text = "package = [{ name = 'P', types = ['T'] }]\nevent = [{ at = 3, close = 'r' }, { at = 4, exit = 'Code' }]";
    let timeline = Script::read(text).unwrap().run();
    assert_eq!(
        timeline.to_string(),
        "        3s  instruction rejected: replica r/1 is not on the node\n        \
         4s  instruction rejected: fabric:/App/P:Code is not running\n        4s  (end)\n"
    );
    assert!(matches!(&timeline.log[0], Entry::Rejected(_)));
    let json = serde_json::to_value(&timeline).unwrap();
    assert_eq!(json["log"][0]["refused"], "replica r/1 is not on the node");
}

#[test]
fn a_script_that_never_comes_to_rest_is_cut_off() {
    let text = r#"
        until = "1000000000h"
        package = [{ name = "P", types = ["T"], process.Code = { lives = [{ lasts = "1ms", exit_code = 0 }], repeat = true } }]
        event = [{ at = 0, place = "r" }]
    "#;
    let timeline = Script::read(text).unwrap().run();
    assert_eq!(timeline.log.len(), 100_000);
    assert!(
        timeline
            .cut_off_at
            .is_some_and(|at| at < Timestamp::from_secs(3600))
    );
    assert!(
        timeline
            .to_string()
            .ends_with("(cut off: too much happens)\n")
    );
    // A script without events: only polls with unchanging results.
    let text = r#"
        until = "1000000000h"
        package = [{ name = "P", types = ["T"], download.takes = "infinite" }]
        config = { DeactivationGraceInterval = "infinite", RAPMessageRetryInterval = 0 }
        event = [{ at = 0, place = "r" }]
    "#;
    assert!(Script::read(text).unwrap().run().cut_off_at.is_some());
}

#[test]
fn warnings_stand_before_the_log() {
    let text = "config = { ActivationRetryBackoffExponentiationBase = 0 }\npackage = [{ name = 'P', types = ['T'] }]";
    let script = Script::read(text).unwrap();
    assert_eq!(script.warnings().len(), 1);
    assert!(
        script
            .run()
            .to_string()
            .starts_with("# warning: `ActivationRetryBackoffExponentiationBase` of 0")
    );
}
