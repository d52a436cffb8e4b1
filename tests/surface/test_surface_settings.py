import pytest

from tres_scrapy.config.config import Config
from tres_scrapy.config.declaration import ConfigError
from tres_scrapy.surface.settings import SurfaceOptions


def test_programs_check_their_own_settings():
    settings = {"TRES_SURFACE_QUERIES": "7", "TRES_PAGES": "9"}
    assert SurfaceOptions.from_settings(settings).queries == 7
    assert Config.from_settings(settings).pages == 9
    with pytest.raises(ConfigError, match="TRES_SURFACE_QUERY; did you mean TRES_SURFACE_QUERIES"):
        SurfaceOptions.from_settings({"TRES_SURFACE_QUERY": "7"})
    with pytest.raises(ConfigError, match=r"TRES_SURFACE_POST \(-a surface_post=\) 'x': must be"):
        SurfaceOptions.from_settings({"TRES_SURFACE_POST": "x"})
