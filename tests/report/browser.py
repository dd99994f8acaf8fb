"""Chromium without a window, driven through its own protocol over a pipe: no package and no port is needed."""

from __future__ import annotations

import json
import os
import select
import shutil
import subprocess
import sys
import time
from base64 import b64decode
from pathlib import Path

import pytest

fcntl = pytest.importorskip("fcntl", reason="the pipes of the browser need a POSIX system")

SECONDS = 60
KEYS = {"Enter": ("\r", 13), "ArrowLeft": ("", 37), "ArrowRight": ("", 39), "Tab": ("", 9), " ": (" ", 32)}
# The browser reads from descriptor 3 and writes to 4.
PLACE_PIPES = """
import os, sys
os.dup2(int(sys.argv[1]), 3)
os.dup2(int(sys.argv[2]), 4)
os.execv(sys.argv[3], sys.argv[3:])
"""


def find_browser() -> str | None:
    return shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


class Browser:
    """One process; `open` gives pages. Use it in a `with` statement."""

    def __init__(self, program: str, profile: Path) -> None:
        reading, self._write = os.pipe()
        self._read, writing = os.pipe()
        ends = [fcntl.fcntl(end, fcntl.F_DUPFD, 10) for end in (reading, writing)]
        switches = [
            "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
            "--disable-extensions", "--disable-background-networking", "--disable-component-update",
            "--hide-scrollbars", "--remote-debugging-pipe", f"--user-data-dir={profile}", "about:blank",
        ]  # fmt: skip
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", PLACE_PIPES, *map(str, ends), program, *switches],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            pass_fds=ends,
        )
        for end in (reading, writing, *ends):
            os.close(end)
        self._number, self._buffer, self.events = 0, b"", []

    def __enter__(self) -> Browser:
        return self

    def __exit__(self, *exception: object) -> None:
        try:
            self.call("Browser.close")
            self._process.wait(10)
        except (OSError, subprocess.TimeoutExpired, AssertionError):
            self._process.kill()
            self._process.wait()
        os.close(self._write)
        os.close(self._read)

    def call(self, method: str, session: str | None = None, **parameters: object) -> dict:
        """One command and its answer; events that come in between are kept."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        if session is not None:
            message["sessionId"] = session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == self._number:
                assert "error" not in answer, f"{method}: {answer['error']}"
                return answer["result"]
            self.events.append(answer)

    def _next(self) -> dict:
        deadline = time.monotonic() + SECONDS
        while b"\0" not in self._buffer:
            ready, _, _ = select.select([self._read], [], [], max(0, deadline - time.monotonic()))
            assert ready, "the browser does not answer"
            chunk = os.read(self._read, 2**20)
            assert chunk, "the browser ended"
            self._buffer += chunk
        message, _, self._buffer = self._buffer.partition(b"\0")
        return json.loads(message)

    def open(self, path: Path, width: int = 1280, height: int = 900, dark: bool = False) -> Page:
        """A page from disk at a size of the window, with everything it asks for and complains of noted."""
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        page = Page(self, session, target)
        for domain in ("Page", "Runtime", "Log", "Network"):
            page.call(f"{domain}.enable")
        page.resize(width, height)
        page.call(
            "Emulation.setEmulatedMedia",
            features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}],
        )
        page.call("Page.navigate", url=path.resolve().as_uri())
        deadline = time.monotonic() + SECONDS
        while page.run("location.protocol + document.readyState") != "file:complete":
            assert time.monotonic() < deadline, "the page does not load"
            time.sleep(0.02)
        return page


class Page:
    """A page that is open."""

    def __init__(self, browser: Browser, session: str, target: str) -> None:
        self._browser, self._session, self._target = browser, session, target

    def call(self, method: str, **parameters: object) -> dict:
        return self._browser.call(method, self._session, **parameters)

    def close(self) -> None:
        self._browser.call("Target.closeTarget", targetId=self._target)

    def run(self, expression: str) -> object:
        """The value of an expression of JavaScript."""
        found = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in found, found["exceptionDetails"]
        return found["result"].get("value")

    def texts(self, selector: str) -> list[str]:
        return self.run(f"[...document.querySelectorAll({json.dumps(selector)})].map(e => e.textContent)")

    def text(self, selector: str) -> str:
        return self.texts(selector)[0]

    def resize(self, width: int, height: int) -> None:
        self.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600
        )

    def click(self, selector: str) -> None:
        """Press and release the mouse where the element is."""
        x, y = self.run(
            f"(() => {{ const e = document.querySelector({json.dumps(selector)});"
            "e.scrollIntoView({block: 'center', behavior: 'instant'});"
            "const b = e.getBoundingClientRect(); return [b.x + b.width / 2, b.y + b.height / 2]; })()"
        )
        for kind in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def focus(self, selector: str) -> None:
        self.run(f"document.querySelector({json.dumps(selector)}).focus()")

    def press(self, key: str) -> None:
        text, code = KEYS[key]
        common = {"key": key, "code": "Space" if key == " " else key, "windowsVirtualKeyCode": code}
        self.call("Input.dispatchKeyEvent", type="keyDown", text=text, **common)
        self.call("Input.dispatchKeyEvent", type="keyUp", **common)

    def choose(self, selector: str, value: object) -> None:
        """An option of a select element, as by hand."""
        self.run(
            f"(() => {{ const e = document.querySelector({json.dumps(selector)}); e.value = {json.dumps(str(value))};"
            "e.dispatchEvent(new Event('change', {bubbles: true})); })()"
        )

    @property
    def events(self) -> list[dict]:
        # A command makes sure that what happened before it has arrived.
        self.run("0")
        return [event for event in self._browser.events if event.get("sessionId") == self._session]

    @property
    def complaints(self) -> list[str]:
        """Errors and whatever was written to the console."""
        kinds = ("Runtime.consoleAPICalled", "Runtime.exceptionThrown", "Log.entryAdded")
        return [json.dumps(event["params"]) for event in self.events if event["method"] in kinds]

    @property
    def requests(self) -> list[str]:
        """Addresses that were asked for."""
        return [
            event["params"]["request"]["url"] for event in self.events if event["method"] == "Network.requestWillBeSent"
        ]

    def printed(self) -> bytes:
        """The page as PDF."""
        return b64decode(self.call("Page.printToPDF", printBackground=True)["data"])
