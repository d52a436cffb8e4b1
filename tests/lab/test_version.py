from importlib.resources import files

from comparing import result
from comparing.result import DECIDING, code_version


def test_version_follows_crawl_code_alone(tmp_path, monkeypatch):
    for name in (*DECIDING, "bench"):
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "a.py").write_text("a = 1\n")
    monkeypatch.setattr(result, "files", lambda package: tmp_path)
    versions = [code_version.__wrapped__()]
    for name in ("bench", *DECIDING):
        (tmp_path / name / "a.py").write_text("a = 2\n")
        versions.append(code_version.__wrapped__())
    assert versions[0] == versions[1], "bench decides nothing"
    assert len(set(versions)) == 1 + len(DECIDING)


def test_version_covers_existing_code():
    package = files("tres_scrapy")
    assert all((package / name / "__init__.py").exists() for name in DECIDING)
    assert code_version() == code_version.__wrapped__()
