import stat
from pathlib import Path
from types import SimpleNamespace

import pytest
from scrapy.settings import Settings

from tres_scrapy.config.declaration import ConfigError
from tres_scrapy.export.json_lines import JsonLinesPipeline


def test_empty_file_is_removed(tmp_path):
    device, file = tmp_path / "null", tmp_path / "new" / "pages.jsonl"
    device.symlink_to("/dev/null")
    for path in (device, file):
        pipeline = JsonLinesPipeline(path)
        pipeline.open()
        assert path.exists()
        pipeline.close_spider()
    assert not file.exists()
    assert device.is_symlink()
    assert stat.S_ISCHR(Path("/dev/null").stat().st_mode)


def test_unwritable_output_is_found_early(tmp_path):
    settings = Settings({"TRES_OUTPUT": str(tmp_path)})
    learner = SimpleNamespace(output=tmp_path, job=None, stop=None)
    crawler = SimpleNamespace(settings=settings, spider=None, get_extension=lambda kind: learner)
    with pytest.raises(ConfigError, match=r"TRES_OUTPUT .* cannot be written: .*Is a dir"):
        JsonLinesPipeline.from_crawler(crawler)
