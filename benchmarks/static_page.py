"""The explorer without a server: seconds to the first useful screen and to the first verdict of a typed formula.

    python benchmarks/static_page.py          one line, and the bytes that were loaded

The page is built into a new folder, served as plain files on this machine, and opened in Chromium: bytes cost nothing
here, so what is measured is the work of the browser.
"""

from __future__ import annotations

import functools
import http.server
import os
import tempfile
import threading
import time
from pathlib import Path

from playwright.sync_api import sync_playwright

from farfield.explorer.static import build

CHROMIUM = "/usr/bin/chromium"


class Files(http.server.SimpleHTTPRequestHandler):
    """A web host that counts its bytes."""

    sent = 0

    def copyfile(self, source, outputfile):
        Files.sent += os.fstat(source.fileno()).st_size
        super().copyfile(source, outputfile)

    def log_message(self, *words):
        pass


def main() -> None:
    with tempfile.TemporaryDirectory() as place, sync_playwright() as started:
        build(Path(place) / "page", None, 120, say=lambda words: None)
        host = functools.partial(Files, directory=str(Path(place) / "page"))
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), host)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        browser = started.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        page = browser.new_page()
        page.set_default_timeout(300_000)
        start = time.perf_counter()
        page.goto(f"http://127.0.0.1:{server.server_address[1]}/#f=alibi")
        page.wait_for_selector("#entries .badge")
        useful, first = time.perf_counter() - start, Files.sent
        typed = page.get_by_label("Formula of the bias r(t), or a name")
        typed.fill("-1.5*log(1 + t)")
        typed.press("Enter")
        page.wait_for_selector("#entries .typeset:has-text('1.5')")
        page.wait_for_selector("#entries .badge")
        verdict = time.perf_counter() - start
        typed.fill("-1.7*log(1 + t)")
        again = time.perf_counter()
        typed.press("Enter")
        page.wait_for_selector("#entries .typeset:has-text('1.7')")
        page.wait_for_selector("#entries .badge")
        again = time.perf_counter() - again
        browser.close()
        server.shutdown()
    print(
        f"useful after {useful:.1f} s ({first / 1e6:.1f} MB); a typed formula has its verdict after {verdict:.1f} s "
        f"({Files.sent / 1e6:.1f} MB), the next one after {again:.2f} s; "
        f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}"
    )


if __name__ == "__main__":
    main()
