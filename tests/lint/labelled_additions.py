"""Small sets of prompts in which something stands that is new each time: a time, an id, whose request it is."""

from __future__ import annotations

import json
from copy import deepcopy

from tests.lint.labels import Labelled, Requests, labels, siblings
from tests.lint.texts import ANSWERS, CITIES, MANUAL, PROFILES, QUESTIONS, RULES, TOOLS, chat, message

ADDITIONS: Labelled = {}
fault = labels(ADDITIONS)


# Times


@fault("timestamp-first")
def iso_time_in_the_first_line() -> Requests:
    times = ["2026-03-04T10:15:30Z", "2026-03-04T10:15:42Z", "2026-03-04T10:17:01Z", "2026-03-05T08:00:09Z"]
    return siblings(lambda n: f"Current time: {times[n]}\n{RULES}")


@fault("timestamp-first")
def iso_time_in_the_middle_of_a_sentence() -> Requests:
    times = ["2026-03-04 10:15:30.120+01:00", "2026-03-04 10:15:31.955+01:00", "2026-03-04 11:09:00.001+01:00"]
    return siblings(lambda n: f"You work in a shop. The clock on its wall shows {times[n]} just now. {RULES}", 3)


@fault("timestamp-first")
def seconds_since_the_epoch() -> Requests:
    return siblings(lambda n: f"[now={1772619330 + 37 * n}] {RULES}")


@fault("timestamp-first")
def milliseconds_since_the_epoch_in_the_user_message() -> Requests:
    return [
        chat(None, f"sent_at: {1772619330123 + 60_011 * n}\n\n{MANUAL}\n\n{question}")
        for n, question in enumerate(QUESTIONS[:3])
    ]


@fault("timestamp-first")
def date_header_of_a_mail() -> Requests:
    dates = ["Wed, 04 Mar 2026 10:15:30 +0100", "Wed, 04 Mar 2026 16:02:11 +0100", "Thu, 05 Mar 2026 09:40:00 +0100"]
    return siblings(lambda n: f"Date: {dates[n]}\nFrom: the shop\n\n{RULES}", 3)


@fault("timestamp-first")
def a_new_day_now_and_then() -> Requests:
    days = ["Tuesday, March 3, 2026", "Tuesday, March 3, 2026", "Wednesday, March 4, 2026", "Wednesday, March 4, 2026"]
    return siblings(lambda n: f"Today is {days[n]}. {RULES}")


@fault("timestamp-first")
def american_date_and_time() -> Requests:
    times = ["3/4/2026 9:58 AM", "3/4/2026 10:02 AM", "3/4/2026 1:30 PM"]
    return siblings(lambda n: f"{RULES}\nIt is {times[n]}.\n{MANUAL}", 3)


@fault("timestamp-first")
def a_conversation_whose_system_message_has_the_time() -> Requests:
    turns = [QUESTIONS[0], ANSWERS[0], QUESTIONS[1], ANSWERS[1], QUESTIONS[2]]
    return [
        chat(f"{RULES}\n\nThe time is 10:{minute:02d}.", *turns[:length])
        for minute, length in ((15, 1), (17, 3), (22, 5))
    ]


@fault("timestamp-first")
def time_in_the_description_of_a_tool() -> Requests:
    requests = siblings(lambda n: RULES, tools=[])
    for number, request in enumerate(requests):
        tools = deepcopy(TOOLS)
        tools[0]["function"]["description"] += f" The list was last read on 2026-03-0{number + 1} at 06:00."
        request["tools"] = tools
    return requests


@fault("timestamp-first")
def time_told_as_an_age() -> Requests:
    return siblings(lambda n: f"The stock was counted {3 + 5 * n} minutes ago.\n{RULES}", 3)


@fault("timestamp-first")
def compact_time_in_a_tag() -> Requests:
    times = ["20260304T101530Z", "20260304T101544Z", "20260305T070000Z"]
    return siblings(lambda n: f"<context><now>{times[n]}</now></context>\n<rules>{RULES}</rules>", 3)


@fault("timestamp-first")
def time_in_a_system_message_that_is_json() -> Requests:
    return siblings(lambda n: json.dumps({"now": f"2026-03-04T10:15:{10 + n}Z", "shop": "Velo", "rules": RULES}))


@fault("timestamp-first")
def german_date_before_the_manual() -> Requests:
    return [
        chat("You help the workshop.", f"Stand: 0{3 + n}.03.2026\n{MANUAL}\n{question}")
        for n, question in enumerate(QUESTIONS[:3])
    ]


# Ids


@fault("request-id-first")
def uuid_in_the_first_line() -> Requests:
    ids = [
        "6f1c2b9e-0d53-4a7e-9b1a-2f6d0c8e4b71",
        "b0a4e6d2-7c1f-4e35-8a90-91d7f3c5a2e8",
        "17e9d0c4-53ab-4f02-b6c8-e4a1f7092d3b",
    ]
    return siblings(lambda n: f"Request-Id: {ids[n]}\n{RULES}", 3)


@fault("request-id-first")
def trace_id_before_the_manual() -> Requests:
    ids = ["4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7c1d2e3f4a5b69788", "a3ce929d0e0e47364bf92f3577b34da6"]
    return [chat(None, f"(trace {ids[n]}) {MANUAL}\n\n{QUESTIONS[n]}") for n in range(3)]


@fault("request-id-first")
def ulid_in_a_sentence() -> Requests:
    ids = ["01JNF3V8ZK4Q6W2T9RXA5B7CDE", "01JNF3W1GM8S0Y3H6P2K4N7VQA", "01JNF3WX5T2C9B7D4F6J8RZE0M"]
    return siblings(lambda n: f"You are one of several writers. Sign each draft with {ids[n]}. {RULES}", 3)


@fault("request-id-first")
def short_id_with_a_prefix() -> Requests:
    return siblings(lambda n: f"req_{['9fk2Qa', 'c71Lmz', 'T0p4xe', 'b8Ws3u'][n]}\n\n{RULES}")


@fault("request-id-first")
def session_id_that_is_the_same_within_a_session() -> Requests:
    turns = [QUESTIONS[0], ANSWERS[0], QUESTIONS[1]]
    return [
        chat(f"Session: {session}\n{RULES}", *turns[:length])
        for session in ("sess-83ab01", "sess-5d20fc", "sess-e7719b")
        for length in (1, 3)
    ]


@fault("request-id-first")
def uuid_in_the_description_of_a_tool() -> Requests:
    ids = ["6f1c2b9e-0d53-4a7e-9b1a-2f6d0c8e4b71", "b0a4e6d2-7c1f-4e35-8a90-91d7f3c5a2e8"]
    requests = siblings(lambda n: RULES, 2, tools=[])
    for number, request in enumerate(requests):
        request["tools"] = deepcopy(TOOLS)
        request["tools"][1]["function"]["description"] += f" Connection {ids[number]}."
    return requests


@fault("request-id-first")
def counter_of_requests() -> Requests:
    return siblings(lambda n: f"This is letter #{17 + n} of today.\n{RULES}")


@fault("request-id-first")
def id_of_letters_only() -> Requests:
    return siblings(lambda n: f"session_id: {['VbQkTzRwYpLm', 'hGfWqXnBzJrd', 'PtKsVwMcYxLe'][n]}\n{RULES}", 3)


@fault("request-id-first")
def id_in_a_part_of_its_own() -> Requests:
    return [
        chat(
            "You help the workshop.",
            [
                {"type": "text", "text": f"job 7f3e{n}a9c1d0{n}\n"},
                {"type": "text", "text": MANUAL},
                {"type": "text", "text": f"\n{QUESTIONS[n]}"},
            ],
        )
        for n in range(3)
    ]


@fault("request-id-first")
def id_in_a_system_message_that_is_json() -> Requests:
    return siblings(lambda n: json.dumps({"meta": {"request": 90417 + 13 * n}, "rules": RULES}, indent=1))


@fault("timestamp-first", "request-id-first")
def time_and_id_in_one_header() -> Requests:
    return siblings(lambda n: f"Time: 2026-03-04 10:1{n}:07\nRequest: 5e{n}7-ab{n}4-99c{n}\n\n{RULES}")


@fault("timestamp-first", "request-id-first")
def id_above_and_time_below_the_rules() -> Requests:
    return siblings(lambda n: f"id={4400 + 7 * n}a{n}f\n{RULES}\nUpdated: 2026-03-04T10:1{n}:00Z\n{MANUAL}", 3)


# What differs before what all share


@fault("preamble-first")
def customer_before_the_rules() -> Requests:
    return siblings(lambda n: f"{PROFILES[n]}\n\n{RULES}\n\n{MANUAL}")


@fault("preamble-first")
def customer_before_the_manual_in_the_user_message() -> Requests:
    return [chat("You help the workshop.", f"{PROFILES[n]}\n\n{MANUAL}\n\n{QUESTIONS[n]}") for n in range(3)]


@fault("preamble-first")
def customer_in_a_message_before_the_manual() -> Requests:
    return [
        {
            "messages": [
                message("system", "You help the workshop."),
                message("system", PROFILES[n]),
                message("user", f"{MANUAL}\n\n{QUESTIONS[n]}"),
            ]
        }
        for n in range(3)
    ]


@fault("preamble-first")
def question_before_the_manual() -> Requests:
    return [
        chat("You help the workshop.", f"Question: {question}\n\nManual:\n{MANUAL}\n\nAnswer from the manual only.")
        for question in QUESTIONS[:4]
    ]


@fault("preamble-first")
def name_of_the_branch_in_the_first_sentence() -> Requests:
    return siblings(lambda n: f"You work for the branch in {CITIES[n]}. {RULES} {MANUAL}", 5)


@fault("preamble-first")
def customer_before_the_manual_over_several_turns() -> Requests:
    turns = [QUESTIONS[0], ANSWERS[0], QUESTIONS[3]]
    return [chat(f"{profile}\n{MANUAL}", *turns[:length]) for profile in PROFILES[:3] for length in (1, 3)]


@fault("preamble-first")
def language_of_the_customer_at_the_top() -> Requests:
    return siblings(lambda n: f"Answer in {['French', 'Portuguese', 'German', 'Norwegian'][n]}.\n{RULES}\n{MANUAL}")


@fault("preamble-first")
def customer_with_numbers_before_the_manual() -> Requests:
    records = ["4411, aged 34, Lyon, two bicycles", "5823, aged 51, Porto, a tandem", "7702, aged 29, Graz, none yet"]
    return [chat("You help the workshop.", f"Customer {records[n]}.\n{MANUAL}\n{QUESTIONS[n]}") for n in range(3)]
