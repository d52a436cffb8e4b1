"""Programs that answer: functions, commands, and what goes wrong with them."""

import signal
import sys
import threading
from pathlib import Path
from time import sleep

import pytest

from tres_scrapy.answerer.answer import Answer, AnswererError, AskedPage
from tres_scrapy.answerer.answerer import Answerer
from tres_scrapy.answerer.function import answers

PAGES = [AskedPage(f"http://h{i}.test/", "a\nb", "thé " * 9_000, "tea: oolong") for i in range(5)]
MODULE = """
import os, subprocess, time
def told(pages):
    print("noise")
    last = pages[4]
    sure = last.text[:3] == "thé"
    return [(True, "a  tea\\nshop"), False, None, [None, "unsure"], (sure, last.topic)]
def hang(pages):
    started = subprocess.Popen(["sleep", "1000"])
    open(os.environ["NOTE"], "w").write(str(started.pid))
    time.sleep(1000)
def fail(pages):
    raise ValueError("one\\ntwo")
def stop(pages):
    raise SystemExit(0)
def few(pages):
    return [True]
def number(pages):
    return [1] * 5
def strange(pages):
    return [object()] * 5
def text(pages):
    return "yes"
def nothing(pages):
    pass
"""


@pytest.fixture
def module(tmp_path, monkeypatch):
    (tmp_path / "own_answers.py").write_text(MODULE, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (True, Answer(True)),
        (None, Answer(None)),
        ([False, "a\x1b[1m  shop\n"], Answer(False, "a[1m shop")),
        ([True, "x" * 500], Answer(True, "x" * 200)),
    ],
)
def test_answer_is_read(value, expected):
    assert Answer.read(value) == expected


@pytest.mark.parametrize("value", [1, "yes", [True], [True, 1], [1, ""], [], {}, [True, "", ""]])
def test_other_values_are_refused(value):
    with pytest.raises(ValueError, match="must be true, false or null"):
        Answer.read(value)


def test_missing_program_is_refused_at_once():
    for name, said in (
        ("program no-such-program -x", "there is no program 'no-such-program'"),
        ("no_such_module:judge", "there is no module 'no_such_module'"),
    ):
        with pytest.raises(AnswererError, match=said):
            Answerer(name)


def test_function_must_return_a_list(module):
    with pytest.raises(TypeError, match=r"returned None, must be a list"):
        list(answers("own_answers:nothing", PAGES))
    with pytest.raises(TypeError, match=r"returned 'yes', must be a list"):
        list(answers("own_answers:text", PAGES))


@pytest.mark.slow
def test_function_answers(module, loaded_python):
    assert Answerer("own_answers:told").ask(PAGES) == [
        Answer(True, "a tea shop"),
        Answer(False),
        Answer(None),
        Answer(None, "unsure"),
        Answer(True, "tea: oolong"),
    ]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("function", "said"),
    [
        ("fail", "ended with status 1: ValueError: one two"),
        ("absent", "ended with status 1: AttributeError: module 'own_answers' has no attribute"),
        ("stop", "ended with status 1: SystemExit: 0"),
        ("few", "gave 1 answers to 5 pages: give one for each"),
        ("number", "answered '1': must be true, false or null"),
        ("strange", "answered '<object object at"),
    ],
)
def test_bad_function_is_one_line(module, loaded_python, function, said):
    with pytest.raises(AnswererError) as error:
        Answerer(f"own_answers:{function}").ask(PAGES)
    assert said in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.slow
def test_program_answers():
    program = f"program {sys.executable} -c \"import sys; [print('true') for _ in sys.stdin]\""
    assert Answerer(program).ask(PAGES) == [Answer(True)] * 5
    with pytest.raises(AnswererError, match="answered 'maybe'"):
        Answerer("program sh -c 'for i in 1 2 3 4 5; do echo maybe; done'").ask(PAGES)
    with pytest.raises(AnswererError, match="gave 1 answers"):
        Answerer("program echo true").ask(PAGES)


@pytest.mark.slow
def test_close_kills_no_process_that_has_ended(monkeypatch):
    answerer = Answerer("program cat")
    with pytest.raises(AnswererError, match="answered"):
        answerer.ask(PAGES)
    monkeypatch.setattr("os.killpg", lambda *_: pytest.fail("this number may be another's now"))
    answerer.close()


@pytest.mark.slow
def test_hanging_program_is_killed_with_its_children(module, monkeypatch):
    monkeypatch.setenv("NOTE", str(module / "pid"))
    with pytest.raises(AnswererError, match=r"took more than 3 s"):
        Answerer("own_answers:hang", patience=3).ask(PAGES)
    assert is_gone(int((module / "pid").read_text()))


@pytest.mark.slow
def test_close_ends_a_call():
    answerer, said = Answerer("program sleep 1000"), []

    def ask():
        try:
            answerer.ask(PAGES)
        except AnswererError as error:
            said.append(str(error))

    thread = threading.Thread(target=ask)
    thread.start()
    while answerer._process is None:
        sleep(0.01)
    answerer.close()
    thread.join(60)
    assert said == [f"answerer 'program sleep 1000' ended with status {-signal.SIGKILL}"]


def is_gone(pid):
    """Return whether a process ends soon; one that has ended waits until it is reaped."""
    for _ in range(1_000):
        try:
            state = Path("/proc", str(pid), "stat").read_text().rpartition(")")[2].split()[0]
        except FileNotFoundError:
            return True
        if state == "Z":
            return True
        sleep(0.01)
    return False
