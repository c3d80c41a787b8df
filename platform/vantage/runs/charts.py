"""The charts of a run page: which metrics answer which question, before any of them is drawn."""

from dataclasses import dataclass

from vantage_trainer.metrics import NO_CLIP, ONE_STEP, Metric, find
from vantage_trainer.rewards.scoring import part_names
from vantage_trainer.spec import RunSpec


@dataclass(frozen=True)
class Question:
    """A group of charts, headed by what a reader wants to know."""

    slug: str
    title: str
    says: str


@dataclass(frozen=True)
class Chart:
    """One chart: patterns of metrics.py in the order they are drawn; a trailing * stands for any name."""

    slug: str
    question: str
    title: str
    says: str
    keys: tuple[str, ...]
    stacked: bool = False
    band: tuple[str, str] | None = None  # names that stand beside pass@1 and hold its interval
    whole: bool = False  # shares of one whole: the axis is 0 to 1
    own_steps: bool = False  # the warm start counts its own steps


QUESTIONS = (
    Question("learning", "Is it learning?", "Held-out accuracy decides; training reward can rise without it."),
    Question("exploring", "Is it still exploring?", "A policy that always says the same learns nothing new."),
    Question("safe", "Is the update safe?", "Large ratios, gradients or mismatch come before a collapse."),
    Question("signal", "Where is the signal?", "Only groups with right and wrong answers teach a group baseline."),
    Question("speed", "Is it fast?", "Where the wall time goes."),
    Question("devices", "What do the devices do?", "Use, memory and disk of the node, all that runs there included."),
    Question("other", "What else was reported?", "Names that are not in the dictionary of metrics."),
)

CHARTS = (
    Chart(
        "warm-start",
        "learning",
        "Warm start",
        "A stage of its own before reinforcement learning: supervised on written solutions, with its own steps.",
        ("warm_start/loss",),
        own_steps=True,
    ),
    Chart(
        "before",
        "learning",
        "Before the warm start",
        "Held-out pass@k of the model as it comes.",
        ("warm_start/*/pass@*",),
        own_steps=True,
    ),
    Chart(
        "pass",
        "learning",
        "Held-out pass@k",
        "Chance that at least one of k samples is correct, on problems never trained on; the band is the 95% interval.",
        ("eval/*/pass@*",),
        band=("low", "high"),
    ),
    Chart("reward", "learning", "Reward", "", ("reward/mean",)),
    Chart(
        "parts",
        "learning",
        "Reward parts",
        "Each part of the reward before its weight, averaged over scored responses.",
        ("reward/part/*",),
    ),
    Chart("correct", "learning", "Training accuracy", "", ("train/correct",)),
    Chart(
        "length",
        "exploring",
        "Response length",
        "Trained tokens per response; when only wrong answers grow longer, length is not thought.",
        ("length/mean", "length/correct", "length/wrong"),
    ),
    Chart("entropy", "exploring", "Entropy", "", ("policy/entropy",)),
    Chart("truncated", "exploring", "Cut at the limit", "", ("length/truncated_fraction",)),
    Chart("spread", "exploring", "Reward spread", "", ("reward/std",)),
    Chart(
        "clip",
        "safe",
        "Clip fraction",
        "Share of trained tokens (sequences for a sequence ratio) whose gradient the trust region cuts.",
        ("clip/low", "clip/high", "clip/dual", "clip/truncated_weight", "clip/masked"),
    ),
    Chart(
        "kl",
        "safe",
        "KL divergence",
        "k3 estimates, mean over trained tokens: from the reference policy, and the drift inside a step.",
        ("policy/kl_ref", "policy/kl_old"),
    ),
    Chart("grad", "safe", "Gradient norm", "", ("policy/grad_norm",)),
    Chart(
        "mismatch",
        "safe",
        "Generator mismatch",
        "The generator and the trainer at the same weights: their log-probabilities should hardly differ.",
        ("mismatch/logp_gap", "mismatch/kl"),
    ),
    Chart("ess", "safe", "Effective sample size", "", ("mismatch/ess",)),
    Chart("ratio", "safe", "Largest mismatch ratio", "", ("mismatch/max_ratio",)),
    Chart("loss", "safe", "Policy loss", "", ("policy/loss",)),
    Chart("lr", "safe", "Learning rate", "", ("policy/lr",)),
    Chart(
        "signal",
        "signal",
        "Groups by what they teach",
        "Each group counts once, as the first of: errored, stale, truncated, all correct, all wrong, mixed.",
        tuple(f"signal/{name}" for name in ("mixed", "all_correct", "all_wrong", "truncated", "stale", "errored")),
        stacked=True,
        whole=True,
    ),
    Chart(
        "phases",
        "speed",
        "Time per phase",
        "Wall time of each step by what it was spent on.",
        tuple(f"time/{name}" for name in ("generate", "reward", "train", "sync", "evaluate")),
        stacked=True,
    ),
    Chart("rate", "speed", "Tokens per second", "", ("tokens/per_second",)),
    Chart(
        "tokens",
        "speed",
        "Tokens so far",
        "Generated counts every sampled token, filtered samples included; trained counts those with a coefficient, "
        "those of the warm start too.",
        ("tokens/generated", "tokens/trained"),
    ),
    Chart("flops", "speed", "FLOPs so far", "", ("compute/flops",)),
    Chart(
        "util",
        "devices",
        "Use",
        "Share of the node's cores, and of the time of each of the run's GPUs, that was busy; mean over each step.",
        ("node/*/util",),
    ),
    Chart(
        "memory",
        "devices",
        "Memory",
        "In use on the node and on each of the run's GPUs; mean over each step.",
        ("node/memory/used", "node/*/memory"),
    ),
    Chart("disk", "devices", "Free disk", "", ("node/disk/free",)),
)
INTERVAL = ("low", "high", "length", "mean")  # of an evaluation set: drawn with pass@k, or not at all
UNCHARTED = {"clip/fraction", "length/max", "warm_start/lr", "time/step", "compute/device_hours"}
MOST_OTHER = 60


@dataclass(frozen=True)
class Shown:
    """A chart as one run has it: its concrete metrics, and why some of them are always zero."""

    chart: Chart
    keys: tuple[str, ...]
    zero: dict[str, str]

    @property
    def says(self) -> str:
        metric = find(self.keys[0]) if self.keys else None
        return self.chart.says or (sentence(metric) if metric else "")

    @property
    def unit(self) -> str:
        metric = find(self.keys[0]) if self.keys else None
        return metric.unit if metric else ""

    @property
    def zero_sentences(self) -> list[str]:
        """Why lines lie at zero, each reason once."""
        by_reason: dict[str, list[str]] = {}
        for key, reason in self.zero.items():
            by_reason.setdefault(reason, []).append(title_of(key))
        whole = len(by_reason) == 1 and len(self.zero) == len(self.keys)
        names = {reason: "" if whole else f"{', '.join(titles)}: " for reason, titles in by_reason.items()}
        return [f"{names[reason]}0 by construction: {reason}." for reason in by_reason]


def charts_of(spec: RunSpec, reported: set[str]) -> list[Shown]:
    """Return the charts of a run in reading order: what its spec promises and what it reported."""
    known = sorted(expected(spec) | (reported - repeated(spec)), key=_order)
    shown = [Shown(chart, tuple(_keys(chart, known)), {}) for chart in CHARTS]
    others = [Chart(f"other-{n}", "other", key, "", (key,)) for n, key in enumerate(_others(known))]
    shown += [Shown(chart, chart.keys, {}) for chart in others[:MOST_OTHER]]
    return [Shown(one.chart, one.keys, zero_reasons(one.keys, spec)) for one in shown if one.keys]


def expected(spec: RunSpec) -> set[str]:
    """The metrics that a run with this spec will report, so that no chart moves in later."""
    always = {key for chart in CHARTS for key in chart.keys if "*" not in key}
    unused = {"clip/dual", "clip/truncated_weight", "clip/masked", "policy/kl_ref", "signal/stale", "signal/errored"}
    if spec.warm_start is None:
        unused.add("warm_start/loss")
    passes = {f"eval/{one.name}/pass@{k}" for one in spec.evaluation.sets for k in one.k}
    if spec.evaluation.before_warm_start and spec.warm_start is not None:
        passes |= {f"warm_start/{key.removeprefix('eval/')}" for key in passes}
    return (always - unused) | passes | (part_keys(spec) - repeated(spec))


def part_keys(spec: RunSpec) -> set[str]:
    return {f"reward/part/{name}" for name in part_names(spec.reward.parts)}


def repeated(spec: RunSpec) -> set[str]:
    """The part of a reward that is nothing else, unweighted and unshaped: it would draw the reward's line again."""
    sampling = spec.algorithm.sampling
    shaped = sampling.overlong is not None or sampling.truncated == "zero_reward"
    alone = len(spec.reward.parts) == 1 and spec.reward.parts[0].weight == 1
    return part_keys(spec) if alone and not shaped else set()


def zero_reasons(keys: tuple[str, ...], spec: RunSpec) -> dict[str, str]:
    """Say of each metric that this spec holds at zero why it does."""
    found = {key: zero_reason(key, spec) for key in keys}
    return {key: reason for key, reason in found.items() if reason}


def zero_reason(key: str, spec: RunSpec) -> str:
    metric = find(key)
    if metric is None:
        return ""
    if key in ("clip/low", "clip/high") and spec.algorithm.trust_region.kind != "clip":
        return NO_CLIP
    one_step = spec.optimization.minibatches * spec.optimization.epochs == 1
    on_policy = one_step and spec.algorithm.ratio.denominator == "old"
    holds = on_policy if metric.zero_by_construction == ONE_STEP else spec.resources.staleness == 0
    return metric.zero_by_construction if holds else ""


def sentence(metric: Metric) -> str:
    """A metric's definition with its denominator, as one sentence."""
    known = metric.denominator and metric.denominator not in metric.definition
    per = f", over {metric.denominator}" if known else ""
    return f"{metric.definition}{per}."


def title_of(key: str) -> str:
    """What a legend calls a metric: the wild part of its name where there is one, else its title."""
    metric = find(key)
    if metric is None:
        return key
    pieces = [given for wanted, given in zip(metric.name.split("/"), key.split("/"), strict=True) if "<" in wanted]
    if pieces and key.startswith(("eval/", "warm_start/")):
        return " ".join(reversed(pieces)) if len(pieces) > 1 else f"{metric.title} {pieces[0]}"
    return " ".join(pieces) or metric.title


def fits(pattern: str, key: str) -> bool:
    """Tell whether a key is meant by a pattern of a chart."""
    wanted, given = pattern.split("/"), key.split("/")
    return len(wanted) == len(given) and all(
        piece == want or (want.endswith("*") and piece.startswith(want[:-1]))
        for want, piece in zip(wanted, given, strict=True)
    )


def _keys(chart: Chart, known: list[str]) -> list[str]:
    return [key for pattern in chart.keys for key in known if fits(pattern, key)]


def _others(known: list[str]) -> list[str]:
    charted = {key for chart in CHARTS for key in _keys(chart, known)}
    ends = {key for key in known if key.startswith("eval/") and key.rsplit("/", 1)[-1] in INTERVAL}
    return [key for key in known if key not in charted | ends | UNCHARTED]


def _order(key: str) -> tuple[str, int, str]:
    head, at, number = key.rpartition("@")
    return (head, int(number), "") if at and number.isdigit() else (key, 0, key)
