import stat
from pathlib import Path
from types import SimpleNamespace

import pytest
from scrapy.settings import Settings

from tres_scrapy.config.declaration import ConfigError
from tres_scrapy.export.json_lines import JsonLinesPipeline


def test_file_for_nothing_is_taken_away_but_no_device(tmp_path):
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


def test_output_that_cannot_be_written_is_told_before_the_crawl_begins(tmp_path):
    settings = Settings({"TRES_OUTPUT": str(tmp_path)})
    crawler = SimpleNamespace(settings=settings, spider=None, get_extension=lambda kind: None)
    with pytest.raises(ConfigError, match=r"TRES_OUTPUT .* cannot be written: .*Is a dir"):
        JsonLinesPipeline.from_crawler(crawler)
