"""The report in a browser, from disk: sorted, explored, hostile, at the width of a phone, and in print."""

from __future__ import annotations

import re
from base64 import b64decode

import pytest
from browser import Browser, find_browser
from reported_runs import IMAGE, NOVEL, SCRIPT, make_reproduction, make_run, read, write_features

from hotshot.files import Samples, read_features
from hotshot.report import make_report, write_report

PROGRAM = find_browser()
if PROGRAM is None:
    pytest.skip("THE REPORT WAS NOT LOOKED AT: install a browser, Debian's package 'chromium'", allow_module_level=True)


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    folder = tmp_path_factory.mktemp("report")
    write_features(folder)
    out = folder / "report.html"
    run, paper = make_run(folder), make_reproduction(folder)
    write_report(out, make_report([run, paper], read, title=f"Title {IMAGE}", tasks=6))
    return out


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    with Browser(PROGRAM, tmp_path_factory.mktemp("profile")) as browser:
        yield browser


@pytest.fixture(scope="module")
def shared(browser, path):
    return browser.open(path)


@pytest.fixture
def page(shared):
    """The page as it was left; whatever a test does, nothing may be complained of, loaded or run."""
    yield shared
    assert shared.complaints == []
    loaded = [url for url in shared.requests if not url.startswith("data:")]
    assert all(url.startswith("file://") and url.endswith("report.html") for url in loaded)
    assert "RAN" not in shared.run("document.title")


RESULTS = "#part-1-results table"


def methods(page):
    return page.run(f"[...document.querySelector('{RESULTS}').tBodies[0].rows].map(r => r.cells[0].textContent)")


def test_class_names_are_text_and_run_nothing(page):
    assert page.text("h1") == f"Title {IMAGE}"
    assert page.run("document.querySelectorAll('img:not([src^=data]), script:not([type])').length") == 1
    page.run("document.querySelectorAll('details').forEach(d => { d.open = true; })")
    shown = page.run("document.body.innerText")
    assert IMAGE in shown
    assert SCRIPT in shown
    assert "{{ 7 * 7 }}" in shown
    assert "url(http" not in page.run("document.documentElement.outerHTML")
    assert page.run("getComputedStyle(document.body).display") == "block"


def test_the_table_is_sorted_by_mouse_and_by_keyboard(page):
    heading = f"{RESULTS} th:nth-child(2)"
    accuracy = f"[...document.querySelector('{RESULTS}').tBodies[0].rows].map(r => Number(r.cells[1].dataset.value))"
    assert page.run(f"document.querySelector('{heading}').ariaSort") == "descending"
    assert page.run(accuracy) == sorted(page.run(accuracy), reverse=True)
    page.click(f"{heading} button")
    assert page.run(f"document.querySelector('{heading}').ariaSort") == "ascending"
    assert page.run(accuracy) == sorted(page.run(accuracy))
    page.focus(f"{RESULTS} th:nth-child(1) button")
    page.press("Enter")
    assert methods(page) == ["centroid-cl2n", "hot", "logistic"]
    assert page.run(f"document.querySelector('{RESULTS}').querySelectorAll('[aria-sort]').length") == 1
    page.press(" ")
    assert methods(page) == ["logistic", "hot", "centroid-cl2n"]


def test_empty_cells_stay_last_in_both_orders(page):
    for _ in range(2):
        page.click(f"{RESULTS} th:nth-child(4) button")
        assert methods(page)[-1] == "hot"


EXPLORER = "#part-1-explorer"


def title(page):
    return page.text(f"{EXPLORER} .task h4")


def test_tasks_are_chosen_by_list_button_and_arrow(page):
    page.click(f"{EXPLORER} [data-jump=best]")
    best = title(page)
    page.click(f"{EXPLORER} [data-jump=worst]")
    worst = title(page)
    right = [int(re.search(r": (\d+) of 24 queries right", text)[1]) for text in (worst, best)]
    assert right[0] < right[1]
    page.press("ArrowRight")
    second = title(page)
    assert second != worst
    page.press("ArrowLeft")
    page.press("ArrowLeft")
    assert title(page) == worst
    page.focus(f"{EXPLORER} .list summary")
    page.press("ArrowRight")
    page.press("ArrowRight")
    page.press("ArrowLeft")
    assert title(page) == second
    assert page.text(f"{EXPLORER} [role=status]") == second
    listed = page.texts(f"{EXPLORER} label:nth-child(2) option")
    shares = [float(re.search(r"([\d.]+)%, \w+$", text)[1]) for text in listed]
    assert len(shares) == 6
    assert shares == sorted(shares)
    wanted = int(listed[-2].split(" ")[0])
    page.choose(f"{EXPLORER} label:nth-child(2) select", wanted)
    assert title(page).startswith(f"Task {wanted}, 1 shot: ")


def test_other_shots_have_their_own_tasks(page):
    page.choose(f"{EXPLORER} label:nth-child(1) select", 1)
    assert ", 3 shots: " in title(page)
    support = page.texts(f"{EXPLORER} .classes .card:first-child .samples li")
    assert len(support) == 3
    assert all(re.fullmatch(r"row \d+", text) for text in support)
    page.choose(f"{EXPLORER} label:nth-child(1) select", 0)
    assert ", 1 shot: " in title(page)


def test_a_task_shows_classes_lenders_mistakes_and_other_methods(page):
    page.click(f"{EXPLORER} [data-jump=worst]")
    names = page.texts(f"{EXPLORER} .classes h5")
    assert len(names) == 4
    assert set(names) <= set(NOVEL)
    for card in range(1, 5):
        bars = f"{EXPLORER} .classes .card:nth-child({card}) .bars"
        assert len(page.texts(f"{bars} li")) == 8
        assert sum(float(share.strip("<%")) for share in page.texts(f"{bars} .value")) == pytest.approx(100, abs=1)
    assert sorted(page.texts(f"{EXPLORER} .others .name")) == ["centroid-cl2n", "hot", "logistic"]
    right, asked = map(int, re.search(r"(\d+) of (\d+) queries right", title(page)).groups())
    assert page.run(f"document.querySelectorAll('{EXPLORER} .map .query').length") == asked
    assert page.run(f"document.querySelectorAll('{EXPLORER} .map .error').length") == asked - right
    assert len(page.texts(f"{EXPLORER} .list summary")) == asked - right
    hits = page.texts(f"{EXPLORER} .confusion .hit")
    assert sum(int(text) for text in hits if text != "·") == right


def test_a_click_on_a_mistake_opens_its_reason(page):
    page.click(f"{EXPLORER} [data-jump=worst]")
    # The last one painted lies on top.
    page.run(f"[...document.querySelectorAll('{EXPLORER} .map .error')].at(-1).id = 'last'")
    query = page.run("document.getElementById('last').dataset.query")
    detail = f"document.getElementById('part-1-tasks-query-{query}')"
    page.run(f"{detail}.open = false")
    page.run("document.getElementById('last').dispatchEvent(new MouseEvent('click', {bubbles: true}))")
    assert page.run(f"{detail}.open && {detail}.checkVisibility()")
    assert "lends to" in page.run(f"{detail}.textContent")
    assert page.run(f"document.activeElement === {detail}.querySelector('summary')")


DOT = b64decode("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR4nGNgAAAAAgABSK+kcQAAAABJRU5ErkJggg==")


def test_the_inputs_of_a_mistake_can_be_judged(browser, path):
    """Text and thumbnail of a query, its right and its predicted class, and its nearest examples."""
    y = read_features(path.parent / "novel.npz").y
    texts = [f"{IMAGE} {SCRIPT} {i}{' word' * 100}" for i in range(len(y))]
    ids = [f"{SCRIPT}/{i}.png" for i in range(len(y))]
    # An image of one pixel, and what is none.
    images = [DOT, b"<svg onload=alert(1)>"] * (len(y) // 2)
    kept = Samples(y, None, {"id": ids, "text": texts, "thumbnail": images})
    out, run = path.with_name("inputs.html"), make_run(path.parent, methods=("hot",), out="inputs", tasks=4, shots=1)
    write_report(out, make_report([run], lambda source: (*read(source), kept.columns), tasks=4))
    page = browser.open(out, width=390, dark=True)
    page.run("document.querySelectorAll('details').forEach(d => { d.open = true; })")
    assert page.run("document.documentElement.scrollWidth") <= 390

    def samples(selector):
        """Row of each sample and the class or classes named with it; text and image must be of that row."""
        found = page.run(
            f"[...document.querySelectorAll('{selector}')].map(e => [e.querySelector('.id').textContent, "
            "e.querySelector('.said').title, e.querySelector('.words').lastChild.textContent, "
            "e.querySelectorAll('img').length])"
        )
        rows = [ids.index(name) for name, *_ in found]
        assert [(text, images) for _, text, _, images in found] == [(texts[row], 1 - row % 2) for row in rows]
        return [(y[row], words) for row, (_, _, words, _) in zip(rows, found, strict=True)]

    wrong, right = samples(".list summary .sample"), samples(".right > li > .sample")
    assert len(wrong) > 0 < len(right)
    assert len(wrong) + len(right) == page.run("document.querySelectorAll('.map .query').length")
    for truth, words in wrong:
        assert words.startswith(truth[:29])
        assert re.search(r" \(\d+%\) taken for .+ \(\d+%\)$", words)
    assert all(words.startswith(truth[:19]) and words.endswith(", right") for truth, words in right)
    for near in (".list details:nth-child(1) .near .sample", ".right > li:nth-child(1) .samples .sample"):
        nearest = samples(near)
        assert len(nearest) == 3
        for truth, words in nearest:
            assert re.fullmatch(rf"{re.escape(truth[:19])}.*, similarity −?[01]\.\d\d", words, re.DOTALL)
    assert page.run("[...document.querySelectorAll('.explorer img')].every(e => e.naturalWidth === 1)")
    assert {url.split(":")[0] for url in page.requests} == {"file", "data"}
    assert (page.complaints, page.run("document.title")) == ([], "hot on novel.npz")
    page.run("[...document.querySelectorAll('.map .query:not(.error)')].at(-1).dispatchEvent(new MouseEvent('click'))")
    assert page.run("document.activeElement.matches('.right > li')")
    page.close()


def test_dark_is_the_system_s_wish_and_paper_is_white(browser, path):
    page = browser.open(path, dark=True)
    background = "getComputedStyle(document.body).backgroundColor"
    assert max(map(int, re.findall(r"\d+", page.run(background)))) < 50
    page.call("Emulation.setEmulatedMedia", media="print", features=[])
    assert page.run(background) == "rgb(255, 255, 255)"
    assert page.run("getComputedStyle(document.querySelector('.controls')).display") == "none"
    assert page.run("getComputedStyle(document.querySelector('.table .scroll')).overflowX") == "visible"
    assert page.printed().startswith(b"%PDF")
    assert page.complaints == []
    page.close()


@pytest.mark.parametrize("width", [320, 768])
def test_nothing_sticks_out_of_a_narrow_window(page, width):
    page.resize(width, 700)
    page.run("document.querySelectorAll('details').forEach(d => { d.open = true; })")
    assert page.run("document.documentElement.scrollWidth") <= width
    page.resize(1280, 900)


def test_links_and_the_printer_open_what_is_folded(browser, path):
    page = browser.open(path)
    states = "[...document.querySelectorAll('.experiment')].map(e => e.open)"
    assert page.run(states) == [False, False]
    page.run("document.querySelector(\"nav a[href='#part-2-2']\").click()")
    assert page.run(f"new Promise(done => setTimeout(done, 200)).then(() => {states})") == [False, True]
    page.run("window.dispatchEvent(new Event('beforeprint'))")
    assert page.run(states) == [True, True]
    page.close()


def test_ids_are_those_of_one_element_and_labels_lead_somewhere(page):
    ids = page.run("[...document.querySelectorAll('[id]')].map(e => e.id)")
    assert len(ids) == len(set(ids))
    targets = page.run("[...document.querySelectorAll('a[href^=\"#\"]')].map(e => e.getAttribute('href').slice(1))")
    assert set(targets) <= set(ids)
    assert page.run("[...document.querySelectorAll('button, select, a, summary')].every(e => e.tabIndex >= 0)")
