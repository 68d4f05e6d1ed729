"""kvswarm persist at mlx-lm's real commands, where `--engine` names it."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.checks.persist_mlx import MlxWish, persist_mlx
from harness.checks.persist_mlx_file import read
from harness.embedded.engine_options import MlxLmOptions
from harness.errors import InputError

pytestmark = pytest.mark.optional


@pytest.mark.parametrize("kv_bits", [None, 4])
def test_a_prompt_cache_is_read_back_to_the_token(
    kv_bits: int | None, tmp_path: Path, pytestconfig: pytest.Config
) -> None:
    if not {"mlx-lm", "all"} & set(pytestconfig.getoption("--engine").split(",")):
        pytest.skip("--engine does not name mlx-lm")
    options = MlxLmOptions()
    wish = MlxWish(options.model_folder(), str(options.python()), kv_bits, kv_group_size=32, prefix_words=200)
    finding, run = persist_mlx(wish, str(tmp_path))
    assert (finding.verdict, finding.exit_code) == ("works", 0), finding.sentence
    spared = finding.numbers["prompt_tokens"] - finding.numbers["restored_computed_tokens"]
    assert finding.numbers["saved_tokens"] == spared > 200
    assert finding.numbers["same_answer"] or kv_bits
    file = Path(run.folder.path) / "prompt-cache.safetensors"
    assert file.stat().st_mode & 0o777 == 0o600
    saved = read(file)
    assert (saved.kv_bits, saved.kv_group_size) == ((None, None) if kv_bits is None else (4, 32))
    other = MlxWish(wish.model, wish.python, 8, kv_group_size=32, restore=run.folder.path)
    with pytest.raises(InputError, match="here kv_bits is '8'"):
        persist_mlx(other, str(tmp_path))
