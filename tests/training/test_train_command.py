import pytest
from conftest import command


def test_some_options_take_several_words(capsys):
    """As in `--max none 10`; one of them may have none."""
    run = ("train", "a", "--keywords", "x", "--classifier", "words", "--relevant", "b", "c")
    with pytest.raises(SystemExit, match="leave out --vectors and --beside"):
        command(*run, "--beside")
    with pytest.raises(SystemExit, match="leave out --vectors and --beside"):
        command(*run, "--beside", "svm", "tfidf")
    with pytest.raises(SystemExit, match="2"):
        command(*run, "--irrelevant")
    assert capsys.readouterr().err.startswith("tres train: --irrelevant needs a value; see")
