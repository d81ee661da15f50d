"""Names are text, whatever they hold, and the page's policy lets nothing else run or be sent."""

from dataclasses import replace

from nightly import sampled
from visits import visiting

from edgefl.analysis.published import Beside, Figure, PublishedOrder
from edgefl.show.page.sections import published, verdict

HOSTILE = {
    "script": "<script>window.attacked = 1</script>",
    "end of script": "</script><img src=x onerror='window.attacked = 1'>",
    "attribute": "\"><svg onload=window.attacked=1> ' onmouseover='window.attacked=1",
    "comment": "<!-- --> ]]> <!--<script>",
    "separators": "line\u2028paragraph\u2029end",
    "right to left": "\u202egnp.exe \u0639\u0631\u0628\u064a \u200f\u2067",
    "emoji": "🏃\u200d♀️ 🇦🇹 Z\u0351\u036b\u0343",
    "control": "nul\x00 bell\x07 tab\t newline\n end",
    "surrogate": "byte\udcff",
    "long": "x" * 10_000,
    "words": "word " * 2_000,
    "markup": "{{ 7 * 7 }} {% raw %} ${7 * 7} &lt;b&gt; <a href='javascript:window.attacked=1'>x</a>",
    "formula": '=HYPERLINK("http://localhost")',
    "prototype": "__proto__",
    "empty": "",
}
_COUNT = (
    "() => [document.querySelectorAll('script').length, document.images.length,"
    " document.querySelectorAll('main > section').length]"
)


# One for each of the page's groups.
_TOGETHER = 4


def _named(record, names):
    """The page as if its groups and all that is theirs had these names."""
    groups = [replace(one, name=name) for one, name in zip(record.told.groups, names, strict=True)]

    def run(one):
        name = names[one.group]
        texts = dict.fromkeys(("name", "method", "dataset", "reason", "run_dir", "engine"), name)
        summary = replace(one.summary, **texts, status="failed")
        return replace(one, summary=summary, devices={name: 1}, links={name: 2})

    settings = dict.fromkeys(names, names)
    told = replace(record.told, groups=groups, runs=list(map(run, record.told.runs)), settings=settings)
    papers = [
        Beside(
            name,
            name,
            [Figure(name, name, "s", 0.5, 0, name, 0.4, None, -0.1)],
            [PublishedOrder(name, 1, 0, 0, [name])],
        )
        for name in names
    ]
    made = {
        "verdict": verdict.section(told),
        "runs": verdict.runs_made(told),
        "published": published.published_section(papers),
    }
    sections = [made.get(one.id, one) for one in record.sections]
    return replace(record, title=names[0], told=told, sections=sections)


@sampled(1, "start", range(0, len(HOSTILE), _TOGETHER))
def test_a_name_is_text(visit, record, start):
    """The page is the same but for the text: no element is added, nothing runs, nothing gets wider."""
    names = list(HOSTILE.values())[start : start + _TOGETHER]
    page = visit(_named(record, [*names, *["plain"] * (_TOGETHER - len(names))]), width=360)
    page.draw_all()
    page.page.click("#plot-accuracy summary")
    assert page.page.evaluate("window.attacked") is None
    # The data's two, the page's own, and Plotly.
    assert page.page.evaluate(_COUNT) == [4, 0, len(page.page.query_selector_all("nav a"))]
    assert page.page.evaluate("document.documentElement.scrollWidth") <= 360
    links = page.page.eval_on_selector_all(
        "a, svg a",
        "all => all.map(one => String(one.href.baseVal ?? one.href)).filter(one => !one.includes('#'))",
    )
    assert links == []


_INTRUSION = """async () => {
  const refused = new Set();
  addEventListener("securitypolicyviolation", (event) => refused.add(event.effectiveDirective));
  const made = document.createElement("script");
  made.textContent = "window.attacked = 1";
  document.body.append(made);
  document.body.insertAdjacentHTML("beforeend",
    "<b onclick='window.attacked = 2'>x</b><base href=http://127.0.0.1:9/>");
  document.body.lastElementChild.previousElementSibling.click();
  new Image().src = "http://127.0.0.1:9/x.png";
  const fetched = await fetch("http://127.0.0.1:9/").then(() => "sent", () => "refused");
  while (refused.size < 5) await new Promise((done) => setTimeout(done, 20));
  return [window.attacked ?? null, fetched, [...refused].sort()];
}"""


def test_the_policy_refuses_what_is_not_the_pages_own(opened, saved):
    """A script that got into the page would not run and reach no server."""
    with visiting(opened, saved(), offline=False) as visit:
        visit.ready()
        attacked, fetched, refused = visit.page.evaluate(_INTRUSION)
        assert (attacked, fetched) == (None, "refused")
        assert refused == ["base-uri", "connect-src", "img-src", "script-src-attr", "script-src-elem"]


def test_text_is_not_evaluated(opened, saved):
    """The page's policy has no place for eval; Plotly draws without it."""
    with visiting(opened, saved()) as visit:
        visit.ready()
        policy = visit.page.get_attribute("meta[http-equiv=Content-Security-Policy]", "content")
        scripts = next(part for part in policy.split("; ") if part.startswith("script-src"))
        assert all(source.startswith("'sha256-") for source in scripts.split()[1:])
