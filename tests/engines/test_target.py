from __future__ import annotations

import typing
from pathlib import Path

import pytest

from harness.engines.detect import ADAPTERS
from harness.engines.target import EngineName, Target, resolve_target
from harness.errors import TargetError


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "gpu.yaml").write_text("url: http://gpu:8000/v1\n")
    (tmp_path / "lab.yaml").write_text("url: https://lab\nname: the lab\nmetrics_url: none\nheaders: {X-Team: a b}\n")
    return tmp_path


@pytest.mark.parametrize(
    ("given", "url", "metrics_url"),
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
def test_a_url_is_completed(given: str, url: str, metrics_url: str) -> None:
    target = resolve_target(given)
    assert (target.url, target.metrics_url) == (url, metrics_url)


def test_a_target_is_called_by_its_host_its_file_or_its_own_name(folder: Path) -> None:
    assert resolve_target("http://h:8080/v1").name == "h:8080"
    assert resolve_target("gpu", folder).name == "gpu"
    assert resolve_target(str(folder / "gpu.yaml"), folder / "elsewhere").name == "gpu"
    assert resolve_target("lab", folder).name == "the lab"


def test_metrics_can_be_left_out_or_be_elsewhere(folder: Path) -> None:
    assert resolve_target("lab", folder).metrics_url is None
    assert Target.model_validate({"url": "http://h", "metrics_url": None}).metrics_url is None
    assert Target(url="http://h", metrics_url="http://h:9000/m?model=a").metrics_url == "http://h:9000/m?model=a"


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
        ("engine: vlm", 'key engine: expected one of llama-cpp, openai, found "vlm"'),
        ("modell: a", "key modell: unknown key; did you mean model?"),
        ("read_timeout_s: 0", "key read_timeout_s: expected a number above 0, found 0"),
        ("headers: {Authorization: Bearer s3cret}", "key headers: Authorization has no place here"),
        (
            "headers: {X-Key: 12345}",
            "key headers: expected a line of plain ASCII text, in quotes, as the value of X-Key",
        ),
        ("api_key_env: sk-s3cret", "key api_key_env: expected the name of an environment variable"),
        ("metrics_url: https://me:s3cret@h/metrics", "key metrics_url: a URL must not hold a user name or password"),
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
