"""The clock of the cluster: it stands still unless it is told how long to go on."""

import json
import urllib.request


class Clock:
    """Moves the time of the cluster at `endpoint`."""

    def __init__(self, endpoint):
        self._url = f"{endpoint}/emulator/time/advance"
        # The cluster is on loopback, whatever proxies there are.
        self._opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))

    def advance(self, seconds):
        """Lets time pass in the cluster, and only there."""
        body = json.dumps({"By": f"{seconds}s"}).encode()
        request = urllib.request.Request(self._url, body, {"Content-Type": "application/json"})
        with self._opener.open(request, timeout=60) as answer:
            answer.read()

    def settle(self):
        """Lets pass as much time as it takes to place, move and open things."""
        self.advance(120)
