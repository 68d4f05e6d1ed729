"""Sets that were written when the rules were done, to see how they do on what they were not made for.

When they were first tried, 18 of their 19 faults were found and nothing else: precision 1.00, recall 0.95. What was not
found was `question_in_the_history_without_its_newline`, whose label was wrong.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from tests.lint.texts import chat, message, tool

Requests = list[dict[str, Any]]
LATER: dict[str, tuple[set[str], Requests]] = {}
"""Name -> (the kinds that are to be found, the requests)."""

GUIDE = """# Review guide

Read the whole change before you write a word. Say what is wrong, where, and what would be right instead.

## What matters
* A function does one thing, and its name says which.
* Errors are handled where something can be done about them, and nowhere else.
* A test fails if the code is wrong; a test that cannot fail is worse than none.
* What is public has a sentence of documentation that a stranger understands.

## What does not
* Where a brace stands, as a formatter decides that.
* Whether you would have done it another way, if this way works.
"""
STATIONS = [
    "Station Holm lies on an island at 12 m above the sea, and measures wind and rain every ten minutes.",
    "Station Brock stands on a bare top at 1,141 m; its rime makes the wind gauge stick for days in January.",
    "Station Auen is in a meadow by the river, where frost comes a month earlier than in the town nearby.",
    "Station Turm is on the roof of the institute, and is too warm by a degree on calm summer evenings.",
    "Station Moor was moved by forty metres in the spring, so that older values are only roughly comparable.",
]
WEATHER_TOOLS = [
    tool("observations", "Values that a station measured.", station="Short name", since="From when on", until="Up to"),
    tool("forecast", "What the model expects for a place.", place="Name or coordinates", hours="How far ahead"),
    tool("warnings", "Warnings that hold now for a district.", district="Number or name of the district"),
    tool("climate", "Means of thirty years for a station and a month.", station="Short name", month="1 to 12"),
    tool("radar", "Rain that the radar sees around a place.", place="Name or coordinates", radius="In kilometres"),
]
ASKED = ["Will it rain on Sunday?", "Was last May a wet one?", "How cold is it up there?", "Is the road icy?"]
DIFFS = [
    "def area(r):\n-    return 3.14 * r * r\n+    return math.pi * r**2",
    "class Queue:\n+    def __len__(self):\n+        return len(self._items)",
    "for row in rows:\n-    total = total + row.price\n+    total += row.price * row.count",
]


def later(*kinds: str) -> Callable[[Callable[[], Requests]], Callable[[], Requests]]:
    def keep(build: Callable[[], Requests]) -> Callable[[], Requests]:
        LATER[build.__name__] = (set(kinds), build())
        return build

    return keep


@later("timestamp-first")
def http_date_above_the_guide() -> Requests:
    dates = ["Sat, 07 Nov 2026 08:49:37 GMT", "Sat, 07 Nov 2026 21:00:00 GMT", "Sun, 08 Nov 2026 00:12:59 GMT"]
    return [chat(f"<!-- rendered {date} -->\n{GUIDE}", diff) for date, diff in zip(dates, DIFFS, strict=True)]


@later("timestamp-first")
def day_of_the_week_alone() -> Requests:
    days = ["Monday", "Wednesday", "Sunday", "Monday"]
    return [chat(f"It is {day}.\n\n" + "\n".join(STATIONS), asked) for day, asked in zip(days, ASKED, strict=True)]


@later("timestamp-first")
def time_in_an_agent_that_goes_on() -> Requests:
    messages: list[dict[str, Any]] = [message("user", "Find the wettest station of the week.")]
    requests = []
    for step, station in enumerate(STATIONS[:4]):
        system = message(
            "system",
            f"You are a forecaster.\n# Environment\ncwd: /srv/wx\nclock: 14:0{step}:3{step}\nusers: 3\n\n{GUIDE}",
        )
        requests.append({"messages": [system, *messages], "tools": WEATHER_TOOLS})
        call = {
            "id": f"call_{step}",
            "type": "function",
            "function": {"name": "observations", "arguments": json.dumps({"station": station.split()[1]})},
        }
        messages = [
            *messages,
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": call["id"], "content": f"{station} Sum of rain: {step * 7} mm."},
        ]
    return requests


@later("timestamp-first")
def year_and_month_of_the_edition() -> Requests:
    months = ["January 2026", "February 2026", "March 2026"]
    return [chat(f"Edition of {month}\n{GUIDE}", diff) for month, diff in zip(months, DIFFS, strict=True)]


@later("request-id-first")
def span_of_a_trace_in_w3c_form() -> Requests:
    spans = [
        "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
        "00-0af7651916cd43dd8448eb211c80319c-b7ad6b71-01",
    ]
    return [chat(f"traceparent: {span}\n\n{GUIDE}", diff) for span, diff in zip(spans, DIFFS, strict=False)]


@later("request-id-first")
def user_number_in_a_sentence_of_the_rules() -> Requests:
    return [
        chat(f"You answer for user {user}. " + " ".join(STATIONS), asked)
        for user, asked in zip((100234, 100871, 99017), ASKED, strict=False)
    ]


@later("request-id-first")
def version_of_the_deployment() -> Requests:
    return [chat(f"(build v2.{n}.1-g{n}c0ffee)\n{GUIDE}", diff) for n, diff in enumerate(DIFFS)]


@later("request-id-first")
def experiment_in_the_user_message() -> Requests:
    return [
        chat("You review code.", f"[exp:{mark}]\n{GUIDE}\n{diff}")
        for mark, diff in zip(("a91f", "b07c", "c3d2"), DIFFS, strict=True)
    ]


@later("tools-shuffled")
def some_of_the_tools_in_any_order() -> Requests:
    orders = [[0, 1, 2, 3], [3, 1, 0, 2, 4], [2, 3, 0, 1]]
    return [
        chat("You are a forecaster.", ASKED[n], tools=[WEATHER_TOOLS[k] for k in order])
        for n, order in enumerate(orders)
    ]


@later("keys-shuffled")
def keys_of_a_tool_result() -> Requests:
    result = {"station": "Holm", "rain": [0.2, 1.4, 0.0, 7.1], "wind": {"mean": 4.5, "gust": 11.2}, "note": STATIONS[0]}
    swapped = {key: result[key] for key in ("note", "wind", "station", "rain")}

    def request(content: str, *more: dict[str, Any]) -> dict[str, Any]:
        call = {
            "id": "call_7",
            "type": "function",
            "function": {"name": "observations", "arguments": '{"station":"Holm"}'},
        }
        return {
            "messages": [
                message("system", GUIDE),
                message("user", "How was it?"),
                {"role": "assistant", "content": "", "tool_calls": [call]},
                {"role": "tool", "tool_call_id": "call_7", "content": content},
                *more,
            ]
        }

    follow_up = [message("assistant", "Windy. " * 30), message("user", "And the gusts?")]
    return [request(json.dumps(result)), request(json.dumps(swapped), *follow_up)]


@later("keys-shuffled")
def keys_of_an_indented_configuration() -> Requests:
    config = {"units": {"rain": "mm", "wind": "m/s", "height": "m"}, "language": "en", "stations": STATIONS}
    swapped = {"stations": STATIONS, "language": "en", "units": {"wind": "m/s", "height": "m", "rain": "mm"}}
    return [
        chat(f"Configuration:\n```json\n{json.dumps(one, indent=4)}\n```\nAnswer accordingly.", asked)
        for one, asked in zip((config, swapped, config), ASKED, strict=False)
    ]


@later("preamble-first")
def change_before_the_guide() -> Requests:
    return [
        chat("You review code.", f"Here is a change:\n{diff}\n\nReview it by this guide:\n{GUIDE}") for diff in DIFFS
    ]


@later("preamble-first")
def editor_of_the_user_before_the_stations() -> Requests:
    editors = ["Vim, dark, metric units", "Emacs, light, imperial units", "VS Code, dark, metric units"]
    return [
        {
            "messages": [
                message("system", "You are a forecaster."),
                message("user", f"My settings: {editor}."),
                message("user", "\n".join(STATIONS)),
                message("user", asked),
            ]
        }
        for editor, asked in zip(editors, ASKED, strict=False)
    ]


@later("passages-reranked")
def chunks_with_their_sources() -> Requests:
    orders = [[0, 1, 2, 3], [2, 3, 0, 1], [1, 0, 2, 3]]
    return [
        chat(
            "Answer from the chunks.",
            "".join(f'<chunk source="s{k}.txt">\n{STATIONS[k]}\n</chunk>\n' for k in order) + f"\n{ASKED[n]}",
        )
        for n, order in enumerate(orders)
    ]


@later("passages-reranked")
def headed_sections_in_another_order() -> Requests:
    orders = [[0, 1, 2], [1, 2, 0]]
    return [
        chat("\n\n".join(["Stations", *(f"### {STATIONS[k].split()[1]}\n{STATIONS[k]}" for k in order)]), ASKED[n])
        for n, order in enumerate(orders)
    ]


@later("whitespace-changed")
def tab_for_blanks_in_the_guide() -> Requests:
    return [chat(GUIDE.replace("* ", "*\t") if n == 1 else GUIDE, diff) for n, diff in enumerate(DIFFS)]


@later()
def question_in_the_history_without_its_newline() -> Requests:
    """First labelled as a change of white space: it is one, but only the end of the message stands behind it."""
    long = f"{' '.join(STATIONS)}\nWhich one is the coldest?\n"
    return [chat("Be brief.", long), chat("Be brief.", long.strip(), "Brock.", "And the warmest?")]


@later("timestamp-first", "passages-reranked")
def time_above_and_passages_in_another_order() -> Requests:
    orders = [[0, 1, 2, 3, 4], [4, 2, 0, 1, 3]]
    return [
        chat(f"Now: 2026-11-07T0{8 + n}:00\n\n" + "\n\n".join(STATIONS[k] for k in order), ASKED[n])
        for n, order in enumerate(orders)
    ]


@later()
def history_that_is_cut_at_its_beginning() -> Requests:
    turns = [part for n, asked in enumerate(ASKED) for part in (asked, STATIONS[n])]
    return [chat("You are a forecaster.", *turns[start : start + 5]) for start in (0, 2)]


@later()
def files_of_different_projects() -> Requests:
    return [chat("You review code.", f"```python\n{diff * 6}\n```\nIs this right?") for diff in DIFFS]


@later()
def versions_and_sizes_in_different_reports() -> Requests:
    def report(seed: int) -> str:
        return "\n".join(f"disk{n}: {seed * (n + 3) % 997} GB of {seed + n} GB, {seed * n % 100} %" for n in range(12))

    return [chat(GUIDE, f"{report(seed)}\nWhich disk is the fullest?") for seed in (1301, 2203, 4507)]


@later()
def station_is_told_behind_the_guide() -> Requests:
    return [chat(GUIDE, f"For station {n}: {ASKED[n]}", tools=WEATHER_TOOLS) for n in range(4)]


@later()
def the_same_tools_for_ever_longer_sessions() -> Requests:
    turns = [ASKED[0], "Yes.", ASKED[1], "No, it was dry.", ASKED[2]]
    return [
        chat(f"{GUIDE}\nSession 8812-{who}", *turns[:length], tools=WEATHER_TOOLS)
        for who in "ab"
        for length in (1, 3, 5)
    ]


@later()
def user_messages_that_begin_alike() -> Requests:
    return [
        chat("You are a forecaster.", f"Dear forecaster, {asked} Kind regards, {name}")
        for asked, name in zip(ASKED, ("Ann", "Ben", "Cleo", "Dan"), strict=True)
    ]


@later()
def rows_of_csv_that_are_added() -> Requests:
    rows = [f"2026-11-0{n},Holm,{n * 3} mm,{n + 4} m/s" for n in range(1, 9)]
    return [chat("You read tables.", "\n".join(["day,station,rain,wind", *rows[:count]])) for count in (3, 5, 8)]


@later()
def languages_at_the_end() -> Requests:
    return [chat(GUIDE, f"{DIFFS[0]}\nAnswer in {language}.") for language in ("Dutch", "Czech", "Greek")]
