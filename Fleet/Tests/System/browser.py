"""A real browser (Chromium without windows), and a checker of accessibility that is not ours (axe-core).

It is spoken to by its pipe (the Chrome DevTools Protocol), which needs neither a driver nor a port.
"""

import base64
import json
import os
import select
import subprocess
import time
from pathlib import Path

from programs import PATIENCE

PHONE, DESKTOP = (360, 640), (1280, 800)
# WCAG 2.0, 2.1 and 2.2, levels A and AA, and what axe-core's authors advise besides.
TAGS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]


class Browser:
    """A Chromium without windows, which ends with the pipe."""

    def __init__(self, program: str, folder: Path):
        options = [
            "--headless", "--remote-debugging-pipe", f"--user-data-dir={folder}", "--no-first-run",
            # Root, in a container, with little /dev/shm and no graphics.
            "--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu",
            # The server has an authority of its own. Nothing else is there.
            "--ignore-certificate-errors", "--disable-background-networking",
            "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE localhost",
        ]
        # It reads from descriptor 3 and writes to 4.
        redirected = 'exec "$@" 3<&0 4>&1 </dev/null >/dev/null'
        self.logfile = folder.parent / f"{folder.name}.log"
        with open(self.logfile, "wb") as log:
            self.process = subprocess.Popen(
                ["setpriv", "--pdeathsig", "KILL", "sh", "-c", redirected, "sh", program, *options],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log)
        self._number, self._read = 0, b""
        self.events: list[dict] = []

    def __call__(self, method: str, session: str | None = None, **parameters) -> dict:
        """The answer to a command."""
        self._number += 1
        command = {"id": self._number, "method": method, "params": parameters}
        text = json.dumps(command | ({"sessionId": session} if session else {})).encode() + b"\0"
        self.process.stdin.write(text)
        self.process.stdin.flush()
        deadline = time.monotonic() + PATIENCE
        while (message := self._message(deadline)).get("id") != self._number:
            self.events.append(message)
        assert "error" not in message, (method, message)
        return message["result"]

    def wait(self, condition, what: str):
        """Until there is such an event."""
        deadline = time.monotonic() + PATIENCE
        seen = 0
        while True:
            for event in self.events[seen:]:
                if condition(event):
                    return
            seen = len(self.events)
            self.events.append(self._message(deadline, what))

    def _message(self, deadline: float, what="an answer") -> dict:
        while b"\0" not in self._read:
            ready, _, _ = select.select([self.process.stdout], [], [], max(0, deadline - time.monotonic()))
            assert ready, f"not in {PATIENCE:g} s: {what}"
            read = os.read(self.process.stdout.fileno(), 1 << 20)
            assert read, f"the browser has ended: {self.logfile.read_text()[-2000:]}"
            self._read += read
        text, _, self._read = self._read.partition(b"\0")
        return json.loads(text)

    def close(self):
        # It ends its own programs, which would be nobody's were it killed.
        self.process.stdin.close()
        try:
            self.process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process.stdout.close()


class Page:
    """An empty page of a browser, which has no cookies."""

    def __init__(self, browser: Browser, size: tuple[int, int], scheme: str):
        self.browser, self.size = browser, size
        browser.events.clear()
        self._context = browser("Target.createBrowserContext")["browserContextId"]
        target = browser("Target.createTarget", url="about:blank", browserContextId=self._context)["targetId"]
        self._session = browser("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Network", "Runtime", "Log"):
            self.does(f"{domain}.enable")
        width, height = size
        self.does(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1,
            mobile=size == PHONE)
        self.does("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
        self.does("Page.setLifecycleEventsEnabled", enabled=True)

    def does(self, method: str, **parameters) -> dict:
        return self.browser(method, self._session, **parameters)

    def opens(self, url: str):
        self.browser.events.clear()
        answer = self.does("Page.navigate", url=url)
        assert "errorText" not in answer, (url, answer)
        self._loads(answer["loaderId"])

    def sends(self, script: str):
        """A script that sends a form; the page that comes is waited for."""
        self.browser.events.clear()
        self.script(script)
        self.browser.wait(lambda event: self._is(event, "Page.frameNavigated"), "another page")
        loaders = [event["frame"]["loaderId"] for event in self._all("Page.frameNavigated")]
        self._loads(loaders[-1])

    def _loads(self, loader: str):
        # Scripts may ask for more, and keep a stream open.
        self.browser.wait(
            lambda event: self._is(event, "Page.lifecycleEvent")
            and (event["params"]["name"], event["params"]["loaderId"]) == ("networkAlmostIdle", loader),
            "the page is loaded")

    def _is(self, event: dict, method: str) -> bool:
        return (event.get("sessionId"), event["method"]) == (self._session, method)

    def _all(self, method: str) -> list[dict]:
        return [event["params"] for event in self.browser.events if self._is(event, method)]

    def script(self, text: str):
        """The value of an expression. Content-Security-Policy does not concern it."""
        answer = self.does("Runtime.evaluate", expression=text, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    @property
    def status(self) -> int:
        return [answer for answer in self._all("Network.responseReceived") if answer["type"] == "Document"][-1][
            "response"]["status"]

    @property
    def requested(self) -> list[str]:
        return [each["request"]["url"] for each in self._all("Network.requestWillBeSent")] + [
            each["url"] for each in self._all("Network.webSocketCreated")]

    @property
    def complaints(self) -> list[str]:
        """What the browser, or a script of the page, says of an error."""
        logged = [each["entry"] for each in self._all("Log.entryAdded")]
        written = [each for each in self._all("Runtime.consoleAPICalled") if each["type"] in ("error", "assert")]
        return [
            *(f"{entry['text']} {entry.get('url', '')}" for entry in logged if entry["level"] == "error"),
            *(json.dumps([each.get("value", each.get("description")) for each in call["args"]]) for call in written),
            *(json.dumps(each["exceptionDetails"]) for each in self._all("Runtime.exceptionThrown")),
        ]

    def violations(self, axe: str) -> list[str]:
        self.script(f"{axe}; null")
        options = {"runOnly": {"type": "tag", "values": TAGS}}
        result = self.script(f"axe.run(document, {json.dumps(options)})")
        assert result["passes"], "axe-core has checked nothing"
        # It takes what has no background for white, also in the dark, and then does not decide. A page has to say its
        # colours: `background: Canvas` will do.
        undecided = [rule for rule in result["incomplete"] if rule["id"] == "color-contrast"]
        return [
            f"{rule['id']} ({rule['impact']}): {node['html'][:200]}: {node['failureSummary']}"
            for rule in result["violations"] + undecided for node in rule["nodes"]]

    def picture(self, file: Path):
        file.parent.mkdir(parents=True, exist_ok=True)
        taken = self.does("Page.captureScreenshot", format="png", captureBeyondViewport=True)
        file.write_bytes(base64.b64decode(taken["data"]))

    def close(self):
        self.browser("Target.disposeBrowserContext", browserContextId=self._context)
