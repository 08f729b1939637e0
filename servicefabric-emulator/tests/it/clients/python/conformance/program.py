"""The vendor's command line."""

import json
import os
import signal
import subprocess
import sys
import tempfile
import traceback

# Imported once, here, rather than by every command: that is most of what a command takes.
import azure.servicefabric  # noqa: F401
import sfctl.apiclient  # noqa: F401
import sfctl.commands  # noqa: F401
import sfctl.entry
import sfctl.params  # noqa: F401

from .audit import EXTRA_KEYS
from .checks import Mismatch, expect, expect_equal
from .clock import Clock

# Seconds; more than a command on a busy machine needs.
LIMIT = 120


class Program:
    """`sfctl` with a home directory of its own, and the clock of the cluster that it is to talk to."""

    def __init__(self, path, endpoint):
        self.path = path
        self.endpoint = endpoint
        self.clock = Clock(endpoint)
        self.called = set()

    @classmethod
    def from_environment(cls):
        """The program and the cluster that the environment names, in a home directory where nothing was said yet.

        There it would begin with calls to its vendor and to port 19080. So something is said, though not where the
        cluster is.
        """
        settings = os.path.join(os.environ["HOME"], ".sfctl")
        os.makedirs(settings)
        with open(os.path.join(settings, "config"), "w", encoding="utf-8") as config:
            config.write("[servicefabric]\nuse_telemetry = false\nendpoint = http://127.0.0.1:1\nsecurity = none\n")
        return cls(os.environ["SFCTL"], os.environ["ENDPOINT"])

    def alone(self, *arguments):
        """Runs the program itself and returns exit code, output and error output."""
        self._note(arguments)
        done = subprocess.run(
            [self.path, *arguments],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            timeout=LIMIT,
            check=False,
        )
        return done.returncode, done.stdout, done.stderr

    def run(self, *arguments):
        """The same in a copy of this process, which has read the program already: each command begins from the same
        state, as a new process does, several times as fast."""
        self._note(arguments)
        with tempfile.TemporaryFile("w+") as output, tempfile.TemporaryFile("w+") as errors:
            sys.stdout.flush()
            sys.stderr.flush()
            child = os.fork()
            if child == 0:
                _become(arguments, output, errors)
            _, status = os.waitpid(child, 0)
            output.seek(0)
            errors.seek(0)
            return os.waitstatus_to_exitcode(status), output.read(), errors.read()

    def _note(self, arguments):
        words = []
        for argument in arguments:
            if argument.startswith("-"):
                break
            words.append(argument)
        self.called.add(" ".join(words))

    def __call__(self, command, **options):
        """Runs `command` with its options and returns what it prints, read as JSON; `None` when it prints nothing."""
        code, output, errors = self.run(*arguments(command, options), "-o", "json")
        expect_equal(code, 0, f"exit code of `{command}`, which says {errors.strip()!r}")
        expect("does not match the cluster version" not in errors, errors)
        if not output.strip():
            return None
        answer = json.loads(output)
        unknown = _unknown(answer)
        expect(not unknown, f"`{command}` is sent what it does not know: {unknown}")
        return answer

    def refused(self, code, command, **options):
        """Runs a command that the cluster is to refuse with this code."""
        ended, output, errors = self.run(*arguments(command, options))
        if ended != 1 or not errors.startswith(f"ERROR: ({code}) "):
            said = errors.strip().splitlines()[:1] or output.strip().splitlines()[:1]
            raise Mismatch(f"`{command}` ends with {ended} and says {said}, expected 1 and {code}")
        expect(errors.splitlines()[0] != f"ERROR: ({code}) ", f"`{command}`: {code} comes without a message")

    def advance(self, seconds):
        """Lets time pass in the cluster, and only there."""
        self.clock.advance(seconds)

    def settle(self):
        """Lets pass as much time as it takes to place, move and open things."""
        self.clock.settle()


def arguments(command, options):
    """The words of a command line: `True` stands for an option without a value, everything but a text becomes JSON."""
    words = command.split()
    for name, value in options.items():
        words.append("--" + name.replace("_", "-"))
        if value is not True:
            words.append(value if isinstance(value, str) else json.dumps(value))
    return words


def _become(arguments, output, errors):
    """Is the program from here on, to its end."""
    code = 1
    try:
        signal.alarm(LIMIT)
        os.dup2(output.fileno(), sys.stdout.fileno())
        os.dup2(errors.fileno(), sys.stderr.fileno())
        sys.argv = ["sfctl", *arguments]
        code = sfctl.entry.launch()
    except SystemExit as end:
        code = end.code
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code or 0)


def _unknown(answer, where=""):
    """Keys that the library below the program has no field for."""
    found = []
    if isinstance(answer, dict):
        found += [f"{where}.{key}" for key in answer.get("additionalProperties") or {} if key not in EXTRA_KEYS]
        for key, value in answer.items():
            if key != "additionalProperties":
                found += _unknown(value, f"{where}.{key}")
    elif isinstance(answer, list):
        for item in answer:
            found += _unknown(item, where + "[]")
    return found
