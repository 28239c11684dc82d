"""Every format tells the same facts, and none breaks on what a plan may hold."""

from __future__ import annotations

import json as json_text
import re
from dataclasses import asdict, replace
from pathlib import Path

import pytest
from plotly.offline import get_plotlyjs
from pydantic import TypeAdapter

from pgdyno.analysis.answer_facts import Doubt
from pgdyno.analysis.facts import SCHEMA, Facts, Judgement
from pgdyno.analysis.replaced import ReplacedFacts
from pgdyno.analysis.telemetry_facts import Sampled, SampledTable, TelemetryFacts
from pgdyno.report import html, json, markdown
from pgdyno.report.compose import compose
from pgdyno.report.document import Table, Text
from pgdyno.report.sections import ORDER, cycles, stages
from pgdyno.stats.window import FOLLOW
from tests.data.page_text import page_text
from tests.data.pages import facts_of, filled

HOSTILE = "a < b & `c` | </script><script>alert(1)</script> [x](y) *z*"


@pytest.fixture(scope="session")
def page(facts: Facts) -> str:
    return html.render(facts)


@pytest.fixture(scope="session")
def own_page(page: str) -> str:
    """The page without plotly.js and the figures."""
    return re.sub(r"<script.*?</script>", "", page, flags=re.DOTALL)


def test_json_reads_back_as_the_facts(facts: Facts) -> None:
    text = json.render(facts)
    raw = json_text.loads(text, parse_constant=pytest.fail)
    assert raw["schema"] == SCHEMA
    assert TypeAdapter(Facts).validate_json(text) == facts


def test_json_schema_names_every_field_of_the_report(facts: Facts) -> None:
    shape = json.schema()
    assert set(shape["properties"]) == set(asdict(facts))
    assert set(shape["required"]) == set(asdict(facts))


def test_the_page_that_browsers_are_shown_has_every_section(tmp_path: Path) -> None:
    """What no page holds is looked at at no width: a new section has to be put into `filled`."""
    everything = filled(facts_of(tmp_path))
    missing = {
        module.__name__.rpartition(".")[2] for module in ORDER if not module.section(everything)
    }
    assert missing == {"imported", "profile"}, "these have pages of their own"


def test_page_and_markdown_introduce_what_else_limits_an_answer_by_the_same_words(
    facts: Facts,
) -> None:
    doubts = (Doubt("a", True, (), True, "too briefly"), Doubt("b", False, (), True, "two rounds"))
    told = replace(facts, answer=replace(facts.answer, doubts=doubts))
    light = compose(told).light
    assert light is not None
    assert light.besides == "Besides, these limit the numbers:"
    assert light.besides in markdown.render(told)
    assert light.besides in html.render(told)
    alone = compose(replace(facts, answer=replace(facts.answer, doubts=doubts[:1]))).light
    assert alone is not None
    assert alone.besides == ""


@pytest.mark.parametrize(("tables", "told"), [((), "the log is not read"), (("log",), "that took")])
def test_a_log_that_was_read_by_sql_is_not_called_unread(
    facts: Facts, tables: tuple[str, ...], told: str
) -> None:
    telemetry = facts.telemetry or TelemetryFacts((), (), ())
    read = Sampled(tables=tuple(SampledTable(one, "snapshot", (), ()) for one in tables))
    theirs = replace(
        facts, server={"up since": "today"}, telemetry=replace(telemetry, sampled=read)
    )
    last = cycles.section(theirs).blocks[-1]
    assert isinstance(last, Text)
    assert told in last.text


def test_no_card_praises_what_a_check_speaks_against(facts: Facts) -> None:
    """`better` in green below a red light: who looks at cards alone believes it."""
    every = tuple(stage.name for stage in facts.stages)
    short = Doubt("no whole checkpoint cycles", True, every, True, "measured too briefly")
    unknown = Doubt("it is not known whether throughput was steady", False, every, True)
    out, differs = Doubt("inputs out of their band", True), Doubt("1 unexplained difference", True)
    for doubts, tone, said in (
        ((), "good", ()),
        ((unknown,), "good", ()),
        ((short,), "warn", ("measured too briefly",)),
        ((short, unknown, out), "warn",
         ("measured too briefly; 1 more above speaks against it",)),
        ((short, unknown, out, differs), "warn",
         ("measured too briefly; 2 more above speak against it",)),
    ):  # fmt: skip
        better = replace(facts, answer=replace(facts.answer, doubts=doubts))
        first, tuned, *_ = compose(better).cards
        assert (tuned.verdict, tuned.tone, tuned.doubts) == ("better", tone, said)
        assert first.doubts == (("measured too briefly",) if short in doubts else ())


@pytest.mark.parametrize(
    ("reason", "told"),
    [
        ("nothing gives up durability", "data in /srv/a; nothing gives up durability"),
        ("data folder /srv/a in memory (tmpfs) (file system)",) * 2,
        ("not known: the device of data folder /srv/a/pgdyno-work/data",) * 2,
        ("data folder /srv/ab in memory", "data in /srv/a; data folder /srv/ab in memory"),
    ],
)
def test_a_stage_names_its_folder_once(facts: Facts, reason: str, told: str) -> None:
    stage = replace(facts.stages[0], folder="/srv/a", rung_reason=reason, build=None, pooler=None)
    table = next(
        one for one in stages.section(replace(facts, stages=(stage,))).blocks
        if isinstance(one, Table)
    )  # fmt: skip
    assert table.rows[0][0].note == told


def test_folders_on_one_device_are_told(facts: Facts) -> None:
    """Who compares two disks by two folders of one would read chance as a difference."""
    first, second, third, *others = facts.stages
    second, third = replace(second, folder="/srv/a"), replace(third, folder="/mnt/b")
    host = {**facts.host, "file_system.device": "/dev/vda", "folders./srv/a.device": "/dev/vda"}
    stages = (first, second, third, *others)
    for device, told in (("/dev/vda", ", /srv/a and /mnt/b lie"), ("/dev/vdb", " and /srv/a lie")):
        placed = {**host, "folders./mnt/b.device": device}
        text = markdown.render(replace(facts, stages=stages, host=placed))
        assert f"pgdyno's own folder{told} on one file system: of stages" in text
    assert "lie on one file system" not in markdown.render(facts)
    in_memory = {"file_system.device": "tmpfs", "folders./srv/a.device": "tmpfs"}
    apart = replace(facts, stages=stages, host={**facts.host, **in_memory})
    assert "lie on one file system" not in markdown.render(apart)


def test_a_card_says_what_its_stage_is(facts: Facts) -> None:
    """`initdb` means nothing to a manager; what the plan says of the stage does."""
    first, *others = facts.stages
    told = replace(facts, stages=(replace(first, why="PostgreSQL as it comes."), *others))
    assert compose(told).cards[0].why == "PostgreSQL as it comes."
    assert '<p class="why">PostgreSQL as it comes.</p>' in html.render(told)
    silent = replace(facts, stages=tuple(replace(one, why="") for one in facts.stages))
    assert 'class="why"' not in html.render(silent)


def test_what_is_of_the_tpcc_text_is_said_of_tpcc_alone(facts: Facts) -> None:
    once = tuple(replace(one, checks=1) for one in facts.conditions)
    other = replace(facts, compliance=(), conditions=once)
    text = markdown.render(other)
    assert "differs from the TPC-C text" in markdown.render(facts)
    assert "differs from what pgbench does" in text
    assert "Consistency conditions, checked once." in text
    assert "clause" not in text.partition("Consistency conditions")[2].partition("|")[0]


def test_no_table_has_a_head_alone(facts: Facts) -> None:
    kind = facts.stages[0].latency[0].kind
    stages = tuple(
        replace(stage, latency=tuple(one for one in stage.latency if one.kind == kind))
        for stage in facts.stages
    )
    for told in (facts, replace(facts, stages=stages), replace(facts, protocol=())):
        assert headless(told) == []


def headless(facts: Facts) -> list[str]:
    document = compose(facts)
    tables = [one for each in document.sections for one in each.blocks if isinstance(one, Table)]
    return [one.caption for one in tables if not one.rows]


def test_a_trial_that_was_broken_off_is_called_so(facts: Facts) -> None:
    first, *others = facts.trials
    running = replace(first, state="running", reason=None, throughput=None)
    again = ReplacedFacts(first.number, 99, 1, first.stage, "running", None, None)
    for told in (
        replace(facts, trials=(running, *others)),
        replace(facts, replaced=(again,)),
    ):
        text = markdown.render(told)
        assert "| broken off |" in text
        assert "| running |" not in text
        assert "the run ended while it was measured" in text
        assert "another of it failed" not in text


def test_a_shortened_plan_is_advised_in_whole_sentences(facts: Facts) -> None:
    """It read `if it finds that too: follow them: protocol.checkpoints`."""
    judged = Judgement("finding", "no checkpoint in the window", FOLLOW)
    stages = tuple(replace(stage, checkpoint_cycle=judged) for stage in facts.stages)
    text = markdown.render(replace(facts, stages=stages, quick=True))
    assert (
        "Run the plan without --quick; if that finds the same, let windows follow checkpoints:"
        " protocol.checkpoints"
    ) in text.replace("\\", "")


def test_markdown_and_page_hold_every_cell(facts: Facts, own_page: str) -> None:
    text = markdown.render(facts).replace("\\", "")
    shown = page_text(own_page)
    for section in compose(facts).sections:
        assert f"## {section.title}" in text
        assert f'id="{section.ident}"' in own_page
        for table in (block for block in section.blocks if isinstance(block, Table)):
            for cell in (cell for row in table.rows for cell in row):
                assert cell.text in text
                assert (cell.text if cell.code else cell.text.replace("`", "")) in shown


def test_what_is_code_in_a_cell_is_code_on_the_page(own_page: str) -> None:
    """Markdown had it so; the page showed the ticks."""
    assert "figures of <code>earlier</code> agree" in own_page


def test_no_line_ends_within_an_option_and_its_value_is_code_with_it(facts: Facts) -> None:
    """On a telephone `--` ended a line, and `set protocol.rounds=6` began the next."""
    said = (
        "Shortened by --quick: repeat it with `--set protocol.rounds=6`, or `--dry-run`; `a--b --`"
        " is none, nor `group-commit`."
    )
    answer = replace(facts.answer, plain=(said,))
    page = html.render(replace(facts, answer=answer))
    assert '<code><span class="option">--set</span> protocol.rounds=6</code>' in page
    assert '<code><span class="option">--dry-run</span></code>' in page
    assert 'Shortened by <span class="option">--quick</span>: repeat' in page
    assert "<code>a--b --</code>" in page
    assert '<code class="whole">group-commit</code>' in page, "the name of a stage is one word"


def test_no_line_ends_between_a_number_and_its_unit_or_within_an_option_of_a_sentence(
    facts: Facts,
) -> None:
    """`takes about 1 min 32` ended a line and `s` began the next; `--` and `quick:` likewise."""
    said = "Shortened by --quick: it takes about 1 min 32 s, writes 22.9 KiB, and is no 3 sigma."
    page = html.render(replace(facts, answer=replace(facts.answer, plain=(said,))))
    whole = '<span class="whole">{}</span>'
    assert 'by <span class="option">--quick</span>: it' in page
    assert f"about {whole.format('1 min 32 s')}, writes {whole.format('22.9 KiB')}, and is" in page
    assert "no 3 sigma" in page


def test_page_and_markdown_introduce_what_limits_an_answer_alike(
    facts: Facts, own_page: str
) -> None:
    """Few rounds are known, and Markdown called them not known."""
    light = compose(facts).light
    assert light is not None
    assert light.besides == "Besides, these limit the numbers:"
    assert f'<p class="besides">{light.besides}</p>' in own_page
    assert f"\n\n{light.besides}\n\n" in markdown.render(facts)
    mild = tuple(one for one in facts.answer.doubts if not one.grave)
    lighter = compose(replace(facts, answer=replace(facts.answer, doubts=mild))).light
    assert lighter is not None
    assert lighter.besides == "", "nothing stands before it"


def test_tables_of_markdown_are_rectangles(facts: Facts) -> None:
    widths: set[int] = set()
    for line in markdown.render(facts).splitlines():
        if not line.startswith("|"):
            assert len(widths) <= 1, "a table has rows of different widths"
            widths = set()
            continue
        widths.add(len(re.findall(r"(?<!\\)\|", line)))


def test_our_results_are_never_called_tpmc(facts: Facts, own_page: str) -> None:
    for text in (own_page, markdown.render(facts), json.render(facts)):
        assert "tpmc" not in text.lower().replace("tpmtotal", "")
        assert "TPC-C-like, not a TPC result" in text


def test_the_page_refers_to_nothing_outside(own_page: str) -> None:
    assert "default-src 'none'" in own_page
    references = re.findall(r"""(?:href|src|action)=["']([^"']*)["']""", own_page)
    assert references
    assert all(reference.startswith(("#", "data:,")) for reference in references)
    assert not re.search(r"@import|url\(", own_page)


def test_every_table_has_a_caption_and_every_chart_a_description(own_page: str) -> None:
    assert own_page.count("<table") == own_page.count("<caption>")
    assert own_page.count('class="plot"') == own_page.count('role="img" aria-label="')
    assert 'aria-label=""' not in own_page


def test_ends_of_scripts_and_markup_in_a_plan_stay_text(facts: Facts) -> None:
    stage = replace(facts.stages[0], why=HOSTILE)
    trials = tuple(replace(trial, reason=HOSTILE) for trial in facts.trials)
    hostile = replace(
        facts, question=HOSTILE, stages=(stage, *facts.stages[1:]), trials=trials, plan=HOSTILE
    )
    page = html.render(hostile)
    assert "<script>alert(1)" not in page
    assert page.count("<script") == html.render(facts).count("<script")
    assert markdown.render(hostile).splitlines()[0] == (
        "# a \\< b & `c` \\| \\</script>\\<script>alert(1)\\</script> \\[x](y) \\*z\\*"
    )


def test_a_stage_name_cannot_end_the_figures(facts: Facts) -> None:
    name = "</script><b>"
    stages = tuple(replace(stage, name=f"{stage.name}{name}") for stage in facts.stages)
    trials = tuple(replace(trial, stage=f"{trial.stage}{name}") for trial in facts.trials)
    page = html.render(replace(facts, stages=stages, trials=trials))
    figures = re.search(r'<script type="application/json" id="figures">(.*?)</script>', page)
    assert figures is not None
    assert name in str(json_text.loads(figures[1]))


def test_a_stage_after_the_first_is_told_once_though_that_is_also_the_one_before(
    facts: Facts,
) -> None:
    first, second, *more = facts.stages
    assert second.to_first is not None
    open_ = replace(second.to_first, verdict="undecided", reason="neither is beyond the other")
    both = replace(
        second, to_first=replace(open_, reason=f"{open_.reason}; look again"), to_previous=open_
    )

    text = markdown.render(replace(facts, stages=(first, both, *more)))

    assert text.count("neither is beyond the other") == 1
    assert "neither is beyond the other; look again" in text


def test_the_plotly_that_comes_with_pgdyno_is_read_once_by_the_browser() -> None:
    """A version of another form would be read twice, and open slower, without a word."""
    whole = get_plotlyjs()
    once = html.parsed_once(whole)
    assert len(once) == len(whole) + 2
    assert ": this, (() => {" in once
    assert once.rstrip().endswith("})));")
    assert html.parsed_once("(() => {})();") == "(() => {})();"
