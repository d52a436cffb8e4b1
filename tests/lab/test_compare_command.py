from __future__ import annotations

import json
import lzma
import os
import signal
import subprocess
from functools import partial
from pathlib import Path
from time import sleep

import compare
import pytest
from archived import answered
from comparing import comparison
from comparing.result import Run, read_results
from conftest import PROJECT, command, running

from tres_scrapy.crawl.registry import POLICIES
from tres_scrapy.export.warc import exchange_records, info_record, note_record

SMALL = ["--seeds", 1, "--pages", 60, "--jobs", 1]


bench = partial(command, script=compare.command)


@pytest.mark.usefixtures("loaded_python")
@pytest.mark.long
def test_grid_is_extended_without_repeats(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "bench"
    policies = ["--policies", "random", "breadth_first"]
    with pytest.raises(SystemExit, match="0"):
        bench(*policies, *SMALL, "--max", "none", "--output", output)
    kept, damaged = sorted((output / "runs").glob("*.json"))
    before = [path.read_bytes() for path in (kept, damaged)]
    said = capsys.readouterr().out
    assert "random        MAX none  food      seed 1: harvest" in said
    assert f"2 runs, see {output / 'results.md'}" in said

    damaged.write_bytes(before[1][:100])
    with pytest.raises(SystemExit, match="0"):
        bench("--policies", "random,breadth_first", *SMALL, "--max", "none,10", "--output", output)
    out, err = capsys.readouterr()
    assert "1 of 4 runs are done already" in out
    assert "breadth_first MAX none" not in out
    assert f"{damaged} is damaged" in err
    assert kept.read_bytes() == before[0]
    assert "other code" not in err
    counts = [
        {name: json.loads(text)[name] for name in ("relevant", "domains", "fetches")}
        for text in (before[1], damaged.read_bytes())
    ]
    assert counts[0] == counts[1]
    page = (output / "results.md").read_text()
    assert all(f"| {name} | " in page for name in ("Random", "Breadth-First", "Random_10"))


@pytest.mark.usefixtures("loaded_python")
@pytest.mark.long
def test_preset_applies_to_every_run(tmp_path: Path) -> None:
    arguments = ("--policies", "tres", *SMALL, "--max", "none", "--output", tmp_path)
    with pytest.raises(SystemExit, match="0"):
        bench(*arguments, "-s", "TRES_PRESET=paper", "-s", "TRES_GAMMA=0.9")
    used = json.loads((tmp_path / "conditions.json").read_text())["configuration"]
    assert (used["preset"], used["gamma"], used["breadth"]) == ("('paper',)", "0.9", "0.0")
    with pytest.raises(SystemExit, match=r"have the settings .* give another --output"):
        bench(*arguments, "-s", "TRES_GAMMA=0.9")


@pytest.mark.usefixtures("loaded_python")
@pytest.mark.long
def test_runs_of_other_code_are_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ("--policies", "random", *SMALL, "--output", tmp_path)
    with pytest.raises(SystemExit, match="0"):
        bench(*arguments, "--max", "none")
    (path,) = (tmp_path / "runs").glob("*.json")
    path.write_text(json.dumps(json.loads(path.read_text()) | {"code": "before"}))
    capsys.readouterr()
    with pytest.raises(SystemExit, match="0"):
        bench(*arguments, "--max", "none,10")
    assert (
        f"1 of them by other code; delete their files in {path.parent}" in capsys.readouterr().err
    )
    assert "without HTTP, by 2 versions of the code." in (tmp_path / "results.md").read_text()


@pytest.mark.long
@pytest.mark.usefixtures("loaded_python")
def test_failed_run_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    broken = tmp_path / "models" / "food-svm"
    broken.mkdir(parents=True)
    for pack in ("food", "vectors"):
        (tmp_path / "models" / pack).symlink_to(PROJECT / "models" / pack)
    (broken / "topic.toml").write_text("no pack = ")
    models = f"TRES_MODELS={tmp_path / 'models'}"
    with pytest.raises(SystemExit, match="1"):
        bench(
            "--policies",
            "rivals:ACHE",
            "random",
            *SMALL,
            "--max",
            "none",
            "-s",
            models,
            "--output",
            tmp_path,
        )
    said = capsys.readouterr()
    (failure,) = said.err.splitlines()
    assert failure.startswith("synthetic-food-1-rivals.ACHE-none-60 failed: TresError: ")
    assert "1 run, see" in said.out
    assert "| Random | " in (tmp_path / "results.md").read_text()
    trace = (tmp_path / "runs" / "synthetic-food-1-rivals.ACHE-none-60.error").read_text()
    assert "Traceback" in trace


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["--policies", "treerandom"], "--policies 'treerandom' .* did you mean tree_random"),
        (["--max", "2_5"], "--max '2_5' must not rise: write 5_2"),
        (["--seeds", "x"], "--seeds 'x' must be a whole number"),
        (["--pages", "0"], "--pages '0' must be a whole number of 1 or more"),
        (["--jobs", "0"], "--jobs '0' must be a whole number of 1 or more"),
        (["--topics", "fod"], "unknown topic 'fod'"),
        (["--topics", "food-svm", "--policies", "tres"], "'food-svm' has no synthetic web"),
        (["--web", "corpsu"], "--web 'corpsu' .* did you mean corpus"),
        (["--web", "deep"], "--web 'deep' must be one of synthetic, corpus, recorded"),
        (["--web", "corpus"], "--data FILE"),
        (["--web", "recorded"], "--data FILE"),
        (["--web", "recorded", "--data", "missing.warc"], "no WARC file at 'missing.warc'"),
        (["--web", "corpus", "--data", "missing.jsonl"], "missing.jsonl"),
        (["-s", "TRES_GAMMA=2"], "TRES_GAMMA"),
        (["-s", "TRES_GAMA=0"], "did you mean TRES_GAMMA"),
        (["-s", "TRES_POLICY=tres"], "TRES_POLICY is not for a benchmark: use --policies"),
        (["-s", "DOWNLOAD_DELAY=1"], "DOWNLOAD_DELAY changes nothing in one process: remove it"),
    ],
)
def test_bench_error_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], reason: str
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit, match=rf"^compare: [^\n]*{reason}[^\n]*$"):
        bench(*arguments)
    assert list(tmp_path.iterdir()) == []


def test_other_settings_are_not_mixed(tmp_path: Path) -> None:
    (tmp_path / "conditions.json").write_text('{"web": "corpus"}')
    with pytest.raises(SystemExit, match=r"have the web 'corpus', .* give another --output"):
        bench("--policies", "random", *SMALL, "--output", tmp_path)


@pytest.mark.long
@pytest.mark.usefixtures("loaded_python")
def test_unknown_settings_are_not_mixed(tmp_path: Path) -> None:
    arguments = ["--policies", "random", *SMALL, "--max", "none", "--output", tmp_path]
    with pytest.raises(SystemExit, match="0"):
        bench(*arguments)
    (tmp_path / "conditions.json").unlink()
    with pytest.raises(SystemExit, match=r"conditions.json is missing, but there are results"):
        bench(*arguments)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("whole.jsonl", b"\xbe"),
        ("no.jsonl.xz", b"no xz"),
        ("cut.jsonl.xz", lzma.compress(b"{}\n" * 99)[:-20]),
    ],
)
def test_unreadable_documents_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, content: bytes
) -> None:
    monkeypatch.chdir(tmp_path)
    Path(name).write_bytes(content)
    with pytest.raises(SystemExit, match=rf"^compare: {name} [^\n]*$"):
        bench("--web", "corpus", "--data", name, "--policies", "random", *SMALL)


@pytest.mark.parametrize(
    ("options", "policies"),
    [
        ([], {*POLICIES}),
        (["--policies", "all"], {*POLICIES}),
        (["--policies", "tres", "rivals:LOOKAHEAD"], {"tres", "rivals:LOOKAHEAD"}),
    ],
)
def test_policies_are_compared_by_name(
    monkeypatch: pytest.MonkeyPatch, options: list[str], policies: set[str]
) -> None:
    found: list[Run] = []
    module = "compare"
    monkeypatch.setattr(f"{module}.check_runs", lambda conditions, runs: found.extend(runs))
    monkeypatch.setattr(f"{module}.run_grid", lambda *arguments: 0)
    with pytest.raises(SystemExit, match="0"):
        bench(*options)
    assert {run.policy for run in found} == policies


@pytest.mark.usefixtures("loaded_python")
def test_incomplete_recording_is_reported(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = exchange_records(answered("http://a.test/"))
    info = info_record("a.warc", {"topic": "soup", "seeds": "http://a.test/"})
    verdict = note_record("http://a.test/", {"relevant": "true"})
    content = b"".join([*info, *page, *verdict, *exchange_records(answered("http://b.test/"))])
    (tmp_path / "a.warc").write_bytes(content[:-9])
    options = ("--web", "recorded", "--data", tmp_path / "a.warc", "--max", "none")
    with pytest.raises(SystemExit, match="0"):
        bench(*options, "--policies", "random", *SMALL, "--output", tmp_path / "bench")
    out, err = capsys.readouterr()
    assert "2 pages of 2 hosts; skipped: the file ends within the record (1)" in err
    assert "Recorded by a crawl on 'soup'" in err
    assert "harvest 100.0 %, 1 domain, 1 page, links ran out" in out


LINKS = b"<html><title>Soup</title><a href=/1>leeks</a> <a href=/2>beans</a> <a href=/3>3</a>"


@pytest.fixture
def real(tmp_path: Path) -> Path:
    """Return a folder with a recorded web, where /3 is a dead link, and labels of two topics."""
    pages = {"http://a.test/": LINKS, "http://a.test/1": b"<p>leeks", "http://a.test/2": b"<p>1"}
    records = [part for each in pages.items() for part in exchange_records(answered(*each))]
    (tmp_path / "web.warc").write_bytes(b"".join(records))
    (tmp_path / "food.txt").write_text("http://a.test/1\nhttp://a.test/2\n")
    (tmp_path / "sports.txt").write_text("http://a.test/1\n")
    return tmp_path


def real_bench(folder: Path, *arguments: object) -> None:
    web = ("--web", "recorded", "--data", folder / "web.warc", "--max", "none", "--jobs", 1)
    bench(*web, "--labels", f"{folder}/{{topic}}.txt", "--output", folder / "bench", *arguments)


@pytest.mark.usefixtures("loaded_python")
def test_each_start_is_a_run(real: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (real / "starts-food.txt").write_text(
        "# hubs\nhttp://a.test\n\nhttp://a.test/1,http://a.test/2\n"
    )
    (real / "starts-sports.txt").write_text("http://a.test/2\n")
    arguments = (*("--topics", "food", "sports"), "--starts", f"@{real}/starts-{{topic}}.txt")
    arguments += ("--policies", "breadth_first", "--pages", 60)
    with pytest.raises(SystemExit, match="0"):
        real_bench(real, *arguments)
    assert "food      seed 1 from http://a.test/: harvest  66.7 %" in capsys.readouterr().out
    results, _ = read_results(real / "bench" / "runs")
    found = {(each.run.topic, each.run.start): each for each in results}
    assert len(results) == len(found) == 3
    assert found["food", "http://a.test/"].found == [2, 3]
    assert found["food", "http://a.test/"].fetches == 4
    assert found["food", "http://a.test/1,http://a.test/2"].found == [1, 2]
    assert found["sports", "http://a.test/2"].relevant == 0
    with pytest.raises(SystemExit, match="0"):
        real_bench(real, *arguments)
    assert "3 of 3 runs are done already" in capsys.readouterr().out
    (real / "sports.txt").write_text("http://a.test/2\n")
    with pytest.raises(SystemExit, match=r"have the labels of sports .* give another --output"):
        real_bench(real, *arguments)


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["--topics", "hardware"], r"--labels '.*{topic}.txt': there is no file '.*hardware.txt'"),
        (["--starts", "tea"], r"--starts 'tea' must hold http\(s\) URLs"),
        (["--starts", "@no-{topic}.txt"], "--starts '@no-food.txt' cannot be read: .*no such file"),
        (["--starts", "@empty.txt"], "--starts '@empty.txt' must hold at least one start"),
        (["--starts", "http://a.test/3"], "--starts 'http://a.test/3' is not on this web"),
        (["-s", "TRES_SEED=http://a.test/"], "TRES_SEED is not for a benchmark: use --starts"),
        (["-s", "TRES_WEB_LABELS=a.txt"], "TRES_WEB_LABELS is not for a benchmark: use --labels"),
        (["--web", "synthetic"], "--labels is for --web recorded"),
    ],
)
def test_wrong_start_is_one_line(
    real: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], reason: str
) -> None:
    monkeypatch.chdir(real)
    (real / "empty.txt").write_text("# none\n")
    with pytest.raises(SystemExit, match=rf"^compare: [^\n]*{reason}[^\n]*$"):
        real_bench(real, "--policies", "random", *arguments)
    assert not (real / "bench").exists()


@pytest.mark.long
@pytest.mark.usefixtures("loaded_python")
def test_unwritable_report_keeps_the_old(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    arguments = ("--policies", "random", *SMALL, "--max", "none", "--output", tmp_path)
    with pytest.raises(SystemExit, match="0"):
        bench(*arguments)
    before = {path: path.read_bytes() for path in tmp_path.iterdir() if path.is_file()}

    def full(path: Path) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(comparison, "whole_file", full)
    with pytest.raises(SystemExit, match=f"the report in {tmp_path} cannot be written: .*no space"):
        bench(*arguments)
    assert {path: path.read_bytes() for path in tmp_path.iterdir() if path.is_file()} == before


@pytest.mark.long
def test_ctrl_c_keeps_finished_runs(tmp_path: Path) -> None:
    seeds = [str(seed) for seed in range(60)]
    arguments = ["--policies", "random", "--max", "none", "--pages", "40", "--seeds", *seeds]
    with running(
        *(*arguments, "--output", tmp_path),
        program="compare",
        env=os.environ | {"PYTHONPATH": str(Path(compare.__file__).parent)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        fresh=True,
        start_new_session=True,
        # a shell makes background processes ignore it
        preexec_fn=partial(signal.signal, signal.SIGINT, signal.SIG_DFL),
    ) as process:
        while process.poll() is None and not list(tmp_path.glob("runs/*.json")):
            sleep(0.05)
        os.killpg(process.pid, signal.SIGINT)  # a terminal sends it to all processes of the command
        _, err = process.communicate(timeout=300)  # waits for all processes that hold the pipes
    assert process.returncode == 130
    done = len(list(tmp_path.glob("runs/*.json")))
    assert 0 < done < len(seeds)
    assert err == (
        f"compare: interrupted, {done} of 60 runs are done; repeat the command to continue\n"
    )
    assert len((tmp_path / "results.csv").read_text().splitlines()) == 1 + done
