"""Small sets of prompts in which the same comes in another order, or with other white space."""

from __future__ import annotations

import json
import textwrap
from copy import deepcopy
from typing import Any

from tests.lint.labels import Labelled, Requests, labels, siblings
from tests.lint.texts import ANSWERS, MANUAL, PASSAGES, QUESTIONS, RULES, TOOLS, chat, message

ORDER: Labelled = {}
fault = labels(ORDER)


# Order of tools and keys


@fault("tools-shuffled")
def tools_in_a_new_order_each_time() -> Requests:
    orders = [[0, 1, 2, 3], [2, 0, 3, 1], [3, 2, 1, 0], [1, 3, 0, 2]]
    return [chat(RULES, QUESTIONS[n], tools=[TOOLS[k] for k in order]) for n, order in enumerate(orders)]


@fault("tools-shuffled")
def two_tools_changed_places() -> Requests:
    orders = [[0, 1, 2, 3], [0, 1, 3, 2]]
    return [chat(RULES, QUESTIONS[n], tools=[TOOLS[k] for k in order]) for n, order in enumerate(orders)]


@fault("tools-shuffled")
def tools_without_the_function_around_them() -> Requests:
    flat = [
        {"name": one["function"]["name"], "description": one["function"]["description"], "input_schema": {}}
        for one in TOOLS
    ]
    orders = [[3, 1, 0, 2], [0, 2, 3, 1], [3, 1, 0, 2]]
    return [chat(RULES, QUESTIONS[n], tools=[flat[k] for k in order]) for n, order in enumerate(orders)]


@fault("tools-shuffled")
def tools_shuffled_in_a_conversation() -> Requests:
    turns = [QUESTIONS[0], ANSWERS[0], QUESTIONS[1], ANSWERS[1], QUESTIONS[2]]
    orders = [[0, 1, 2, 3], [1, 0, 2, 3], [0, 1, 3, 2]]
    return [
        chat(RULES, *turns[: 2 * n + 1], tools=[TOOLS[k] for k in order], session_id="s")
        for n, order in enumerate(orders)
    ]


def other_key_order(value: Any) -> Any:
    """The same JSON value with the keys of every object the other way round."""
    if isinstance(value, dict):
        return {key: other_key_order(value[key]) for key in reversed(value)}
    return [other_key_order(one) for one in value] if isinstance(value, list) else value


@fault("keys-shuffled")
def keys_of_tools_in_another_order() -> Requests:
    return [chat(RULES, QUESTIONS[0], tools=TOOLS), chat(RULES, QUESTIONS[1], tools=other_key_order(TOOLS))]


@fault("keys-shuffled")
def parameters_of_a_tool_in_another_order() -> Requests:
    changed = deepcopy(TOOLS)
    schema = changed[1]["function"]["parameters"]
    schema["properties"] = dict(reversed(schema["properties"].items()))
    return [chat(RULES, QUESTIONS[n], tools=TOOLS if n % 2 else changed) for n in range(4)]


@fault("keys-shuffled")
def keys_of_a_system_message_that_is_json() -> Requests:
    settings = {"shop": "Velo", "language": "that of the letter", "rules": RULES, "manual": MANUAL, "loan_bikes": 4}
    return [
        chat(json.dumps(settings if n != 1 else other_key_order(settings)), question)
        for n, question in enumerate(QUESTIONS[:3])
    ]


@fault("keys-shuffled")
def keys_of_a_record_within_a_text() -> Requests:
    record = {"name": "Ann Becker", "city": "Lyon", "bikes": ["tandem", "cargo"], "since": "2019-04-01", "vip": False}
    return [
        chat(f"{RULES}\nThe shop's own record:\n{json.dumps(one)}\n{MANUAL}", QUESTIONS[n])
        for n, one in enumerate((record, other_key_order(record), record))
    ]


@fault("keys-shuffled")
def keys_of_arguments_in_the_history() -> Requests:
    arguments = {"bicycle": "Tandem 2011", "trouble": "the rear brake squeals when it rains", "day": "any"}

    def request(keys: dict[str, str], *more: dict[str, Any]) -> dict[str, Any]:
        function = {"name": "book_repair", "arguments": json.dumps(keys)}
        call = {"id": "call_1", "type": "function", "function": function}
        return {
            "messages": [
                message("system", RULES),
                message("user", QUESTIONS[0]),
                {"role": "assistant", "content": None, "tool_calls": [call]},
                {"role": "tool", "tool_call_id": "call_1", "content": f"Reserved. {' '.join(PASSAGES)}"},
                *more,
            ],
            "tools": TOOLS,
        }

    later = [message("assistant", ANSWERS[0]), message("user", QUESTIONS[3])]
    return [request(arguments), request(other_key_order(arguments), *later)]


@fault("tools-shuffled", "keys-shuffled")
def tools_and_their_keys_in_another_order() -> Requests:
    other = other_key_order(TOOLS)
    return [chat(RULES, QUESTIONS[0], tools=TOOLS), chat(RULES, QUESTIONS[1], tools=[other[2], other[0], *other[3:]])]


# Passages


@fault("passages-reranked")
def passages_in_a_new_order_at_each_turn() -> Requests:
    turns = [QUESTIONS[0], ANSWERS[0], QUESTIONS[1], ANSWERS[1], QUESTIONS[2]]
    orders = [[0, 1, 2, 3, 4, 5], [3, 1, 0, 2, 5, 4], [5, 4, 3, 2, 1, 0]]
    return [
        chat("Answer from these passages.\n\n" + "\n\n".join(PASSAGES[k] for k in order), *turns[: 2 * n + 1])
        for n, order in enumerate(orders)
    ]


@fault("passages-reranked")
def numbered_passages_in_the_user_message() -> Requests:
    orders = [[0, 1, 2, 3], [1, 0, 3, 2], [3, 2, 1, 0]]
    return [
        chat(
            "You help the workshop.",
            "\n".join(f"[{place}] {PASSAGES[k]}" for place, k in enumerate(order, 1)) + f"\nQuestion: {QUESTIONS[n]}",
        )
        for n, order in enumerate(orders)
    ]


@fault("passages-reranked")
def documents_in_tags() -> Requests:
    orders = [[0, 1, 2], [2, 0, 1], [1, 2, 0]]
    return [
        chat(
            "You help the workshop.",
            "\n".join(f"<document>\n{PASSAGES[k]}\n\n{PASSAGES[k + 3]}\n</document>" for k in order)
            + f"\n\n{QUESTIONS[n]}",
        )
        for n, order in enumerate(orders)
    ]


@fault("passages-reranked")
def most_passages_again_in_another_order() -> Requests:
    orders = [[0, 1, 2, 3], [2, 0, 1, 4], [1, 2, 0, 5]]
    return [
        chat("\n\n".join(["Answer from these passages.", *(PASSAGES[k] for k in order)]), QUESTIONS[n])
        for n, order in enumerate(orders)
    ]


@fault("passages-reranked")
def examples_in_a_drawn_order() -> Requests:
    pairs = [f"Letter: {question}\nReply: {answer}" for question, answer in zip(QUESTIONS, ANSWERS, strict=False)]
    orders = [[0, 1, 2, 3], [2, 3, 0, 1], [3, 0, 1, 2]]
    return [
        chat(f"{RULES}\n\n" + "\n\n".join(pairs[k] for k in order), QUESTIONS[3 + n]) for n, order in enumerate(orders)
    ]


@fault("passages-reranked")
def passages_as_parts() -> Requests:
    orders = [[0, 1, 2, 3], [3, 0, 2, 1]]
    return [
        chat("Be brief.", [{"type": "text", "text": text} for text in [*(PASSAGES[k] for k in order), QUESTIONS[n]]])
        for n, order in enumerate(orders)
    ]


# White space


@fault("whitespace-changed")
def newline_at_the_end_of_the_system_message() -> Requests:
    ends = ["", "\n", "", "  "]
    return [
        *siblings(lambda n: RULES + ends[n], tools=TOOLS),
        chat(f"{RULES}\n", f"{MANUAL}\n{QUESTIONS[4]}"),
        chat(RULES, f"{MANUAL}\n{QUESTIONS[5]}"),
    ]


@fault("whitespace-changed")
def blanks_at_the_ends_of_lines() -> Requests:
    return siblings(lambda n: f"Manual.\n{MANUAL}" if n % 2 else f"Manual.  \n{MANUAL}", 3)


@fault("whitespace-changed")
def text_wrapped_at_another_width() -> Requests:
    return siblings(lambda n: textwrap.fill(RULES, [79, 100, 79][n]), 3)


@fault("whitespace-changed")
def lines_that_end_as_on_windows() -> Requests:
    return siblings(lambda n: MANUAL.replace("\n", "\r\n") if n else MANUAL, 2)


@fault("whitespace-changed")
def one_more_empty_line() -> Requests:
    return siblings(lambda n: f"{PASSAGES[0]}\n{chr(10) * (1 + n % 2)}{RULES}", 3)


@fault("whitespace-changed")
def answer_without_its_blanks_in_the_history() -> Requests:
    long = " ".join(ANSWERS)
    first = chat(RULES, QUESTIONS[0], f"\n\n{long} ", QUESTIONS[1])
    return [first, chat(RULES, QUESTIONS[0], long, QUESTIONS[1], ANSWERS[1], QUESTIONS[2])]


@fault("whitespace-changed")
def json_with_other_blanks() -> Requests:
    settings = {"shop": "Velo", "rules": RULES, "loans": [1, 2, 3]}
    return siblings(lambda n: json.dumps(settings, indent=None if n else 2), 3)


@fault("whitespace-changed")
def newline_at_the_beginning() -> Requests:
    return siblings(lambda n: f"\n{RULES}" if n == 1 else RULES, 3)


@fault("timestamp-first", "whitespace-changed")
def time_above_a_text_that_is_wrapped_anew() -> Requests:
    return siblings(lambda n: f"At 2026-03-04 10:0{n}\n\n" + textwrap.fill(RULES, 70 + 20 * n), 2)


@fault("timestamp-first", "tools-shuffled")
def shuffled_tools_and_a_time() -> Requests:
    return [
        chat(f"It is 10:0{n} now.\n{RULES}", QUESTIONS[n], tools=TOOLS[::step]) for n, step in enumerate((1, -1, 1))
    ]
