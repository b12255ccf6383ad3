"""`farfield explore`: the explorer in the browser."""

from __future__ import annotations

import sys
import threading
import webbrowser
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from farfield.commands.options import Whole


def explore_command(
    *,
    port: Whole = 8421,
    browser: Annotated[bool, Parameter(negative="--no-browser")] = True,
    study: str | None = None,
    seconds: float = 5,
    static: Path | None = None,
) -> None:
    """Open a page on this machine: type a formula, move its parameters, and see how far it reaches.

    Args:
        port: The port of the page on this machine; 0 takes any free one.
        browser: Open the page in the browser.
        study: Also show the results in this study folder.
        seconds: Cut the work on one question off after so long.
        static: Write the page into this folder instead, for any web host: Python then runs in the browser.
    """
    from farfield.explorer.question import load_study

    if not 0 < seconds <= 3600:
        raise ValueError(f"a question may take up to 3600 seconds, not {seconds:g}")
    runs = None if study is None else load_study(study)
    if static is not None:
        from farfield.explorer.static import build

        build(static, runs, seconds, say=lambda words: print(words, flush=True))
    else:
        _serve(port, browser, runs, seconds)


def _serve(port: int, browser: bool, runs: list[dict[str, object]] | None, seconds: float) -> None:
    try:
        import uvicorn

        from farfield.explorer import server
        from farfield.explorer.work import Pool
    except ImportError as error:
        if (error.name or "").startswith("farfield"):
            raise
        raise ImportError("the explorer needs starlette and uvicorn: pip install 'farfield[explore]'") from None
    own = server.listen(port)
    chosen = own.getsockname()[1]
    address = f"http://{server.HOST}:{chosen}/"
    print(f"the explorer is at {address} (Ctrl-C ends it)", flush=True)
    if browser:
        threading.Thread(target=webbrowser.open, args=(address,), daemon=True).start()
    page = server.application(chosen, runs, Pool(seconds=seconds))
    settings = uvicorn.Config(
        page, loop="asyncio", http=server.Impatient, ws="none", log_level="warning",
        access_log=False, proxy_headers=False, server_header=False, limit_concurrency=64,
        timeout_graceful_shutdown=1,
    )  # fmt: skip
    try:
        uvicorn.Server(settings).run(sockets=[own])
    except KeyboardInterrupt:
        print("the explorer has ended", file=sys.stderr)
