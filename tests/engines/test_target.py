from __future__ import annotations

import typing
from pathlib import Path

import pytest

from harness.engines.detect import ADAPTERS
from harness.engines.target import EngineName, IdentityByHand, Prometheus, Target, resolve_target, resolve_targets
from harness.errors import TargetError


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "gpu.yaml").write_text("url: http://gpu:8000/v1\n")
    (tmp_path / "lab.yaml").write_text("url: https://lab\nname: the lab\nmetrics_urls: none\nheaders: {X-Team: a b}\n")
    return tmp_path


@pytest.mark.parametrize(
    ("given", "url", "metrics_page"),
    [
        ("http://h:8080", "http://h:8080/v1", "http://h:8080/metrics"),
        ("http://h:8080/", "http://h:8080/v1", "http://h:8080/metrics"),
        ("  https://h/v1/ ", "https://h/v1", "https://h/metrics"),
        ("http://h/llm/v1", "http://h/llm/v1", "http://h/llm/metrics"),
        ("http://h/api/v3", "http://h/api/v3", "http://h/api/metrics"),
        ("http://h/openai", "http://h/openai", "http://h/openai/metrics"),
        ("http://[::1]:80", "http://[::1]:80/v1", "http://[::1]:80/metrics"),
    ],
)
def test_a_url_is_completed(given: str, url: str, metrics_page: str) -> None:
    target = resolve_target(given)
    assert (target.url, target.metrics_urls) == (url, (metrics_page,))


def test_a_target_is_called_by_its_host_its_file_or_its_own_name(folder: Path) -> None:
    assert resolve_target("http://h:8080/v1").name == "h:8080"
    assert resolve_target("gpu", folder).name == "gpu"
    assert resolve_target(str(folder / "gpu.yaml"), folder / "elsewhere").name == "gpu"
    assert resolve_target("lab", folder).name == "the lab"


def test_metrics_can_be_left_out_be_elsewhere_or_be_those_of_replicas(folder: Path) -> None:
    assert resolve_target("lab", folder).metrics_urls == ()
    for given, pages in (
        (None, ()),
        ("http://h:9000/m?model=a", ("http://h:9000/m?model=a",)),
        (["http://a:1/metrics", "http://b:1/metrics"], ("http://a:1/metrics", "http://b:1/metrics")),
    ):
        assert Target.model_validate({"url": "http://h", "metrics_urls": given}).metrics_urls == pages


FULL = """\
url: http://h
metrics_urls: [http://a:1/metrics, http://b:1/metrics]
prometheus:
  url: https://prometheus.example.org/prom/
  selector: {job: vllm, namespace: search}
  api_key_env: KVSWARM_TEST_PROMETHEUS_KEY
  timeout_s: 5
engine: llama-cpp
identity: {kv_dtype: q8_0, capacity_tokens: 16384, prefix_caching: true}
pin_slots: true
eos_token_ids: [2, 151645]
"""


def test_prometheus_identity_and_slots_are_read_from_a_file(tmp_path: Path) -> None:
    (tmp_path / "full.yaml").write_text(FULL)
    target = resolve_target("full", tmp_path)
    assert target.prometheus == Prometheus(
        url="https://prometheus.example.org/prom",
        selector={"job": "vllm", "namespace": "search"},
        api_key_env="KVSWARM_TEST_PROMETHEUS_KEY",
        timeout_s=5,
    )
    assert target.identity == IdentityByHand(kv_dtype="q8_0", capacity_tokens=16384, prefix_caching=True)
    assert (target.pin_slots, target.eos_token_ids) == (True, (2, 151645))
    assert Target.model_validate(target.model_dump(mode="json")) == target


def test_a_target_survives_the_way_to_a_worker(folder: Path) -> None:
    target = resolve_target("lab", folder)
    assert Target.model_validate(target.model_dump(mode="json")) == target


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("gpo", "No target 'gpo': give a URL (http://...), a YAML file or a name; FOLDER has gpu, lab"),
        (
            "localhost:8080",
            "No target 'localhost:8080': a URL begins with http:// or https://, as in http://localhost:8080",
        ),
        ("ftp://h", "No target 'ftp://h': give a URL (http://...), a YAML file or a name; FOLDER has gpu, lab"),
        ("FOLDER/none.yaml", "FOLDER/none.yaml: there is no such file"),
        ("http://", "Target http://: expected a URL such as http://host:port/v1, found 'http://'"),
        ("http://h:99999", "Target http://h:99999: expected a URL such as http://host:port/v1, found 'http://h:99999'"),
        (
            "http://h/v1?key=1",
            "Target http://h/v1?key=1: expected a base URL, without ? and #, found 'http://h/v1?key=1'",
        ),
    ],
)
def test_what_is_no_target_is_refused_with_what_would_be(folder: Path, text: str, message: str) -> None:
    with pytest.raises(TargetError) as caught:
        resolve_target(text.replace("FOLDER", str(folder)), folder)
    assert str(caught.value) == message.replace("FOLDER", str(folder))


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("engine: vlm", 'key engine: expected one of vllm, sglang, llama-cpp, mlx-lm, openai, found "vlm"'),
        ("modell: a", "key modell: unknown key; did you mean model?"),
        ("metrics_url: none", "key metrics_url: unknown key; did you mean metrics_urls?"),
        ("read_timeout_s: 0", "key read_timeout_s: expected a number above 0, found 0"),
        ("headers: {Authorization: Bearer s3cret}", "key headers: Authorization has no place here"),
        (
            "headers: {X-Key: 12345}",
            "key headers: expected a line of plain ASCII text, in quotes, as the value of X-Key",
        ),
        ("api_key_env: sk-s3cret", "key api_key_env: expected the name of an environment variable"),
        ("metrics_urls: https://me:s3cret@h/metrics", "key metrics_urls: a URL must not hold a user name or password"),
        (
            "metrics_urls: [http://a/m, http://a/m]",
            "key metrics_urls: expected one page for each replica, found a page",
        ),
        ("prometheus: {url: http://p}", "key prometheus.selector: missing; expected "),
        ("prometheus: {url: http://p, selector: {}}", "key prometheus.selector: expected "),
        (
            "prometheus: {url: http://p, selector: {a-b: c}}",
            "key prometheus.selector: expected names of labels (letters, digits, _; no __ in front), found 'a-b'",
        ),
        ("prometheus: {url: http://p, selector: {__name__: up}}", "key prometheus.selector: expected names of labels"),
        ("prometheus: {url: http://p, selector: {job: 4711}}", "key prometheus.selector.job: expected text, found"),
        (
            'prometheus: {url: http://p, selector: {job: ""}}',
            "key prometheus.selector: expected the value that label job",
        ),
        ("prometheus: {url: http://p/api/v1, selector: {a: b}}", "key prometheus.url: expected the URL before /api/v1"),
        (
            "prometheus: {url: http://me:s3cret@p, selector: {a: b}}",
            "key prometheus.url: a URL must not hold a user name or password",
        ),
        (
            "prometheus: {url: http://p, selector: {a: b}, api_key_env: sk-s3cret}",
            "key prometheus.api_key_env: expected the name of an environment variable",
        ),
        ("identity: {capacity: 1}", "key identity.capacity: unknown key; did you mean capacity_tokens?"),
        ("identity: {slots: 0}", "key identity.slots: expected "),
        ('identity: {kv_dtype: ""}', "key identity.kv_dtype: expected "),
        ("eos_token_ids: [-1]", "key eos_token_ids[0]: expected "),
    ],
)
def test_a_wrong_key_is_named_and_a_secret_never_shown(tmp_path: Path, line: str, message: str) -> None:
    path = tmp_path / "t.yaml"
    path.write_text(f"url: http://h\n{line}\n")
    with pytest.raises(TargetError) as caught:
        resolve_target(str(path))
    assert f"t.yaml, line 2, {message}" in str(caught.value)
    assert "s3cret" not in str(caught.value)
    assert "12345" not in str(caught.value)


def test_a_password_in_the_url_is_refused_and_not_shown() -> None:
    with pytest.raises(TargetError, match="must not hold a user name or password") as caught:
        resolve_target("https://me:s3cret@h/v1")
    assert "s3cret" not in str(caught.value)


def test_a_wrong_url_in_a_file_is_the_only_problem_told(tmp_path: Path) -> None:
    (tmp_path / "t.yaml").write_text("url: h:8080\n")
    with pytest.raises(TargetError) as caught:
        resolve_target("t", tmp_path)
    assert str(caught.value) == (
        f"{tmp_path}/t.yaml, line 1, key url: expected a URL such as http://host:port/v1, found 'h:8080'"
    )


def test_the_key_comes_from_the_environment_and_is_nowhere_in_the_target(monkeypatch: pytest.MonkeyPatch) -> None:
    target = Target(url="http://h", api_key_env="KVSWARM_TEST_KEY", headers={"X-Team": "a"})
    monkeypatch.setenv("KVSWARM_TEST_KEY", "s3cret\n")
    assert target.request_headers() == {"X-Team": "a", "Authorization": "Bearer s3cret"}
    assert "s3cret" not in repr(target) + target.model_dump_json()
    monkeypatch.delenv("KVSWARM_TEST_KEY")
    with pytest.raises(TargetError, match="environment variable KVSWARM_TEST_KEY, which is not set"):
        target.request_headers()


def test_the_key_of_prometheus_is_nowhere_in_the_target_and_not_sent_to_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KVSWARM_TEST_PROMETHEUS_KEY", "s3cret")
    prometheus = Prometheus(url="http://p", selector={"job": "a"}, api_key_env="KVSWARM_TEST_PROMETHEUS_KEY")
    target = Target(url="http://h", prometheus=prometheus)
    assert target.request_headers() == {}
    assert "s3cret" not in repr(target) + target.model_dump_json()


def test_slots_are_pinned_at_llama_cpp_only(tmp_path: Path) -> None:
    assert Target(url="http://h", pin_slots=True).pin_slots
    (tmp_path / "t.yaml").write_text("url: http://h\nengine: vllm\npin_slots: true\n")
    with pytest.raises(TargetError, match="line 3, key pin_slots: only llama-cpp has slots that a request can choose"):
        resolve_target("t", tmp_path)


def test_several_targets_are_given_with_commas(folder: Path) -> None:
    targets = resolve_targets("http://h:8080, gpu,,lab ,", folder)
    assert [target.name for target in targets] == ["h:8080", "gpu", "the lab"]
    assert len(resolve_targets("gpu", folder)) == 1


def test_no_target_and_two_of_one_name_are_refused(folder: Path) -> None:
    with pytest.raises(TargetError, match=r"^No target: give a URL"):
        resolve_targets(" , ", folder)
    with pytest.raises(TargetError) as caught:
        resolve_targets("http://h:8080/a/v1,gpu,http://h:8080/b/v1", folder)
    assert str(caught.value) == (
        "2 targets are called 'h:8080', and results are kept by name: give each a `name` of its own in a target file"
    )
    with pytest.raises(TargetError, match="No target 'gpo'"):
        resolve_targets("gpu,gpo", folder)


def test_headers_belong_to_the_targets_own_server_only() -> None:
    target = Target(url="https://h:8000/v1")
    assert target.owns("https://h:8000/metrics")
    assert not target.owns("https://h:9000/metrics")
    assert not target.owns("http://h:8000/metrics")


def test_every_adapter_can_be_named_in_a_target() -> None:
    assert {adapter.name for adapter in ADAPTERS} == set(typing.get_args(EngineName))


def test_the_example_target_is_the_local_llama_server() -> None:
    example = resolve_target("local-llama-cpp", Path(__file__).parents[2] / "scenarios" / "targets")
    assert (example.url, example.engine) == ("http://127.0.0.1:8080/v1", "llama-cpp")
