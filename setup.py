"""What pyproject.toml cannot say: the topic packs in models/ are installed inside the package.

scrapyd-deploy builds its egg from this file too.
"""

from setuptools import find_packages, setup

setup(
    packages=[*find_packages(include=["tres_scrapy*"]), "tres_scrapy.models"],
    package_dir={"tres_scrapy.models": "models"},
    include_package_data=False,  # of the sources' files, a wheel has these:
    package_data={
        "": ["*.css", "*.html", "*.jinja", "*.js", "*.json", "py.typed"],
        "tres_scrapy.models": ["*/topic.toml", "*/*.safetensors", "*/*.npz", "*/keywords.txt"],
    },
)
