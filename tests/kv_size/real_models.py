"""What real models' config.json says of their layers, and the KV cache of a token, worked out by hand.

Bytes are those of 16-bit caches: 2 for each number. `grows` is what a token adds at first, `past` when all windows are
full, `state` what the recurrent layers keep of a session in SGLang (float32, their convolutions in 16 bits).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Real:
    config: dict[str, Any]
    grows: int
    past: int
    state: int = 0


def plain(model_type: str, layers: int, heads: int, kv_heads: int, hidden: int, **more: Any) -> dict[str, Any]:
    return {
        "model_type": model_type,
        "num_hidden_layers": layers,
        "num_attention_heads": heads,
        "num_key_value_heads": kv_heads,
        "hidden_size": hidden,
        **more,
    }


MODELS = {
    # 36 layers * 8 heads * (128 + 128) * 2 bytes
    "Qwen3-8B": Real(plain("qwen3", 36, 32, 8, 4096, head_dim=128, use_sliding_window=False), 147_456, 147_456),
    # 28 * 8 * 256 * 2; heads of 128 are not hidden / heads = 64
    "Qwen3-0.6B": Real(plain("qwen3", 28, 16, 8, 1024, head_dim=128), 114_688, 114_688),
    # 32 * 8 * (128 + 128) * 2, with 128 = 4096 / 32
    "Llama-3.1-8B": Real(plain("llama", 32, 32, 8, 4096), 131_072, 131_072),
    # 80 * 8 * 256 * 2
    "Llama-3.1-70B": Real(plain("llama", 80, 64, 8, 8192), 327_680, 327_680),
    # 28 * 4 * 256 * 2; its window is not in use
    "Qwen2.5-7B": Real(
        plain("qwen2", 28, 28, 4, 3584, sliding_window=131072, use_sliding_window=False, max_window_layers=28),
        57_344,
        57_344,
    ),
    # 32 * 8 * 256 * 2 up to 4,096 tokens; every layer has the window
    "Mistral-7B-v0.1": Real(
        plain("mistral", 32, 32, 8, 4096, sliding_window=4096, max_position_embeddings=32768), 131_072, 0
    ),
    # MHA: 32 * 32 * (96 + 96) * 2
    "Phi-3-mini-128k": Real(
        plain("phi3", 32, 32, 32, 3072, sliding_window=262144, max_position_embeddings=131072), 393_216, 393_216
    ),
    # MHA: 12 * 12 * (64 + 64) * 2
    "GPT-2": Real({"model_type": "gpt2", "n_layer": 12, "n_head": 12, "n_embd": 768}, 36_864, 36_864),
    # MQA: 32 * 1 * (64 + 64) * 2, though the file also tells of 71 heads
    "Falcon-7B": Real(
        {
            "model_type": "falcon",
            "num_hidden_layers": 32,
            "num_attention_heads": 71,
            "num_kv_heads": 71,
            "hidden_size": 4544,
            "multi_query": True,
            "new_decoder_architecture": False,
        },
        8_192,
        8_192,
    ),
    # 42 layers of 8 * (256 + 256) * 2 = 8,192 bytes, half of them with a window
    "Gemma-2-9B": Real(plain("gemma2", 42, 16, 8, 3584, head_dim=256, sliding_window=4096), 344_064, 172_032),
    # text_config leaves out heads (8), KV heads (4) and their size (256): 34 layers of 4 * 512 * 2 = 4,096 bytes;
    # the 6th, 12th, 18th, 24th and 30th have full attention
    "Gemma-3-4B": Real(
        {
            "model_type": "gemma3",
            "text_config": {
                "model_type": "gemma3_text",
                "hidden_size": 2560,
                "num_hidden_layers": 34,
                "sliding_window": 1024,
            },
        },
        139_264,
        20_480,
    ),
    # 62 layers of 16 * 256 * 2 = 8,192 bytes; 62 // 6 = 10 with full attention
    "Gemma-3-27B": Real(
        {
            "model_type": "gemma3",
            "text_config": plain("gemma3_text", 62, 32, 16, 5376, head_dim=128, sliding_window=1024),
        },
        507_904,
        81_920,
    ),
    # 24 layers of 8 * (64 + 64) * 2 = 2,048 bytes, half of them with a window
    "gpt-oss-20b": Real(
        plain(
            "gpt_oss",
            24,
            64,
            8,
            2880,
            head_dim=64,
            sliding_window=128,
            layer_types=["sliding_attention", "full_attention"] * 12,
        ),
        49_152,
        24_576,
    ),
    # 32 layers of 8 * 256 * 2 = 4,096 bytes, of four the last one with full attention
    "Command-R7B": Real(plain("cohere2", 32, 32, 8, 4096, sliding_window=4096), 131_072, 32_768),
    # 48 layers of 8 * 256 * 2 = 4,096 bytes; 36 attend within chunks of 8,192 tokens
    "Llama-4-Scout": Real(
        {
            "model_type": "llama4",
            "text_config": plain(
                "llama4_text",
                48,
                40,
                8,
                5120,
                head_dim=128,
                attention_chunk_size=8192,
                no_rope_layers=[1, 1, 1, 0] * 12,
            ),
        },
        196_608,
        49_152,
    ),
    # 20 of the 30 layers have a cache, of 2 * 512 * 2 = 2,048 bytes, the 5th, 10th, 15th and 20th with full attention
    "Gemma-3n-E2B": Real(
        {
            "text_config": {
                "model_type": "gemma3n_text",
                "num_hidden_layers": 30,
                "num_kv_shared_layers": 10,
                "layer_types": [*["sliding_attention"] * 4, "full_attention"] * 6,
            }
        },
        40_960,
        8_192,
    ),
    # 60 layers: 50 with a window of 16 * (256 + 256) * 2 = 16,384 bytes, 10 of 4 * (512 + 512) * 2 = 8,192
    "Gemma-4-31B": Real(
        {
            "text_config": plain(
                "gemma4_text",
                60,
                32,
                16,
                5376,
                head_dim=256,
                global_head_dim=512,
                num_global_key_value_heads=4,
                attention_k_eq_v=True,
                sliding_window=1024,
                layer_types=[*["sliding_attention"] * 5, "full_attention"] * 10,
            )
        },
        901_120,
        81_920,
    ),
    # 48 layers, keys of 192 and values of 128: 9 with 4 heads of 640 bytes, 39 with a window and 8 heads
    "MiMo-V2-Flash": Real(
        plain(
            "mimo_v2_flash",
            48,
            64,
            4,
            4096,
            head_dim=192,
            v_head_dim=128,
            swa_num_key_value_heads=8,
            swa_head_dim=192,
            swa_v_head_dim=128,
            sliding_window_size=128,
            hybrid_layer_pattern=[0, *[1, 1, 1, 1, 0] * 8, *[1] * 7],
        ),
        222_720,
        23_040,
    ),
    # MLA: 61 * (512 + 64) * 2
    "DeepSeek-V3": Real(
        plain("deepseek_v3", 61, 128, 128, 7168, kv_lora_rank=512, qk_rope_head_dim=64, v_head_dim=128), 70_272, 70_272
    ),
    # 27 * 576 * 2
    "DeepSeek-V2-Lite": Real(
        plain(
            "deepseek_v2",
            27,
            16,
            16,
            2048,
            kv_lora_rank=512,
            qk_rope_head_dim=64,
            qk_nope_head_dim=128,
            v_head_dim=128,
        ),
        31_104,
        31_104,
    ),
    # the same and an index key of 128 in fp8 with a scale: 61 * (576 * 2 + 128 + 4)
    "DeepSeek-V3.2": Real(
        plain("deepseek_v32", 61, 128, 128, 7168, kv_lora_rank=512, qk_rope_head_dim=64, index_head_dim=128),
        78_324,
        78_324,
    ),
    # 48 layers; every 4th has attention: 12 * 2 * (256 + 256) * 2. The other 36 have a convolution over
    # 2 * 16 * 128 + 32 * 128 = 8,192 channels, 3 inputs of each, and 32 matrices of 128 * 128:
    # 36 * (8,192 * 3 * 2 + 524,288 * 4)
    "Qwen3-Next-80B": Real(
        plain(
            "qwen3_next",
            48,
            16,
            2,
            2048,
            head_dim=256,
            full_attention_interval=4,
            linear_num_key_heads=16,
            linear_num_value_heads=32,
            linear_key_head_dim=128,
            linear_value_head_dim=128,
            linear_conv_kernel_dim=4,
        ),
        24_576,
        24_576,
        77_266_944,
    ),
    # 32 layers; of eight the 5th has attention: 4 * 8 * 256 * 2. The other 28 have 2 * 4,096 = 8,192 channels,
    # 3 inputs and 16 numbers of each: 28 * (8,192 * 3 * 2 + 8,192 * 16 * 4)
    "Jamba-v0.1": Real(
        plain(
            "jamba",
            32,
            32,
            8,
            4096,
            attn_layer_period=8,
            attn_layer_offset=4,
            mamba_d_conv=4,
            mamba_d_state=16,
            mamba_expand=2,
        ),
        16_384,
        16_384,
        16_056_320,
    ),
    # 40 layers, 4 with attention: 4 * 8 * 256 * 2. The other 36 have 128 heads of 64, 128 numbers for each channel, and
    # a convolution over 8,192 + 2 * 128: 36 * (8,448 * 3 * 2 + 8,192 * 128 * 4)
    "Granite-4.0-H-Small": Real(
        plain(
            "granitemoehybrid",
            40,
            32,
            8,
            4096,
            layer_types=["attention" if layer in (5, 15, 25, 35) else "mamba" for layer in range(40)],
            mamba_n_heads=128,
            mamba_d_head=64,
            mamba_d_state=128,
            mamba_n_groups=1,
            mamba_d_conv=4,
        ),
        16_384,
        16_384,
        152_819_712,
    ),
    # 44 layers with both: 44 * 2 * 256 * 2, and 44 * ((3,072 + 2 * 256) * 3 * 2 + 3,072 * 256 * 4)
    "Falcon-H1-7B": Real(
        plain(
            "falcon_h1",
            44,
            12,
            2,
            3072,
            head_dim=128,
            mamba_n_heads=24,
            mamba_d_head=128,
            mamba_d_ssm=3072,
            mamba_d_state=256,
            mamba_n_groups=1,
            mamba_d_conv=4,
        ),
        45_056,
        45_056,
        139_358_208,
    ),
    # 52 layers, 4 of them attention: 4 * 8 * 256 * 2; 24 Mamba of 128 heads of 64, 8 groups, 128 numbers:
    # 24 * ((8,192 + 2 * 8 * 128) * 3 * 2 + 8,192 * 128 * 4)
    "Nemotron-H-8B": Real(
        plain(
            "nemotron_h",
            52,
            32,
            8,
            4096,
            head_dim=128,
            hybrid_override_pattern="M-M-M-M*-M-M-M-M-M*-M-M-M-M-M*-M-M-M-M-M*-M-M-M-M-M-",
            mamba_num_heads=128,
            mamba_head_dim=64,
            n_groups=8,
            ssm_state_size=128,
            conv_kernel=4,
        ),
        16_384,
        16_384,
        102_137_856,
    ),
    # 27 layers, 7 with MLA: 7 * 576 * 2; 20 with 32 matrices of 128 * 128 and convolutions over 3 * 4,096:
    # 20 * (12,288 * 3 * 2 + 524,288 * 4)
    "Kimi-Linear-48B": Real(
        plain(
            "kimi_linear",
            27,
            32,
            32,
            2304,
            kv_lora_rank=512,
            qk_rope_head_dim=64,
            linear_attn_config={
                "full_attn_layers": [4, 8, 12, 16, 20, 24, 27],
                "kda_layers": [1, 2, 3, 5, 6, 7, 9, 10, 11, 13, 14, 15, 17, 18, 19, 21, 22, 23, 25, 26],
                "head_dim": 128,
                "num_heads": 32,
                "short_conv_kernel_size": 4,
            },
        ),
        8_064,
        8_064,
        43_417_600,
    ),
    # 16 layers, 6 with attention: 6 * 8 * 128 * 2; 10 keep 2 inputs of each of 2,048 channels
    "LFM2-1.2B": Real(
        plain("lfm2", 16, 32, 8, 2048, conv_L_cache=3, full_attn_idxs=[2, 5, 8, 10, 12, 14]), 12_288, 12_288, 81_920
    ),
}
