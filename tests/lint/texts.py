"""Texts that the labelled prompts are made of: a shop's rules, its manual, tools, passages, customers, questions."""

from __future__ import annotations

from typing import Any

RULES = (
    "You answer letters to a shop that repairs bicycles and sells parts. Be polite, be brief, and never promise a day "
    "for a repair that the workshop has not confirmed. Prices are in euros and include tax. If a letter is about a "
    "refund, ask for the number on the bill before anything else. If it is about a recall, stop, apologise, and hand "
    "the letter over to a person. Quote the manual where it settles the matter, by the name of its chapter. "
    "Never guess the size of a part: ask for the year and the model, or for a photograph of the old part. "
    "Write in the language of the letter, and sign with the name of the shop, not with your own."
)
MANUAL = (
    "Chapter Brakes. The pads are worn when the groove in them can no longer be seen. Change both pads of a wheel at "
    "the same time, and clean the rim or the disc with alcohol before the first ride.\n"
    "Chapter Chain. A chain is worn when the gauge drops in at three quarters of a percent. Fit a new one with the "
    "same number of links as the old one, and never join it twice at the same pin.\n"
    "Chapter Gears. If the gears jump, first turn the barrel at the lever by half a turn against the clock. If they "
    "still jump, look at the hanger: a bent hanger cannot be adjusted away, it has to be straightened or replaced.\n"
    "Chapter Tyres. The pressure stands on the side of the tyre. Heavy riders need the upper end of the range, and "
    "wide tyres need less than narrow ones. Look for glass before every long ride.\n"
    "Chapter Bearings. A bearing that clicks under load is not loose, it is worn, and tightening it makes it worse."
)
PASSAGES = [
    "The workshop is open from Tuesday to Saturday, and a bicycle can be left in the locker at any hour of the night.",
    "A repair that costs more than was estimated is never begun before the owner has agreed to it in writing.",
    "Parts that were ordered for one bicycle only cannot be given back, unless they were the wrong ones by our fault.",
    "A used bicycle is sold with six months of guarantee on the frame, and with none on whatever wears by being used.",
    "Batteries are sent back to their maker, which takes three weeks; meanwhile we lend one for a small deposit.",
    "Whoever brings a bicycle without a lock gets one as a loan, since two were stolen in front of the shop last year.",
]
OTHER_PASSAGES = [
    "Coffee is roasted on Mondays in a drum over beech wood, in small lots that are mixed only when they have cooled.",
    "Green beans keep for a year in jute, and for three if they are sealed with a little nitrogen in the bag.",
    "A roast that cracks twice has lost most of its acid, and is sold as espresso whatever the label said before.",
    "The grinder is set finer in dry weather, since dry beans break into fewer dust grains than moist ones do.",
]
QUESTIONS = [
    "My rear brake squeals when it rains.",
    "Do you have a chain for a nine-speed hub?",
    "Can I have my money back for the lamp?",
    "What would a new front wheel cost me?",
    "The saddle slips down while I ride.",
    "Is my order ready to be collected?",
]
ANSWERS = [
    "Please clean the disc with alcohol first, and tell us whether it still squeals after the first ride.",
    "We do; tell us the number of links of the old one, or bring it along when you pass by the shop.",
    "Gladly. What is the number on the bill? As soon as we have it, we can look the purchase up.",
    "That depends on the hub; please tell us the year and the model of the bicycle, or send a photograph.",
]
PROFILES = [
    "The customer is Ann Becker. She rides to work all year, likes short answers, and has bought two bicycles here.",
    "The customer is Omar Haddad. He races at weekends, wants all the details, and prefers to do repairs by himself.",
    "The customer is Li Wei. He is new in town, rides a borrowed cargo bicycle with three children, and is in a hurry.",
    "The customer is Rosa Conti. She restores old tandems, knows more than we do, and dislikes to be told so.",
]
CITIES = ["Lyon", "Porto", "Graz", "Bergen", "Ghent", "Turin"]


def tool(name: str, description: str, /, **parameters: str) -> dict[str, Any]:
    """A tool as the OpenAI API takes it, each parameter a text with a description."""
    properties = {key: {"type": "string", "description": about} for key, about in parameters.items()}
    schema = {"type": "object", "properties": properties, "required": list(parameters)}
    return {"type": "function", "function": {"name": name, "description": description, "parameters": schema}}


TOOLS = [
    tool(
        "find_order",
        "Find the orders of a customer by the number of the bill or by the name it was made out to.",
        bill="Number of the bill, as printed at its top",
        name="Full name, if the number is not known",
    ),
    tool(
        "stock_of_part",
        "Say how many pieces of a part are in the shop, and when the next ones come.",
        part="Number of the part, or what it is called in the manual",
        size="Size in millimetres, where the part has one",
    ),
    tool(
        "book_repair",
        "Reserve a place in the workshop; the workshop confirms the day by itself.",
        bicycle="Make, model and year",
        trouble="What is wrong, in the words of the customer",
    ),
    tool(
        "hand_over",
        "Give the letter to a person, with one sentence that says why.",
        reason="Why a person has to see the letter",
    ),
]


def message(role: str, content: Any) -> dict[str, Any]:
    return {"role": role, "content": content}


def chat(system: Any, *turns: Any, **more: Any) -> dict[str, Any]:
    """A request: system message, then user and assistant in turn."""
    roles = ("user", "assistant")
    messages = [message("system", system)] if system is not None else []
    messages += [message(roles[number % 2], turn) for number, turn in enumerate(turns)]
    return {"messages": messages, **more}
