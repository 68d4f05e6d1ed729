"""Scenario files: what to send, in a user's words. The fields below are the keys of the YAML files in scenarios/."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field, RootModel, field_validator, model_validator

from harness.errors import ScenarioError
from harness.workload.distribution import Length, LengthOrNone, LogNormal, Pause, Uniform
from harness.workload.faults import Fault
from harness.workload.popularity import Popularity
from harness.workload.trace_file import TraceKeys
from harness.workload.tree import Sharing, check_levels
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
    sharing: Sharing | None = Field(
        default=None,
        description="What sessions share before the kind's own parts: a list of levels, or the share of all prompt "
        "tokens that a cache without limits would serve, from which the length of what is shared follows.",
    )
    fault: Fault | None = Field(
        default=None, description="An arrangement fault that some requests have: {kind: ..., rate: 0.3}."
    )
    pressure: float | None = Field(
        default=None,
        strict=True,
        gt=0,
        allow_inf_nan=False,
        description="Working set as a multiple of the engine's KV capacity. The number of documents (long-document), "
        "else of tenants (sharing), else of running sessions follows from it.",
    )
    capacity_tokens: int | None = Field(
        default=None,
        strict=True,
        ge=1,
        description="KV capacity that the pressure is a multiple of; left out: what the engine reports.",
    )
    running_sessions: int | None = Field(
        default=None,
        strict=True,
        ge=1,
        description="How many sessions run at the same time, which is the number of users to start; what they alone "
        "can come back to counts in the working set.",
    )

    fault_kinds: ClassVar[tuple[str, ...]] = ("timestamp-first", "request-id-first", "whitespace-changed")
    """The arrangement faults that make sense for this kind."""

    @field_validator("sharing")
    @classmethod
    def _levels_fit(cls, sharing: Sharing | None) -> Sharing | None:
        if isinstance(sharing, tuple):
            check_levels(sharing)
        return sharing

    @field_validator("fault")
    @classmethod
    def _fault_of_this_kind(cls, fault: Fault | None) -> Fault | None:
        if fault is not None and fault.kind not in cls.fault_kinds:
            raise ValueError(
                f"{fault.kind} makes no sense for this kind of scenario; give {' or '.join(cls.fault_kinds)}"
            )
        return fault

    @model_validator(mode="after")
    def _capacity_for_pressure(self) -> Scenario:
        if self.capacity_tokens is not None and self.pressure is None:
            raise ValueError("capacity_tokens has no effect without pressure; give both or none")
        return self

    @property
    def fault_kind(self) -> str | None:
        return self.fault.kind if self.fault else None

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

    fault_kinds = (*Scenario.fault_kinds, "tools-shuffled")

    @model_validator(mode="after")
    def _tools_to_shuffle(self) -> AgentLoop:
        if self.fault_kind == "tools-shuffled" and _most(self.tools_tokens) < 2:
            raise ValueError("the fault tools-shuffled needs tools; give tools_tokens of at least 2")
        return self


class LongDocument(Scenario):
    """Questions about long documents, each of which many sessions may ask about."""

    kind: Literal["long-document"] = Field(description="long-document: questions about documents that recur.")
    documents: int | None = Field(
        default=None,
        strict=True,
        ge=1,
        description="How many different documents there are; must be given unless pressure is, which sets it.",
    )
    document_tokens: Length = Field(description="Tokens of a document; drawn once for each document.")
    popularity: Popularity = Field(
        default="uniform",
        description="How a session chooses its document: uniform, or {zipf: s}, where document 0 is the most popular.",
    )
    order: Literal["random", "interleave", "tile"] = Field(
        default="random",
        description="How documents recur. random: each session draws its own; interleave: far apart, one session after "
        "the other takes the next document, and the first again after the last; tile: back to back, so many sessions "
        "in a row as repeats says ask about one document.",
    )
    repeats: int = Field(
        default=4, strict=True, ge=1, description="With order: tile, sessions in a row that ask about one document."
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

    fault_kinds = (*Scenario.fault_kinds, "passages-reranked")

    @model_validator(mode="after")
    def _documents_fit(self) -> LongDocument:
        if self.documents is None and self.pressure is None:
            raise ValueError("documents is missing; give how many documents there are, or pressure")
        if self.order != "random" and self.popularity != "uniform":
            raise ValueError(f"with order: {self.order} all documents are as popular; leave popularity out")
        if self.fault_kind == "passages-reranked" and self.corpus != WORDS:
            raise ValueError("the fault passages-reranked moves parts of documents of words only; give corpus: words")
        return self


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

    fault_kinds = (*Scenario.fault_kinds, "preamble-first")

    @model_validator(mode="after")
    def _preamble_to_move(self) -> MultiRound:
        if self.fault_kind == "preamble-first" and not self.preamble_tokens:
            raise ValueError("the fault preamble-first needs a preamble; give preamble_tokens")
        if self.fault_kind == "preamble-first" and not (self.system_tokens or self.sharing):
            raise ValueError("the fault preamble-first needs parts to move before; give system_tokens or sharing")
        return self


class Replay(TraceKeys, Scenario):
    """The requests of a trace: when, how long, and what they share. Each prompt is one message of the user."""

    kind: Literal["replay"] = Field(description="replay: the requests of a trace.")
    output_tokens: LengthOrNone = Field(
        default=0, description="Tokens of the answers whose length the trace does not tell. 0: it must tell all."
    )

    @model_validator(mode="after")
    def _nothing_but_the_trace(self) -> Replay:
        for key in ("replies", "system_tokens", "think_time_s", "sharing", "pressure", "running_sessions"):
            if getattr(self, key) != Scenario.model_fields[key].default:
                raise ValueError(f"{key} has no effect in a replay, where the trace decides; leave it out")
        return self


class _ScenarioFile(RootModel[Annotated[AgentLoop | LongDocument | MultiRound | Replay, Field(discriminator="kind")]]):
    """A file holds one scenario; its `kind` says which keys it has."""


def load_scenario(text: str, folder: Path) -> Scenario:
    """The scenario called `text` in `folder`, or else that of the YAML file at the path `text`.

    Raises ScenarioError for an unknown name (and tells the known ones) and for whatever is wrong in the file, and
    InputError for what is wrong in the trace of a replay.
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
    if isinstance(scenario, Replay):
        return scenario.located(path.parent, str(path))
    if isinstance(scenario, LongDocument) and scenario.corpus not in (PYTHON_DOCS, WORDS):
        corpus = path.parent / Path(scenario.corpus).expanduser()
        if not corpus.exists():
            raise ScenarioError(
                f"{path}, key corpus: there is no file or folder {corpus}; give {PYTHON_DOCS}, {WORDS} or a path "
                "relative to the scenario file."
            )
        return scenario.model_copy(update={"corpus": str(corpus.resolve())})
    return scenario


def scenario_from(plain: Mapping[str, Any]) -> Scenario:
    """The scenario of plain values, such as a file holds. Raises pydantic's ValidationError."""
    return _ScenarioFile.model_validate(plain).root


def _most(length: int | Uniform | LogNormal) -> int:
    return length if isinstance(length, int) else length.max


def scenario_names(folder: Path) -> list[str]:
    """Names of the scenarios in `folder`, sorted."""
    return sorted(path.stem for path in folder.glob("*.yaml"))


def scenario_schema() -> dict[str, Any]:
    """The JSON Schema of a scenario file, for editors."""
    return _ScenarioFile.model_json_schema()
