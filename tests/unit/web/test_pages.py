"""What is served over plain HTTP."""

import pytest

from fabric.web.pages import Pages


@pytest.fixture
def built(tmp_path):
    (tmp_path / "assets").mkdir()
    (tmp_path / "index.html").write_text("<p>hi")
    (tmp_path / "assets" / "a.js").write_text("1")
    (tmp_path / "assets" / "notes.map").write_text("no")
    return tmp_path


def test_the_page_and_its_parts(built):
    pages = Pages(built)
    assert pages.answer("/").body == b"<p>hi"
    assert dict(pages.answer("/").headers)["Cache-Control"] == "no-store"
    part = pages.answer("/assets/a.js")
    assert (part.status, dict(part.headers)["Content-Type"]) == (
        200,
        "text/javascript; charset=utf-8",
    )


@pytest.mark.parametrize(
    "target",
    ["/?t=1", "/assets", "/assets/", "/../index.html", "/assets/notes.map", "//", "/assets/a.js?x"],
)
def test_nothing_else(built, target):
    assert Pages(built).answer(target).status == 404


def test_a_page_that_was_not_built_says_so(tmp_path):
    answer = Pages(tmp_path).answer("/")
    assert answer.status == 503
    assert b"not built" in answer.body
    assert Pages(tmp_path / "nothing").answer("/healthz").body == b"ok\n"


def test_every_answer_is_locked_down(built):
    for target in ("/", "/assets/a.js", "/healthz", "/nothing"):
        headers = dict(Pages(built).answer(target).headers)
        policy = headers["Content-Security-Policy"]
        assert policy.startswith("default-src 'none'; script-src 'self';")
        assert "unsafe" not in policy
        assert "frame-ancestors 'none'" in policy
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert headers["Referrer-Policy"] == "no-referrer"
        assert "Set-Cookie" not in headers
        assert "Strict-Transport-Security" not in headers
    assert "Strict-Transport-Security" in dict(Pages(built, tls=True).answer("/").headers)
