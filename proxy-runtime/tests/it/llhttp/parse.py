"""Reads HTTP/1.1 as llhttp does.

Each line of the file that is named is `request HEX` or `response HEX`: the bytes of a connection. For each, a line of JSON
says which messages are complete, and what stopped the parser if something did. Bytes are written as ISO 8859-1.
"""

import json
import sys

import httptools


class Messages:
    def __init__(self):
        self.complete = []

    def on_message_begin(self):
        self.now = {"target": b"", "fields": [], "body": b""}

    def on_url(self, url):
        self.now["target"] += url

    def on_header(self, name, value):
        self.now["fields"].append([text(name), text(value)])

    def on_headers_complete(self):
        self.now["version"] = self.parser.get_http_version()
        if isinstance(self.parser, httptools.HttpRequestParser):
            self.now["start"] = text(self.parser.get_method())
        else:
            self.now["start"] = str(self.parser.get_status_code())

    def on_body(self, body):
        self.now["body"] += body

    def on_message_complete(self):
        for part in ("target", "body"):
            self.now[part] = text(self.now[part])
        self.complete.append(self.now)


def text(bytes):
    return bytes.decode("latin-1")


def read(kind, stream):
    messages = Messages()
    parsers = {
        "request": httptools.HttpRequestParser,
        "response": httptools.HttpResponseParser,
    }
    messages.parser = parsers[kind](messages)
    stopped = None
    try:
        messages.parser.feed_data(stream)
    except httptools.HttpParserUpgrade:
        stopped = "upgrade"
    except httptools.HttpParserError as error:
        stopped = f"{type(error).__name__}: {error}"
    # A body that ends with the connection has no end that the parser is told of.
    open_body = None
    if stopped is None and kind == "response" and "body" in vars(messages).get("now", {}):
        body = messages.now["body"]
        open_body = text(body) if isinstance(body, bytes) else None
        if open_body is not None:
            messages.now["target"] = text(messages.now["target"])
            messages.now["body"] = open_body
            if "start" in messages.now:
                messages.complete.append(messages.now)
    return {"messages": messages.complete, "stopped": stopped}


with open(sys.argv[1], encoding="ascii") as cases:
    for case in cases:
        kind, stream = case.split()
        print(json.dumps(read(kind, bytes.fromhex(stream))))
