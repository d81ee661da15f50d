"""What was read in the sources of the shipped devices and network classes, and the arithmetic on it.

By device or network class and number: a value, or (low, value, high), in base units. A shipped number that is
not here may only say ``assumed``; one that is must equal it, to the digits that the file keeps.
"""

from __future__ import annotations

GIGA, TERA, MEBI, MICRO = 1e9, 1e12, 2**20, 1e-6
HOUR_S = 3600

# Tencent/ncnn benchmark/README.md: seconds for ResNet-18 at 224x224, 1.8 G multiply-adds, int8, 4 threads
NCNN_PI4_S, NCNN_ZERO_S, RESNET18 = 0.08392, 0.19551, 2 * 1.8 * GIGA
# the operations of MobileNet v1 (tensorflow/models research/slim/nets/mobilenet_v1.md), VGG-16 and ResNet-50
MOBILENET, VGG16, RESNET50_FORWARD = 2 * 0.569 * GIGA, 2 * 15.5 * GIGA, 2 * 4.1 * GIGA


def _trained(share: float) -> tuple[float, float, float]:
    """Fitted to a training of ResNet-50: ``oracles/test_shipped_devices.py``."""
    return share / 2, share, 0.8


def _card(peak: float, bandwidth: float, memory_mib: int, **more: object) -> dict[str, object]:
    """A maker's figures; streaming kernels reach four fifths of a bandwidth."""
    return {
        "peak.fp32": peak,
        "memory_bandwidth": (0.8 * bandwidth, bandwidth, bandwidth),
        "memory": memory_mib * MEBI,
        **more,
    }


def _infers(peak: float, *runs: tuple[float, float]) -> tuple[float, ...]:
    """Shares of a peak in GFLOP/s, by operations and milliseconds."""
    return tuple(flop / ms / 1e6 / peak for flop, ms in runs)


def _memcpy(rate: float) -> tuple[None, float, float]:
    """A copied byte is read and written."""
    return None, rate, 2 * rate


# UbiquitousLearning/Benchmark-On-Device-Training tools/train/benchmark, time_table_*.csv: seconds for batches
# of 1 and 16 of LeNet, and of 16 of SqueezeNet; the two phones train a further LeNet sample of 12.7 MFLOP, of
# which 0.033 ms are elementwise, and SqueezeNet's 70 GFLOP with 0.19 s of elementwise kernels and launches.
LENET_S = {"MEIZU_Core_f0": (0.010089, 0.017332), "XIAOMI": (0.009658, 0.019145)}
MNN_RATES = sorted(
    [
        *(0.0127 * GIGA / ((last - first) / 15 - 33e-6) for first, last in LENET_S.values()),
        70.0 * GIGA / (2.704474 - 0.191),
    ]
)
SD855_PEAK = (2.84 + 3 * 2.42) * 16 * GIGA

A53_CYCLE, A72_CYCLE = 11.255 / 1.4, 11.958 / 1.5  # pigirons/cpufp: GFLOP/s over GHz, one core, both 8

READ: dict[str, dict[str, object]] = {
    "raspberry-pi-4b": {
        "peak.fp32": 4 * 1.8 * GIGA * A72_CYCLE,
        "peak.int8": 2 * 4 * 1.8 * GIGA * A72_CYCLE,
        # yeeiia/Hardware-Course-Project: SqueezeNet and ResNet-18; HPL over its peak in fp64
        "efficiency.convolution": (38.65 / 6.6 / 57.6, 106.53 / 16.7 / 57.6, 11.8 / 28.8),
        "efficiency_in.int8.dense": RESNET18 / NCNN_PI4_S / (115.2 * GIGA),
        "inference.efficiency.dense": _infers(57.6, (MOBILENET, 61.17), (RESNET18, 123.12), (VGG16, 547.09)),
        "memory_bandwidth": _memcpy(2.7375 * GIGA),
        "memory": 4096 * MEBI,
        "power.idle": 1.6,
        "power.active": (None, 5.0, 7.2),
        # the report's rounds of ResNet-18, with a fan and with a broken one
        "throttling.to": (None, 5255 / 10927, 1.0),
    },
    "raspberry-pi-5": {
        "peak.fp32": 153.5 * GIGA,
        "peak.int8": 614.0 * GIGA,
        # jafermarq/federated-embedded-vision README: resnet18 and resnet34 at 29.9 and 32.1 GFLOP/s
        "efficiency.convolution": (106.53 / 16.7 / 57.6, (29.9 + 32.1) / 2 / 153.5, 37.888 / 76.75),
        "inference.efficiency_in.int8.dense": _infers(
            614, (MOBILENET, 8.74), (RESNET18, 16.74), (VGG16, 107.01)
        ),
        "memory_bandwidth": _memcpy(4.8054 * GIGA),
        "memory": 8192 * MEBI,
        "power.idle": 2.8,
        "power.active": (None, 9.7, 13.8),
    },
    "raspberry-pi-zero-2w": {
        "peak.fp32": 4 * 1.0 * GIGA * A53_CYCLE,
        "peak.int8": 2 * 4 * 1.0 * GIGA * A53_CYCLE,
        "efficiency_in.int8.dense": RESNET18 / NCNN_ZERO_S / (64 * GIGA),
        "inference.efficiency.dense": (*_infers(32, (MOBILENET, 163.19), (RESNET18, 353.45)), 0.98),
        "memory_bandwidth": _memcpy(0.5905 * GIGA),
        "memory": 512 * MEBI,
        "power.idle": 1.2,
        "power.active": (2.1, 3.7, None),
    },
    "laptop-cpu": {
        "peak.fp32": 2 * 88.787 * GIGA,
        "memory_bandwidth": _memcpy(26.6176 * GIGA),
        "power.idle": 2.7,
        "power.active": (41.6, 46.7, 48.0),
    },
    "jetson-agx-orin": {
        "peak.fp32": 2048 * 1.3005 * 2 * GIGA,
        "memory_bandwidth": (64.1 * GIGA, 162.6 * GIGA, 204.8 * GIGA),
        # branes-ai/graphs kernel_dispatch.log: medians at MAXN, less an empty interval, and in the 15 W mode
        "launch_overhead": ((61.0 - 14.4) * MICRO, 61.0 * MICRO, 119.0 * MICRO),
        "memory": 65536 * MEBI,
        "inference.peak.int8": 170 * TERA / 2,
        # MLPerf's ResNet-50, with and without the start of 56 layers
        "inference.efficiency_in.int8.dense": (
            *_infers(85_000, (RESNET50_FORWARD, 0.630), (RESNET50_FORWARD, 0.630 - 56 * 0.005)),
            1.0,
        ),
    },
    "jetson-orin-nano": {
        "peak.fp32": 1024 * 0.612 * 2 * GIGA,
        "memory_bandwidth": (38.0 * GIGA, 50.4 * GIGA, 68 * GIGA),
        "inference.peak.int8": 40 * TERA / 2,
        # YOLOv8n in the Super mode
        "inference.efficiency_in.int8.dense": (None, 8.7 * GIGA / 0.00349 / (67 * TERA / 2), 0.28),
        "memory": 8192 * MEBI,
    },
    "jetson-xavier-nx": {
        "peak.fp32": 1.69 * TERA / 2,
        "peak.fp16": 1.69 * TERA,
        "memory": 8192 * MEBI,
        "inference.efficiency_in.int8.dense": _infers(
            12_300, *((RESNET50_FORWARD, 2.456 - 56 * start) for start in (0, 0.0075, 0.017))
        ),
    },
    "jetson-tx2": {"peak.fp32": 1.33 * TERA / 2, "peak.fp16": 1.33 * TERA, "memory": 8192 * MEBI},
    "jetson-nano": {"peak.fp32": 128 * 0.9216 * 2 * GIGA, "memory": 4096 * MEBI},
    "snapdragon-855": {
        "peak.fp32": SD855_PEAK,
        "efficiency.dense": (
            MNN_RATES[0] / SD855_PEAK,
            MNN_RATES[1] / SD855_PEAK,
            2.25 * MNN_RATES[1] / SD855_PEAK,
        ),
        # 0.22 ms for 8 operators in inference; 58 kernels here, 35 by hand
        "launch_overhead": (
            220 * MICRO / 8,
            (sum(first for first, _ in LENET_S.values()) / 2 - 0.00236) / 58,
            (0.0097 - 0.001) / 35,
        ),
        "inference.peak.int8": 4 * SD855_PEAK,
        # TFLite on a Pixel 4: Inception V4, 12.3 G multiply-adds, and MobileNet v1
        "inference.efficiency.dense": (
            *_infers(161, (2 * 12.3 * GIGA, 324.1), (MOBILENET, 14.0)),
            1.0,
        ),
        # MobileNet v1 there, and ncnn on a Snapdragon 855+
        "inference.efficiency_in.int8.dense": (
            *_infers(644, (MOBILENET, 5.0)),
            *_infers(4 * (2.96 + 3 * 2.42) * 16, (RESNET18, 9.43), (VGG16, 68.93)),
        ),
        "reserved_memory": 3072 * MEBI,
        "power.idle": (None, 0.082 * 5.04, 0.7),
        "power.active": (4.38, (5.35 + 4.83 + 4.44 + 4.38) / 4, 5.35),
        "power.single_core": (0.41 + 1.092, 3.85, 4.75),
    },
    "pixel-6": {"memory": 8192 * MEBI},
    "pixel-8": {"memory": 8192 * MEBI},
    "galaxy-s22": {"memory": 8192 * MEBI},
    "iphone-14": {"memory": 6144 * MEBI, "battery.capacity": 12.68 * HOUR_S},
    "android-sd680": {"memory": 4096 * MEBI},
    **{f"phone-{tier}": {"efficiency.dense": 1.0} for tier in ("low", "mid", "high")},
    "stm32f746": {"memory": 320 * 1024},
    "arduino-nano-33-ble": {"memory": 256 * 1024},
    "coral-edge-tpu": {"peak.int8": 4 * TERA, "memory": 8 * MEBI},
    "vc707-systolic": {
        "rows": 32,
        "columns": 64,
        "clock_rate": 100e6,
        "memory_bandwidth": 1.6 * 8 * GIGA,
        "memory": 1024 * MEBI,
    },
    "zcu102": {"memory": 4096 * MEBI},
    "zcu104": {},
    "pynq-z2": {"memory": 512 * MEBI},
    "zcu102-dpu": {"memory": 4096 * MEBI},
    "zcu104-dpu": {},
    "pynq-z2-dpu": {"memory": 512 * MEBI},
    "gtx-1080-ti": _card(
        3584 * 1.582 * 2 * GIGA,
        352 / 8 * 11.0 * GIGA,
        11264,
        **{"efficiency.dense": _trained(0.53)},
    ),
    "rtx-2080-ti": _card(
        4352 * 1.545 * 2 * GIGA,
        352 / 8 * 14.0 * GIGA,
        11264,
        **{"efficiency.dense": _trained(0.67)},
    ),
    "titan-v": _card(
        13.8 * TERA,
        652.8 * GIGA,
        12288,
        **{"peak.fp16": 27.6 * TERA, "efficiency.dense": _trained(0.66), "power.idle": 35.0},
    ),
    "titan-rtx": _card(
        4608 * 1.77 * 2 * GIGA,
        672 * GIGA,
        24576,
        **{"peak.fp16": 130 * TERA, "efficiency.dense": _trained(0.64)},
    ),
    "h100-sxm": {
        **_card(66.9 * TERA, 3350 * GIGA, 81920),
        "peak.fp16": 989 * TERA,
        "power.idle": (70.0, 140.0, 145.0),
    },
    "h200-sxm": {**_card(66.9 * TERA, 4800 * GIGA, 144384), "peak.fp16": 989 * TERA},
}

# What was recalled, and so may only be assumed.
RECALLED = {"h100-sxm": {"peak.fp32"}, "h200-sxm": {"peak.fp32"}}

READ_OF_LINKS: dict[str, dict[str, object]] = {
    "3g": {},
    "4g": {"down": 13e6, "up": 6e6},
    "4g-2012": {"down": 13e6, "up": 6e6},
    "5g": {"down": 166e6, "up": 21.1e6},
    "mobile-median": {"down": 61.5e6, "latency": 0.028},
    "wifi-pi4": {"down": 108e6, "up": 108e6},
    "wifi-pi5": {"down": 186e6, "up": 186e6},
    "ethernet": {},
    # 4318 and 3286 KB/s
    "flash-wifi": {"down": 4318 * 8e3, "up": 3286 * 8e3},
    "nb-iot": {"up": 264.0, "latency": 0.837},
    "lorawan": {},
}

# Radios that were fitted to measurements or to a vendor's table: watts, and watts per Mbit/s.
READ_RADIOS = {
    # Narayanan et al. 2021, by least squares: slopes, intercepts less the phone's own 2.35 W
    "4g": {
        "up_w_per_mbps": 0.07668,
        "down_w_per_mbps": 0.01154,
        "base": (2.839 + 2.926) / 2 - 2.349,
        "tail": (0.066 + 0.178) / 2,
        "tail_time": 10.2,
    },
    # a Pixel 6's power profile at 3.7 V: 98 mA to receive, 470 to send, 38 idle
    "flash-wifi": {
        "up_w_per_mbps": 3.7 * (0.470 - 0.098) / 26.3,
        "down_w_per_mbps": 0.0,
        "base": 3.7 * 0.098,
        "tail": 3.7 * 0.038,
        "tail_time": 0.24,
    },
}
