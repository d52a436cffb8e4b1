import os
import sqlite3
from contextlib import closing

import pytest

from tres_scrapy.config.config import Config, ShardOptions, WordOptions
from tres_scrapy.config.offline import WebOptions
from tres_scrapy.run.identity import identity_of
from tres_scrapy.run.job_file import open_database
from tres_scrapy.run.journal import Journal
from tres_scrapy.run.run_file import NAME, SCHEMA, open_to_read
from tres_scrapy.url.message import TresError


def refused(directory):
    """Return the one-line message that says why a directory cannot be a JOBDIR."""
    with pytest.raises(TresError) as error:
        open_database(directory)
    assert "\n" not in str(error.value)
    return str(error.value)


def test_second_crawl_is_refused(tmp_path):
    first = open_database(tmp_path)
    assert "another process is using" in refused(tmp_path)
    first.close()
    open_database(tmp_path).close()


def test_foreign_database_is_untouched(tmp_path):
    connection = sqlite3.connect(tmp_path / NAME)
    connection.execute("CREATE TABLE notes (text)")
    connection.commit()
    connection.close()
    before = (tmp_path / NAME).read_bytes()
    assert "another program" in refused(tmp_path)
    assert (tmp_path / NAME).read_bytes() == before


def test_foreign_file_is_untouched(tmp_path):
    (tmp_path / NAME).write_text("a shopping list, long enough for a header of a database\n" * 20)
    before = (tmp_path / NAME).read_bytes()
    assert "not a database" in refused(tmp_path)
    assert (tmp_path / NAME).read_bytes() == before


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (1, "newer version of TRES"),
        (
            6 - SCHEMA.version,
            f"older version of TRES (format 6, this one reads {SCHEMA.version}): give",
        ),
    ],
)
def test_other_format_is_refused(tmp_path, change, said):
    open_database(tmp_path).close()
    with sqlite3.connect(tmp_path / NAME) as connection:
        connection.execute(f"PRAGMA user_version = {SCHEMA.version + change}")
    connection.close()
    before = (tmp_path / NAME).read_bytes()
    assert said in refused(tmp_path)
    assert (tmp_path / NAME).read_bytes() == before


def test_tables_that_were_changed_are_refused(tmp_path):
    open_database(tmp_path).close()
    with sqlite3.connect(tmp_path / NAME) as connection:
        connection.execute("CREATE TRIGGER t AFTER INSERT ON page BEGIN DELETE FROM batch; END")
    connection.close()
    assert "tables that TRES did not create" in refused(tmp_path)


def test_binary_schema_is_one_line(tmp_path):
    open_database(tmp_path).close()
    file = tmp_path / NAME
    schema = file.read_bytes()
    assert b"CREATE TABLE lease" in schema
    file.write_bytes(schema.replace(b"CREATE TABLE lease", b"CREATE TABLE leas\xff"))
    assert refused(tmp_path).isprintable()


def test_scrapy_jobdir_is_refused(tmp_path):
    (tmp_path / "requests.queue").mkdir()
    assert "Scrapy's own scheduler" in refused(tmp_path)


@pytest.mark.parametrize("suffix", ["", "-wal"])
def test_foreign_link_is_not_followed(tmp_path, suffix):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_bytes(b"precious")
    directory = tmp_path / "job"
    directory.mkdir()
    (directory / f"{NAME}{suffix}").symlink_to(elsewhere)
    assert "not a plain file" in refused(directory)
    assert elsewhere.read_bytes() == b"precious"


def test_file_instead_of_directory_is_reported(tmp_path):
    (tmp_path / "job").write_text("")
    assert "is a file: give a directory" in refused(tmp_path / "job")


def test_impossible_directory_is_reported(tmp_path):
    (tmp_path / "file").write_text("")
    assert "cannot be used" in refused(tmp_path / "file" / "job")


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write")
def test_read_only_directory_is_reported(tmp_path):
    tmp_path.chmod(0o500)
    assert "check the permissions of its folder" in refused(tmp_path)


def test_crawl_of_another_topic_is_refused(tmp_path):
    Journal.open(tmp_path, {"topic": "food"}).close()
    with pytest.raises(TresError, match="a crawl with topic 'food', not 'sports'"):
        Journal.open(tmp_path, {"topic": "sports"})
    Journal.open(tmp_path, {"topic": "food"}).close()


def test_real_and_offline_are_not_mixed(tmp_path):
    real, offline = Config(topic="food"), Config(topic="food", web=WebOptions("synthetic", 3))
    Journal.open(tmp_path / "real", identity_of(real)).close()
    with pytest.raises(TresError, match="web 'the real one', not 'synthetic 3'"):
        Journal.open(tmp_path / "real", identity_of(offline))
    Journal.open(tmp_path / "offline", identity_of(offline)).close()
    with pytest.raises(TresError, match="web 'synthetic 3', not 'the real one'"):
        Journal.open(tmp_path / "offline", identity_of(real))


def test_keywords_and_pack_are_not_mixed(tmp_path):
    (tmp_path / "food.txt").write_text("soup\n")
    pack, words = (
        identity_of(Config(topic="food", words=each))
        for each in (WordOptions(), WordOptions(tmp_path / "food.txt"))
    )
    Journal.open(tmp_path / "pack", pack).close()
    with pytest.raises(TresError, match="with keywords none, not '1 lines, "):
        Journal.open(tmp_path / "pack", words)
    Journal.open(tmp_path / "words", words).close()
    with pytest.raises(TresError, match=r"with keywords '1 lines, .*, not none"):
        Journal.open(tmp_path / "words", pack)


def test_older_job_without_keywords_is_resumed(tmp_path):
    identity = identity_of(Config(topic="food"))
    older = {name: value for name, value in identity.items() if name != "keywords"}
    Journal.open(tmp_path, older).close()
    Journal.open(tmp_path, identity).close()


def test_empty_file_is_reported(tmp_path, caplog):
    open_database(tmp_path / "new").close()
    assert "is empty" not in caplog.text
    (tmp_path / NAME).touch()
    open_database(tmp_path).close()
    assert f"{NAME} is empty: the crawl starts at its seeds" in caplog.text


def test_folder_of_shards_is_refused(tmp_path):
    (tmp_path / "cluster.sqlite").touch()
    with pytest.raises(TresError, match="holds a crawl in shards: tres cluster crawl resumes it"):
        open_database(tmp_path)
    assert not (tmp_path / NAME).exists()


def test_journal_of_two_files_is_refused(tmp_path):
    (tmp_path / "tres.sqlite").write_bytes(b"SQLite format 3")
    assert "an older version of TRES (tres.sqlite): resume it with that" in refused(tmp_path)
    assert not (tmp_path / NAME).exists()


def test_file_is_readable_while_a_crawl_writes_it(tmp_path):
    journal = Journal.open(tmp_path, {"topic": "food"})
    with closing(open_to_read(tmp_path / NAME)) as reader:
        journal.note("name", "value")
        assert ("name", "value") in reader.execute("SELECT * FROM meta").fetchall()
    journal.close()


def test_shard_is_not_resumed_as_a_whole_crawl(tmp_path):
    shard = Config(topic="food", shard=ShardOptions(1, 3))
    Journal.open(tmp_path, identity_of(shard)).close()
    with pytest.raises(TresError, match="a crawl with shard '1 of 3', not none"):
        Journal.open(tmp_path, identity_of(Config(topic="food")))
