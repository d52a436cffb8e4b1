import stat
from pathlib import Path

from tres_scrapy.pipelines import JsonLinesPipeline


def test_file_for_nothing_is_taken_away_but_no_device(tmp_path):
    device, file = tmp_path / "null", tmp_path / "new" / "pages.jsonl"
    device.symlink_to("/dev/null")
    for path in (device, file):
        pipeline = JsonLinesPipeline(path)
        pipeline.open_spider()
        assert path.exists()
        pipeline.close_spider()
    assert not file.exists()
    assert device.is_symlink()
    assert stat.S_ISCHR(Path("/dev/null").stat().st_mode)
