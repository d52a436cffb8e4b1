import pytest

from tres_scrapy.downloader.browser import Rotation, context_options, find_browser, launch_options


@pytest.fixture
def bare(tmp_path, monkeypatch):
    """A machine without a browser; return the directory that its PATH names."""
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setenv("PLAYWRIGHT_BROWSERS_PATH", str(tmp_path / "own"))
    return tmp_path


def executable(path):
    path.parent.mkdir(parents=True)
    path.write_text("#!/bin/sh\n", encoding="utf-8")
    path.chmod(0o755)
    return path


def test_browser_of_the_system_is_found(bare):
    path = executable(bare / "bin" / "chromium")
    assert find_browser() == path


def test_playwright_browser_is_found(bare):
    path = executable(bare / "own" / "chromium-1200" / "chrome-linux" / "chrome")
    assert find_browser() == path


def test_missing_browser_names_the_remedy(bare):
    with pytest.raises(
        ValueError, match=r"no Chromium is installed: install Chromium .*-a browser="
    ):
        find_browser()


@pytest.mark.parametrize("kind", ["missing", "directory", "text"])
def test_path_must_be_a_program(tmp_path, kind):
    path = tmp_path / kind
    if kind == "directory":
        path.mkdir()
    elif kind == "text":
        path.write_text("x", encoding="utf-8")
    with pytest.raises(ValueError, match="must be an executable of Chromium"):
        find_browser(path)


def test_browser_gets_no_secrets(tmp_path, monkeypatch):
    monkeypatch.setenv("SECRET_KEY", "x")
    monkeypatch.setenv("http_proxy", "http://name:password@proxy.test")
    options = launch_options(tmp_path / "chromium", tmp_path, ("--lang=de",), sandbox=True)
    assert not {"SECRET_KEY", "http_proxy"} & options["env"].keys()
    assert options["env"]["HOME"] == str(tmp_path)
    assert options["chromium_sandbox"] is True
    assert options["args"][-1] == "--lang=de"


def test_everything_goes_through_the_gate():
    options = context_options(1234, "tres", "")
    assert options["proxy"] == {"server": "http://127.0.0.1:1234"}
    assert options["accept_downloads"] is False


def test_context_serves_a_fixed_number():
    rotation = Rotation(pages=2)
    names = []
    for _ in range(5):
        names.append(rotation.enter("a"))
        assert rotation.leave("a", names[-1]) == (len(names) % 2 == 0)
    assert len(set(names)) == 3


def test_context_with_an_open_page_stays():
    rotation = Rotation(pages=2)
    first, second, third = (rotation.enter("a") for _ in range(3))
    assert first == second != third
    assert not rotation.leave("a", second)
    assert not rotation.leave("a", third)
    assert rotation.leave("a", first)


def test_kinds_have_contexts_of_their_own():
    rotation = Rotation(pages=9)
    assert rotation.enter("a") != rotation.enter("b")
