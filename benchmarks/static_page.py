"""The explorer without a server: seconds to the first useful screen and to the first verdict of a typed formula.

    python benchmarks/static_page.py          one line, and the bytes that were loaded
    python benchmarks/static_page.py --save   also write docs/benchmarks/static-page.{json,md}

The page is built into a new folder, served as plain files on this machine, and opened in Chromium: bytes cost nothing
here, so what is measured is the work of the browser.
"""

from __future__ import annotations

import datetime
import functools
import http.server
import json
import os
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

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
    found = {"useful_s": useful, "useful_mb": first / 1e6, "verdict_s": verdict, "verdict_mb": Files.sent / 1e6}
    found |= {"next_s": again, "cores": os.cpu_count(), "load": os.getloadavg()[0]}
    found["date"] = f"{datetime.datetime.now(datetime.UTC):%Y-%m-%d %H:%M} UTC"
    print(sentence(found))
    if "--save" in sys.argv[1:]:
        save(found)


def sentence(found: dict[str, Any]) -> str:
    return (
        "useful after {useful_s:.1f} s ({useful_mb:.1f} MB); a typed formula has its verdict after {verdict_s:.1f} s "
        "({verdict_mb:.1f} MB), the next one after {next_s:.2f} s; {cores} cores, load {load:.1f}; {date}"
    ).format(**found)


def save(found: dict[str, Any]) -> None:
    place = Path(__file__).parent.parent / "docs" / "benchmarks" / "static-page"
    place.with_suffix(".json").write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    page = f"""# The explorer without a server

{sentence(found)}.

`python benchmarks/static_page.py --save` makes this page: the folder of `farfield explore --static` on a plain file
server of this machine, opened in Chromium. Useful: the verdict on a named encoding, which is precomputed. A load above
the number of cores means that other programs were running: then these seconds are an upper bound.
"""
    place.with_suffix(".md").write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()
