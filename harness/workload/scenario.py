"""Scenario files: what to send, in a user's words. The fields below are the keys of the YAML files in scenarios/."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Discriminator, Field, RootModel, Tag

from harness.errors import ScenarioError
from harness.workload.distribution import Length, LengthOrNone, Pause
from harness.yamlfile import load_model

PYTHON_DOCS, WORDS = "python-docs", "words"
"""The two values of `corpus` that are not a path."""


class Scenario(BaseModel):
    """What every kind of scenario has."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str = Field(
        pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,59}$",
        description="Short name for reports and run directories: letters, digits, dot, dash and underscore.",
    )
    kind: str
    description: str = Field(default="", description="One or two sentences for people; no effect on what is sent.")
    seed: int = Field(
        default=0,
        strict=True,
        description="Any whole number. The same seed gives the same lengths, pauses and choices on every machine.",
    )
    replies: Literal["scripted", "live"] = Field(
        default="scripted",
        description="What later turns hold as the model's earlier answers: scripted is text of the scenario, so that "
        "every engine gets the same prompts; live is what the engine said, as a real client would send.",
    )
    arrangement: Literal["stable-first"] = Field(
        default="stable-first",
        description="Order of a prompt's parts: what most requests share stands first, what only this request has "
        "stands last, so that a prefix cache can reuse as much as possible. No other order is offered yet.",
    )
    system_tokens: LengthOrNone = Field(
        default=0,
        description="Tokens of the system prompt that all sessions share; drawn once for the scenario. 0: none.",
    )
    output_tokens: Length = Field(description="Tokens that each answer is asked to have.")
    think_time_s: Pause = Field(
        default=0.0,
        description="Pause in seconds between the end of an answer and the session's next request; "
        "the first request of a session follows at once.",
    )

    @staticmethod
    def from_json(text: str) -> Scenario:
        """The scenario that `to_json` wrote."""
        return _ScenarioFile.model_validate_json(text).root

    def to_json(self) -> str:
        """All that a worker needs to know of the scenario, as JSON text."""
        return self.model_dump_json()


class AgentLoop(Scenario):
    """An agent at work: one task, then a tool's observation after each answer, in a growing transcript."""

    kind: Literal["agent-loop"] = Field(description="agent-loop: a task, then an observation after each answer.")
    tools_tokens: LengthOrNone = Field(
        default=0,
        description="Tokens of the tool schemas, after the system prompt in the same message; all sessions share them. "
        "Drawn once for the scenario. 0: none.",
    )
    task_tokens: Length = Field(description="Tokens of the task: the first user message, each session's own.")
    steps: Length = Field(
        description="Requests of a session: the first brings the task, each later one an observation."
    )
    observation_tokens: Length = Field(
        description="Tokens of each observation: what a tool gave back, as a user message."
    )


class Zipf(BaseModel):
    """A few things are asked for often, most of them rarely."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    zipf: float = Field(
        gt=0, le=10, description="Exponent s: the k-th most popular document has weight 1 / k^s. Try 0.8 to 1.2."
    )


Popularity = Annotated[
    Annotated[Literal["uniform"], Tag("uniform")] | Annotated[Zipf, Tag("zipf")],
    Discriminator(lambda value: "uniform" if isinstance(value, str) else "zipf"),
]


class LongDocument(Scenario):
    """Questions about long documents, each of which many sessions may ask about."""

    kind: Literal["long-document"] = Field(description="long-document: questions about documents that recur.")
    documents: int = Field(strict=True, ge=1, description="How many different documents there are.")
    document_tokens: Length = Field(description="Tokens of a document; drawn once for each document.")
    popularity: Popularity = Field(
        default="uniform",
        description="How a session chooses its document: uniform, or {zipf: s}, where document 0 is the most popular.",
    )
    questions: Length = Field(description="Questions that a session asks about its document, one a request.")
    question_tokens: Length = Field(description="Tokens of each question, never asked before.")
    keep_history: bool = Field(
        default=False,
        strict=True,
        description="true: a question follows the session's earlier questions and answers, as in a chat; "
        "false: each question is asked of the bare document.",
    )
    corpus: str = Field(
        default=PYTHON_DOCS,
        min_length=1,
        description="What the documents are made of: python-docs (the language reference that Python carries), words "
        "(words drawn at random), or a path, relative to the scenario file, of a text file or of a folder of .txt and "
        ".md files.",
    )


class MultiRound(Scenario):
    """Chats: each user has a preamble of their own, and every round is added to the conversation."""

    kind: Literal["multi-round"] = Field(description="multi-round: a chat that grows by a question and an answer.")
    preamble_tokens: LengthOrNone = Field(
        default=0,
        description="Tokens of what is known of the user (profile, memory), after the system prompt in the same "
        "message; each session's own. 0: none.",
    )
    rounds: Length = Field(description="Requests of a session: one question and one answer each.")
    user_tokens: Length = Field(description="Tokens of each message of the user.")


class _ScenarioFile(RootModel[Annotated[AgentLoop | LongDocument | MultiRound, Field(discriminator="kind")]]):
    """A file holds one scenario; its `kind` says which keys it has."""


def load_scenario(text: str, folder: Path) -> Scenario:
    """The scenario called `text` in `folder`, or else that of the YAML file at the path `text`.

    Raises ScenarioError for an unknown name (and tells the known ones) and for whatever is wrong in the file.
    """
    path = folder / f"{text}.yaml"
    if not path.is_file():
        path = Path(text).expanduser()
        if not path.is_file():
            known = ", ".join(scenario_names(folder)) or "none"
            raise ScenarioError(
                f'There is no scenario "{text}": it is neither a file nor a name in {folder} (known there: {known}).'
            )
    scenario = load_model(path, _ScenarioFile, ScenarioError).root
    if isinstance(scenario, LongDocument) and scenario.corpus not in (PYTHON_DOCS, WORDS):
        corpus = path.parent / Path(scenario.corpus).expanduser()
        if not corpus.exists():
            raise ScenarioError(
                f"{path}, key corpus: there is no file or folder {corpus}; give {PYTHON_DOCS}, {WORDS} or a path "
                "relative to the scenario file."
            )
        return scenario.model_copy(update={"corpus": str(corpus.resolve())})
    return scenario


def scenario_names(folder: Path) -> list[str]:
    """Names of the scenarios in `folder`, sorted."""
    return sorted(path.stem for path in folder.glob("*.yaml"))


def scenario_schema() -> dict[str, Any]:
    """The JSON Schema of a scenario file, for editors."""
    return _ScenarioFile.model_json_schema()
