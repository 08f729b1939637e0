"""Named checks that run in the order in which they are written, also those behind one that fails."""

import os
import sys
import time
import traceback


class Checks:
    """A list of checks, filled by decorating functions: `@checks("what holds")`."""

    def __init__(self):
        self._checks = []

    def __call__(self, name):
        def add(function):
            if any(known == name for known, _ in self._checks):
                raise ValueError(f"two checks are called {name!r}")
            self._checks.append((name, function))
            return function

        return add

    def run(self, cluster):
        """Runs all of them with `cluster` and returns how many have failed.

        `ONLY` in the environment keeps those whose name contains it.
        """
        only = os.environ.get("ONLY", "")
        chosen = [check for check in self._checks if only in check[0]]
        failures = []
        for name, function in chosen:
            begin = time.monotonic()
            try:
                function(cluster)
            except Exception as error:  # Whatever a client raises is a finding about one check.
                failures.append((name, error))
                print(f"FAILED {name}")
                print(_indented(_reason(error)), flush=True)
            else:
                print(f"ok {name} ({time.monotonic() - begin:.1f} s)", flush=True)
        print(f"{len(chosen)} checks, {len(failures)} failed")
        for name, _ in failures:
            print(f"  failed: {name}")
        return len(failures) if self._checks else 1


class Mismatch(AssertionError):
    """Something is not as the client or the documentation has it."""


def expect(holds, what):
    """Raises `what` unless `holds`."""
    if not holds:
        raise Mismatch(what)


def expect_equal(found, expected, what):
    """Raises with both values unless they are equal and of one type."""
    if found != expected or isinstance(found, bool) != isinstance(expected, bool):
        raise Mismatch(f"{what}: {found!r}, expected {expected!r}")


def expect_fields(entity, fields, what):
    """Compares attributes of an object, or entries of a dictionary, with those that are expected."""
    for field, expected in fields.items():
        found = entity.get(field) if isinstance(entity, dict) else getattr(entity, field)
        expect_equal(found, expected, f"{what}: {field}")


def the_one(items, what, matches):
    """The only item that matches."""
    found = [item for item in items if matches(item)]
    if len(found) != 1:
        raise Mismatch(f"{len(found)} of {len(items)} are {what}, expected one")
    return found[0]


def finish(failed):
    """Ends the program."""
    sys.exit(1 if failed else 0)


def _reason(error):
    if isinstance(error, Mismatch):
        places = [
            place
            for place in traceback.extract_tb(error.__traceback__)
            if os.path.basename(place.filename) != "checks.py"
        ]
        where = f"  ({os.path.basename(places[-1].filename)}:{places[-1].lineno})" if places else ""
        return f"{error}{where}"
    return "".join(traceback.format_exception(type(error), error, error.__traceback__)).rstrip()


def _indented(text):
    return "\n".join(f"    {line}" for line in text.splitlines())
