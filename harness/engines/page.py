"""A look at a target's metrics page, outside the measured load."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample

from harness.engines.control import Control, answer_in_short
from harness.errors import TargetError


@dataclass(frozen=True, slots=True)
class MetricsPage:
    url: str
    samples: Sequence[Sample]

    def labels(self, name: str) -> list[Mapping[str, str]]:
        """The label sets of a series, in the order of the page."""
        return [sample.labels for sample in self.samples if sample.name == name]

    def total(self, name: str) -> float | None:
        """The series' sum over its label sets; None: the page has none."""
        values = [sample.value for sample in self.samples if sample.name == name]
        return sum(values) if values else None


def read_page(control: Control) -> MetricsPage:
    """The first of the target's metrics pages that answers.

    Raises TargetError, which says why, if none does.
    """
    problem = TargetError("the target has metrics_urls: none")
    for url in control.target.metrics_urls:
        try:
            return _read(control, url)
        except TargetError as error:
            problem = error
    raise problem


def _read(control: Control, url: str) -> MetricsPage:
    response = control.get(url)
    if response.status_code != 200:
        raise TargetError(f"GET {url} answered {answer_in_short(response)}")
    try:
        families = list(text_string_to_metric_families(response.content.decode()))
    except ValueError:  # also what is not UTF-8
        raise TargetError(f"GET {url} shows no metrics page in Prometheus's text format") from None
    return MetricsPage(url, [sample for family in families for sample in family.samples])
