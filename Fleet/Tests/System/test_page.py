"""The pages that people open, in a real browser with a checker of accessibility.

    STEPFLEET_PICTURES=/tmp/pictures python3 -m pytest Fleet/Tests/System/test_page.py
"""

import json
import os
import shutil
import ssl
import subprocess
import threading
import uuid
from contextlib import closing
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from browser import DESKTOP, PHONE, Browser, Page
from rider import PASSWORD, Device, account
from server import Server


@pytest.fixture(scope="session")
def browser(tmp_path_factory):
    program = shutil.which("chromium-headless-shell") or shutil.which("chromium")
    if not program:
        pytest.skip("no Chromium: Debian has it in chromium-headless-shell")
    with closing(Browser(program, tmp_path_factory.mktemp("browser") / "profile")) as browser:
        yield browser


@pytest.fixture(scope="session")
def axe():
    """The script. What brings it is for another runner, and is not imported."""
    package = find_spec("pytest_playwright_axe")
    assert package, "no axe-core: Tests/prepare.sh test-fleet installs it"
    return (Path(package.origin).parent / "resources/axe.min.js").read_text()


@pytest.fixture(params=[PHONE, DESKTOP], ids=["phone", "desktop"])
def size(request):
    return request.param


@pytest.fixture(params=["light", "dark"])
def page(request, browser, size):
    with closing(Page(browser, size, request.param)) as page:
        yield page


@pytest.fixture
def pictures(request, tmp_path):
    """Where they are left for a look: none but the last runs' unless a folder is named."""
    folder = Path(os.environ.get("STEPFLEET_PICTURES", tmp_path))
    name = request.node.name.replace("/", "_").removeprefix("test_")
    return lambda part="": folder / f"{name}{part}.png"


def problems(page: Page, axe: str, status: int = 200) -> list[str]:
    """What is wrong with a page that is open."""
    # Before axe-core runs, which might ask for something. Of a page that has another status there is a complaint.
    found = [f"an error: {each}" for each in page.complaints if status == 200 or f"a status of {status} " not in each]
    if page.status != status:
        found.append(f"the status {page.status}")
    own = urlsplit(page.script("location.href"))
    for url in map(urlsplit, page.requested):
        if url.scheme not in ("data", "blob") and (url.scheme, url.netloc) != (own.scheme, own.netloc):
            found.append(f"a request to another origin: {url.geturl()}")
    # On a phone a page that is too wide, or says nothing of its width, is shown smaller: the window has more pixels.
    width = page.size[0]
    inner, scrolled = page.script("[innerWidth, document.documentElement.scrollWidth]")
    if inner != width or scrolled > width:
        found.append(f"a width of {scrolled} in a window of {inner}, where {width} are there")
    return found + page.violations(axe)


def check(page: Page, axe: str, picture: Path, status: int = 200):
    page.picture(picture)
    found = problems(page, axe, status)
    assert not found, "\n".join([*found, f"the picture: {picture}"])


@pytest.mark.parametrize("path", ["/", "/device"])
def test_a_page_is_for_everybody(server, page, axe, pictures, path):
    page.opens(server.url + path)
    check(page, axe, pictures())


@pytest.fixture(scope="module")
def verbose(tmp_path_factory):
    """A server whose terms are longer than a page."""
    with closing(Server(tmp_path_factory.mktemp("verbose") / "fleet")) as server:
        (server.folder / "terms.txt").write_text("Ride as if it were yours, and bring it back.\n" * 100)
        yield server.starts()


def test_the_answers_of_the_login_are_for_everybody(verbose, page, axe, pictures):
    device = Device(verbose)
    email = f"{uuid.uuid4().hex[:12]}@example.org"
    account(device, email)
    verbose.sql("UPDATE account SET terms = 'older' WHERE email = ?", email)
    page.opens(device.codes()["verification_uri_complete"])
    check(page, axe, pictures("-question"))

    def types(password, decision="allow"):
        page.sends(f"""
            document.querySelector("[name=email]").value = {json.dumps(email)};
            document.querySelector("[name=password]").value = {json.dumps(password)};
            document.querySelector("[name=terms]")?.click();
            document.querySelector("[value={decision}]").click()""")

    types("not the password")
    check(page, axe, pictures("-wrong"), 403)
    types(PASSWORD)
    assert "I accept these terms" in page.script("document.body.innerText")
    check(page, axe, pictures("-terms"), 403)
    types(PASSWORD)
    assert "Allowed" in page.script("document.body.innerText")
    check(page, axe, pictures("-allowed"))
    page.opens(device.codes()["verification_uri_complete"])
    types(PASSWORD, "deny")
    assert "Refused" in page.script("document.body.innerText")
    check(page, axe, pictures("-refused"))


# The checks themselves


@pytest.fixture(scope="session")
def site(tmp_path_factory):
    """A server that answers each GET of / with the text that it holds."""
    folder = tmp_path_factory.mktemp("site")
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj",
         "/CN=localhost", "-keyout", folder / "key.pem", "-out", folder / "certificate.pem"],
        check=True, capture_output=True)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200 if self.path == "/" else 404)
            self.send_header("Content-Type", "text/html; charset=utf-8")
            self.end_headers()
            self.wfile.write(site.text.encode() if self.path == "/" else b"")

        def log_message(self, *_):
            pass

    class Site(ThreadingHTTPServer):
        text = ""
        daemon_threads = True

        @property
        def url(self):
            return f"https://localhost:{self.server_port}/"

    with Site(("127.0.0.1", 0), Handler) as site:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(folder / "certificate.pem", folder / "key.pem")
        site.socket = context.wrap_socket(site.socket, server_side=True, do_handshake_on_connect=False)
        threading.Thread(target=site.serve_forever, daemon=True).start()
        yield site
        site.shutdown()


GOOD = """<!doctype html><html lang="en"><head><meta charset="utf-8"><title>A page</title>
    <meta name="viewport" content="width=device-width"></head><body><main><h1>A page</h1>{}</main></body></html>"""


PALE_IN_THE_DARK = """<style>@media (prefers-color-scheme: dark) { p { color: #aaa; background: #fff } }</style>
    <p>Text"""
DARK, DARK_CANVAS = (
    f"<style>:root {{ color-scheme: light dark; {more} }}</style><p>Text" for more in ("", "background: Canvas"))
SMALL = '<button style="all: unset; width: 9px; font-size: 9px">A</button>'
FORBIDDEN = """<meta http-equiv="Content-Security-Policy" content="img-src 'none'"><img alt="A" src="/a.png">"""


@pytest.mark.parametrize(("size", "page", "text", "problem"), [
    (PHONE, "light", GOOD.format("<p>Text"), None),
    (DESKTOP, "dark", GOOD.format("<p>Text"), None),
    (PHONE, "light", GOOD.format("<p>Text").replace(' lang="en"', ""), "html-has-lang"),
    (PHONE, "light", GOOD.format("<p>Text").replace("h1", "h3"), "page-has-heading-one"),
    (PHONE, "light", GOOD.format(SMALL * 2), "target-size"),
    (PHONE, "light", GOOD.format('<p style="color: #aaa; background: #fff">Text'), "color-contrast"),
    (PHONE, "light", GOOD.format(PALE_IN_THE_DARK), None),
    (PHONE, "dark", GOOD.format(PALE_IN_THE_DARK), "color-contrast"),
    (PHONE, "dark", GOOD.format(DARK), "color-contrast"),
    (PHONE, "dark", GOOD.format(DARK_CANVAS), None),
    (DESKTOP, "light", GOOD.format('<p style="width: 1300px">Text'), "a width of "),
    (PHONE, "light", GOOD.format('<p style="width: 361px">Text'), "a width of "),
    (PHONE, "light", GOOD.format("<p>Text").replace('name="viewport"', 'name="none"'), "a width of "),
    (PHONE, "light", GOOD.format('<img alt="A" src="https://localhost:9/a.png">'), "another origin"),
    (PHONE, "light", GOOD.format('<img alt="A" src="https://fonts.example/a.png">'), "another origin"),
    (PHONE, "light", GOOD.format("<img alt='A' src='/a.png'>"), "404"),
    (PHONE, "light", GOOD.format("<script>console.error('wrong')</script>"), "wrong"),
    (PHONE, "light", GOOD.format("<script>throw 1</script>"), "Uncaught"),
    (PHONE, "light", GOOD.format(FORBIDDEN), "Content Security Policy"),
], indirect=["size", "page"])
def test_what_is_wrong_with_a_page_is_found(site, page, axe, text, problem):
    site.text = text
    page.opens(site.url)
    found = problems(page, axe)
    if problem:
        assert any(problem in each for each in found), found
    else:
        assert not found
