"""The vendor's library, with every answer audited."""

import functools
import json
import os
import re

from azure.servicefabric import ServiceFabricClientAPIs, models
from msrest.authentication import Authentication
from msrest.exceptions import HttpOperationError

from .audit import differences
from .checks import Mismatch, expect, expect_equal
from .clock import Clock


class Certificates(Authentication):
    """Credentials of a cluster that asks for a certificate, or for a token, or for nothing."""

    def __init__(self, client=None, authority=None, token=None):
        super().__init__()
        self.client = client
        self.authority = authority
        self.token = token

    def signed_session(self, session=None):
        session = super().signed_session(session)
        # Neither proxies nor bundles of the environment: the cluster is on loopback.
        session.trust_env = False
        if self.client:
            session.cert = self.client
        if self.token:
            session.headers["Authorization"] = f"Bearer {self.token}"
        return session


class Cluster:
    """A client of the cluster at `endpoint`."""

    def __init__(self, endpoint, credentials=None):
        self.clock = Clock(endpoint)
        credentials = credentials or Certificates()
        self.client = ServiceFabricClientAPIs(credentials, base_url=endpoint)
        # What a session says about this is not looked at.
        self.client.config.connection.verify = credentials.authority or True
        # An error is what is being looked for: it is not to be tried away.
        self.client.config.retry_policy.total = False
        self.client.config.retry_policy.policy.total = False
        self.client.config.retry_policy.policy.status_forcelist = None
        self.called = set()

    @classmethod
    def from_environment(cls):
        """The cluster that the environment names."""
        variable = os.environ.get
        credentials = Certificates(
            client=variable("CLIENT_CERTIFICATE"),
            authority=variable("AUTHORITY"),
            token=variable("TOKEN"),
        )
        return cls(os.environ["ENDPOINT"], credentials)

    def __getattr__(self, operation):
        """An operation of the library by its name, audited."""
        method = getattr(self.client, operation)

        def call(*arguments, **named):
            self.called.add(operation)
            answer = method(*arguments, raw=True, **named)
            _audit(operation, answer.output, answer.response)
            return answer.output

        return call

    def ask(self, path, model, query):
        """A query that the library has no operation for, read as `model`."""
        request = self.client._client.get(path, query)
        response = self.client._client.send(request, stream=False)
        if response.status_code != 200:
            raise Mismatch(f"{path} is answered {response.status_code}: {response.text}")
        output = self.client._deserialize(model, response)
        _audit(path, output, response)
        return output

    def refused(self, code, status, operation, *arguments, **named):
        """Calls an operation that is to be refused, and returns the message."""
        self.called.add(operation)
        try:
            output = getattr(self.client, operation)(*arguments, **named)
        except models.FabricErrorException as refusal:
            error = refusal.error and refusal.error.error
            got = (error and error.code, refusal.response.status_code)
            expect_equal(got, (code, status), f"refusal of {operation}")
            expect_equal(
                status, documented_statuses().get(code, status), f"status of {code} by the library's documentation"
            )
            _audit(operation, refusal.error, refusal.response)
            expect(error.message, f"{code} comes without a message")
            return error.message
        raise Mismatch(f"{operation} is answered {output!r}, expected {status} {code}")

    def status_of(self, operation, *arguments, **named):
        """The status that an operation is answered with, whatever is said along with it."""
        statuses = []
        send = self.client._client.send

        def watched(*request, **options):
            response = send(*request, **options)
            statuses.append(response.status_code)
            return response

        self.client._client.send = watched
        try:
            getattr(self.client, operation)(*arguments, **named)
        except (HttpOperationError, TypeError):
            # The library wants a body with an error in it, which a client that is not let in does not get.
            pass
        finally:
            self.client._client.send = send
        expect_equal(len(statuses), 1, f"answers to {operation}")
        return statuses[0]

    def pages(self, operation, *arguments, **named):
        """All items of a paged query, page by page, and how many pages they were."""
        items, token, seen, pages = [], None, set(), 0
        while True:
            page = getattr(self, operation)(*arguments, continuation_token=token, **named)
            limit = named.get("max_results", 0)
            expect(not limit or len(page.items) <= limit, f"{operation}: {len(page.items)} on a page of {limit}")
            items += page.items
            pages += 1
            token = page.continuation_token
            if not token:
                return items, pages
            expect(token not in seen, f"{operation}: the token {token!r} comes twice")
            seen.add(token)

    def advance(self, seconds):
        """Lets time pass in the cluster, and only there."""
        self.clock.advance(seconds)

    def settle(self):
        """Lets pass as much time as it takes to place, move and open things."""
        self.clock.settle()


@functools.cache
def documented_statuses():
    """Which status comes with which code, as the documentation of the library's error lists them."""
    found, status = {}, None
    for number, code in re.findall(r"HTTP status code (\d+)|\"(\w+)\"", models.FabricErrorError.__doc__):
        if number:
            status = int(number)
        else:
            found.setdefault(code, status)
    return found


def _audit(what, output, response):
    if output is None:
        return
    kind = response.headers.get("Content-Type")
    expect_equal(kind, "application/json; charset=utf-8", f"{what}: Content-Type")
    expect_equal(response.headers.get("X-Content-Type-Options"), "nosniff", f"{what}: X-Content-Type-Options")
    found = differences(output, json.loads(response.content), what)
    if found:
        more = f" and {len(found) - 8} more" if len(found) > 8 else ""
        raise Mismatch("not as the model has it: " + "; ".join(found[:8]) + more)
