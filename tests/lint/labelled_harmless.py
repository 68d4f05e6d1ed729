"""Small sets of prompts that look as if they had a fault, and have none: nothing is to be found in them."""

from __future__ import annotations

import json
from collections.abc import Callable
from copy import deepcopy
from typing import Any

from tests.lint.texts import (
    ANSWERS,
    CITIES,
    MANUAL,
    OTHER_PASSAGES,
    PASSAGES,
    PROFILES,
    QUESTIONS,
    RULES,
    TOOLS,
    chat,
    message,
    tool,
)

Requests = list[dict[str, Any]]
HARMLESS: dict[str, Requests] = {}


def harmless(build: Callable[[], Requests]) -> Callable[[], Requests]:
    HARMLESS[build.__name__] = build()
    return build


@harmless
def time_at_the_end_of_the_question() -> Requests:
    return [chat(f"{RULES}\n{MANUAL}", f"{QUESTIONS[n]}\n(It is 2026-03-04 10:1{n}.)") for n in range(4)]


@harmless
def time_at_the_end_of_the_system_message() -> Requests:
    return [chat(f"{RULES}\nTime: 2026-03-04T10:1{n}:00Z", QUESTIONS[n]) for n in range(4)]


@harmless
def a_day_that_never_changes() -> Requests:
    return [chat(f"Today is Wednesday, March 4, 2026.\n{RULES}", question) for question in QUESTIONS]


@harmless
def times_of_earlier_messages() -> Requests:
    turns = [f"[10:{10 + n}] {text}" for n, text in enumerate((QUESTIONS[0], ANSWERS[0], QUESTIONS[1], ANSWERS[1]))]
    return [chat(RULES, *turns[:length]) for length in (1, 3)]


@harmless
def id_in_the_question() -> Requests:
    orders = ["A-48213-X", "B-51077-K", "A-60034-Z"]
    return [chat(RULES, f"My order is {order}. Where is it?", tools=TOOLS) for order in orders]


@harmless
def uuid_in_the_last_message_of_a_conversation() -> Requests:
    ids = ["6f1c2b9e-0d53-4a7e-9b1a-2f6d0c8e4b71", "b0a4e6d2-7c1f-4e35-8a90-91d7f3c5a2e8"]
    return [chat(RULES, QUESTIONS[0], ANSWERS[0], f"And this: {one}, please?") for one in ids]


@harmless
def id_that_is_always_the_same() -> Requests:
    return [chat(f"Deployment 7f3e1a9c1d0b\n{RULES}", question, tools=TOOLS) for question in QUESTIONS[:3]]


@harmless
def tools_in_one_order() -> Requests:
    return [chat(RULES, question, tools=deepcopy(TOOLS[::-1])) for question in QUESTIONS[:4]]


@harmless
def one_more_tool_at_the_end() -> Requests:
    return [chat(RULES, QUESTIONS[n], tools=TOOLS[: 2 + n]) for n in range(3)]


@harmless
def other_tools_for_another_work() -> Requests:
    roast = [
        tool("roast", "Roast a lot of beans.", lot="Number of the lot"),
        tool("grind", "Grind.", weight="In grams"),
    ]
    return [
        chat(RULES, QUESTIONS[0], tools=TOOLS),
        chat(" ".join(OTHER_PASSAGES), "How fine?", tools=roast),
        chat(RULES, QUESTIONS[1], tools=TOOLS),
        chat(" ".join(OTHER_PASSAGES), "How dark?", tools=roast),
    ]


@harmless
def other_order_of_tools_for_another_model() -> Requests:
    return [
        chat(RULES, question, tools=TOOLS if n % 2 else TOOLS[::-1], model=f"model-{n % 2}")
        for n, question in enumerate(QUESTIONS)
    ]


@harmless
def questions_of_their_own() -> Requests:
    return [chat(RULES, question, tools=TOOLS) for question in QUESTIONS]


@harmless
def one_question_only() -> Requests:
    return [chat(RULES, QUESTIONS[0], tools=TOOLS)]


@harmless
def the_same_request_again() -> Requests:
    return [chat(f"Time: 2026-03-04T10:10:00Z\n{RULES}", QUESTIONS[0], tools=TOOLS)] * 3


@harmless
def odd_white_space_that_is_always_there() -> Requests:
    return [chat(f"\n\n {RULES}  \n\n\n{MANUAL}\t\n", question) for question in QUESTIONS[:3]]


@harmless
def white_space_in_the_question() -> Requests:
    return [chat(RULES, text) for text in (QUESTIONS[0], f"{QUESTIONS[0]}\n", f"  {QUESTIONS[0]}")]


@harmless
def white_space_that_joins_words() -> Requests:
    return [chat(RULES, f"Spell {word} for me.") for word in ("notebook", "note book", "footnote", "foot note")]


@harmless
def different_documents_for_different_users() -> Requests:
    documents = ["\n".join(PASSAGES), MANUAL, "\n".join(OTHER_PASSAGES)]
    return [
        chat("You sum up documents.", f"{document}\n\nSum this up in one sentence, in plain words.")
        for document in documents
    ]


@harmless
def forms_that_differ_in_their_numbers() -> Requests:
    def form(seed: int) -> str:
        names = ["frame", "wheel", "chain", "saddle", "brake", "lamp", "bell", "pump"]
        rows = [
            f"{name}: {seed * (place + 3) % 97} pieces at {seed * (place + 7) % 89} euros"
            for place, name in enumerate(names)
        ]
        return "\n".join([f"Bill {seed * 7919}", *rows, f"Sum: {seed * 31} euros"])

    return [chat(RULES, f"{form(seed)}\nIs this right?") for seed in (101, 211, 307)]


@harmless
def records_that_differ_in_their_numbers() -> Requests:
    def record(seed: int) -> str:
        keys = ("speed", "slope", "pulse", "power", "height", "wind")
        return json.dumps(
            [{key: seed * (row + 2) * (place + 5) % 251 for place, key in enumerate(keys)} for row in range(6)]
        )

    return [chat(RULES, f"{record(seed)}\nHow hard was this ride?") for seed in (11, 23, 37)]


@harmless
def a_conversation_that_grows() -> Requests:
    turns = [QUESTIONS[0], ANSWERS[0], QUESTIONS[1], ANSWERS[1], QUESTIONS[2], ANSWERS[2], QUESTIONS[3]]
    return [chat(RULES, *turns[:length], tools=TOOLS) for length in (1, 3, 5, 7)]


@harmless
def two_conversations_with_the_same_answers() -> Requests:
    def conversation(first: str) -> list[dict[str, Any]]:
        turns = [first, ANSWERS[0], QUESTIONS[1], " ".join(ANSWERS), "And then?"]
        return [chat(RULES, *turns[:length]) for length in (1, 3, 5)]

    return [*conversation(QUESTIONS[0]), *conversation(QUESTIONS[4])]


@harmless
def ids_of_calls_in_the_history() -> Requests:
    def steps(session: str, count: int) -> dict[str, Any]:
        messages = [message("system", RULES), message("user", QUESTIONS[int(session, 16) % 6])]
        for step in range(count):
            function = {"name": "stock_of_part", "arguments": json.dumps({"part": f"{session}-{step}"})}
            call = {"id": f"call_{session}{step}9Zq", "type": "function", "function": function}
            messages.append({"role": "assistant", "content": "", "tool_calls": [call]})
            messages.append({"role": "tool", "tool_call_id": call["id"], "content": PASSAGES[step]})
        return {"messages": messages, "tools": TOOLS}

    return [steps(session, count) for count in (0, 1, 2, 3) for session in ("a1", "b2")]


@harmless
def customer_behind_the_manual() -> Requests:
    return [chat(f"{RULES}\n{MANUAL}\n{PROFILES[n]}", QUESTIONS[n]) for n in range(4)]


@harmless
def customer_behind_the_manual_in_a_message() -> Requests:
    return [
        {"messages": [message("system", MANUAL), message("user", PROFILES[n]), message("user", QUESTIONS[n])]}
        for n in range(3)
    ]


@harmless
def passages_in_one_order() -> Requests:
    passages = "\n\n".join(PASSAGES)
    return [chat("You help the workshop.", f"{passages}\n\nQuestion: {question}") for question in QUESTIONS[:4]]


@harmless
def other_passages_for_another_question() -> Requests:
    found = [PASSAGES[:3], OTHER_PASSAGES[:3], PASSAGES[3:]]
    return [
        chat("You help.", "\n\n".join([*passages, f"Question: {QUESTIONS[n]}"])) for n, passages in enumerate(found)
    ]


@harmless
def passages_that_are_added_at_the_end() -> Requests:
    return [chat("\n\n".join(["Answer from these.", *PASSAGES[: 2 + n]]), QUESTIONS[n]) for n in range(4)]


@harmless
def json_with_other_values() -> Requests:
    return [
        chat(RULES, json.dumps({"city": CITIES[n], "letter": QUESTIONS[n], "bill": None, "customer": PROFILES[n]}))
        for n in range(4)
    ]


@harmless
def json_in_the_question_in_another_order() -> Requests:
    letter = {"city": "Lyon", "letter": "Hello."}
    return [chat(RULES, json.dumps(letter)), chat(RULES, json.dumps(dict(reversed(letter.items()))))]


@harmless
def two_prompts_about_different_things() -> Requests:
    return [chat(RULES, QUESTIONS[0]), chat(" ".join(OTHER_PASSAGES), "Which roast do you like?")]


@harmless
def questions_with_a_short_wish_behind_them() -> Requests:
    return [chat(f"{RULES}\n{MANUAL}", f"{question} Please be brief.") for question in QUESTIONS]


@harmless
def ages_and_years_of_different_bicycles() -> Requests:
    bicycles = ["a tandem of 1998, 21 kg", "a racer of 2016, 8 kg", "a cargo bicycle of 2024, 38 kg"]
    return [chat(RULES, f"I have {bicycle}. {QUESTIONS[n]}") for n, bicycle in enumerate(bicycles)]
