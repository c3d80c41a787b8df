"""An independent oracle of every composition: plain loops in float64, gradients by finite differences.

It shares no code with the trainer's mathematics; it reads the same composition and the same ragged lists.
"""

import math

from vantage_trainer.composition import Algorithm

Rows = list[list[float]]
STEP = 1e-6


class Oracle:
    """One batch under one composition. Everything detached is computed from `logp_new` as given."""

    def __init__(self, algorithm: Algorithm, inputs: dict, limit: int = 64) -> None:
        self.a, self.x, self.limit = algorithm, inputs, limit
        self.num = len(inputs["reward"])
        self.mask = inputs["response_mask"]
        self.length = [sum(row) for row in self.mask]
        self.new = inputs["logp_new"]
        self.old = inputs.get("logp_old", self.new)
        self.behaviour = inputs.get("logp_behav", self.old)
        self.reward = [self.shaped(i) for i in range(self.num)]
        self.scored = [r is not None for r in self.reward]
        self.advantage = [self.credit(i) for i in range(self.num)]
        self.effective = [self.takes_part(i) and self.length[i] > 0 for i in range(self.num)]
        self.coef = [self.kappa(i) if self.effective[i] else 0.0 for i in range(self.num)]
        self.by_token = self.criticised() if algorithm.baseline.kind == "critic_gae" else None

    # credit

    def shaped(self, i: int) -> float | None:
        reward, sampling = self.x["reward"][i], self.a.sampling
        if reward is None:
            return None
        if sampling.truncated == "zero_reward" and self.x.get("truncated", [False] * self.num)[i]:
            reward = 0.0
        if sampling.overlong:
            limit = sampling.overlong.limit if isinstance(sampling.overlong.limit, int) else self.limit
            buffer = sampling.overlong.buffer or sampling.overlong.buffer_fraction * limit
            reward += sampling.overlong.factor * max(-1.0, min(0.0, (limit - buffer - self.length[i]) / buffer))
        kl = self.a.regularizer.kl
        if kl and kl.where == "reward" and self.a.baseline.kind != "critic_gae":
            d = [o - f for o, f, m in zip(self.old[i], self.x["logp_ref"][i], self.mask[i], strict=True) if m]
            d = [math.fsum(d)] if kl.level == "sequence" and d else d
            reward -= kl.coef * sum(self.estimate(kl.estimator, value, 0.0) for value in d)
        return reward

    def members(self, i: int) -> list[float]:
        group = self.x["group"]
        return [r for r, g in zip(self.reward, group, strict=True) if g == group[i] and r is not None]

    def is_flat(self, i: int) -> bool:
        members = self.members(i)
        return not members or max(members) - min(members) < 1e-12

    def centre(self, i: int) -> float:
        reward, members = self.reward[i], self.members(i)
        everyone = [r for r in self.reward if r is not None]
        grouped = self.is_flat(i)
        match self.a.baseline.kind:
            case "none" | "critic_gae":
                return reward
            case "batch_mean":
                return reward - sum(everyone) / len(everyone)
            case "ema":
                return reward - self.x.get("ema", 0.0)
            case "group_mean":
                return 0.0 if grouped else reward - sum(members) / len(members)
            case "group_leave_one_out":
                return 0.0 if grouped else reward - (sum(members) - reward) / (len(members) - 1)
        raise NotImplementedError

    def credit(self, i: int) -> float:
        if self.reward[i] is None:
            return 0.0
        scale, members, c = self.a.scale, self.members(i), self.centre(i)
        counted = [self.centre(j) for j in range(self.num) if self.takes_part(j)]
        match scale.kind:
            case "none":
                return c
            case "group_std":
                return 0.0 if self.is_flat(i) else c / (deviation(members, scale.std_ddof) + scale.std_eps)
            case "batch_std":
                flat = len(counted) < 2 or max(counted) - min(counted) < 1e-12
                return 0.0 if flat else c / (deviation(counted, scale.std_ddof) + scale.std_eps)
            case "batch_whiten":
                flat = len(counted) < 2 or max(counted) - min(counted) < 1e-12
                mean = sum(counted) / max(1, len(counted))
                return 0.0 if flat else (c - mean) / (deviation(counted, scale.std_ddof) + scale.std_eps)
            case "token_whiten":
                tokens = [self.centre(j) for j in range(self.num) if self.takes_part(j) for _ in range(self.length[j])]
                return 0.0 if max(tokens) - min(tokens) < 1e-12 else whiten(tokens, c)
            case "group_mean_reward":
                mean = sum(members) / len(members)
                if len(members) < 2:
                    return 0.0
                return c / mean if mean > 0 else {"zero": 0.0, "keep_minus_one": -1.0}[scale.zero_success]
        raise NotImplementedError

    def takes_part(self, i: int) -> bool:
        sampling, group = self.a.sampling, self.x["group"]
        if self.reward[i] is None:
            return False
        same = [j for j in range(self.num) if group[j] == group[i]]
        right = [self.is_correct(j) for j in same if self.reward[j] is not None]
        if sampling.dynamic_sampling and not 0 < sum(right) < len(right):
            return False
        if sampling.zero_variance_filter and self.is_flat(i):
            return False
        if sampling.truncated == "mask" and self.x.get("truncated", [False] * self.num)[i]:
            return False
        errors_left_one = len(right) < 2 and len(right) < len(same)
        return not (errors_left_one and self.a.baseline.kind.startswith("group"))

    def is_correct(self, i: int) -> bool:
        return self.x["correct"][i] if "correct" in self.x else self.x["reward"][i] >= 0.5

    # critic

    def criticised(self) -> dict[str, dict[tuple[int, int], float]]:
        """Token rewards, returns and advantages by the recursion as it is written, one token after another."""
        part, found = self.a.baseline, {"token_reward": {}, "returns": {}, "advantages": {}}
        for i in range(self.num):
            tokens = [t for j, t in self.trained() if j == i]
            later, value_later = 0.0, 0.0
            for t in reversed(tokens):
                value = self.x["value_old"][i][t]
                found["token_reward"][i, t] = self.token_reward(i, t, t == tokens[-1])
                delta = found["token_reward"][i, t] + part.gamma * value_later - value
                later, value_later = delta + part.gamma * part.lam * later, value
                found["advantages"][i, t], found["returns"][i, t] = later, later + value
        if self.a.scale.kind == "token_whiten":
            values = list(found["advantages"].values())
            found["advantages"] = {place: whiten(values, value) for place, value in found["advantages"].items()}
        return found

    def token_reward(self, i: int, t: int, is_last: bool) -> float:
        kl, reward = self.a.regularizer.kl, self.reward[i] if is_last else 0.0
        if kl is None or kl.where != "reward":
            return reward
        if kl.level == "token":
            return reward - kl.coef * self.estimate(kl.estimator, self.old[i][t] - self.x["logp_ref"][i][t], 0.0)
        d = self.log_ratio(i, t, self.old, self.x["logp_ref"], "sequence")
        return reward - kl.coef * self.estimate(kl.estimator, d, 0.0) * is_last

    def value_loss(self, i: int, t: int, value: float) -> float:
        part, old, wanted = self.a.baseline, self.x["value_old"][i][t], self.by_token["returns"][i, t]
        clip = part.value_clip or math.inf
        near = min(max(value, old - clip), old + clip)
        return self.coef[i] * 0.5 * max((value - wanted) ** 2, (near - wanted) ** 2)

    def advantage_of(self, i: int, t: int) -> float:
        return self.by_token["advantages"][i, t] if self.by_token else self.advantage[i]

    # aggregation

    def kappa(self, i: int) -> float:
        part, lengths = self.a.aggregation, [n for n, e in zip(self.length, self.effective, strict=True) if e]
        limit = getattr(part, "length", None)
        constant = limit if isinstance(limit, int) else self.limit
        match part.kind:
            case "token_mean":
                return 1 / sum(lengths)
            case "sequence_mean_token_mean":
                return 1 / len(lengths) / self.length[i]
            case "sequence_mean_token_sum":
                return 1 / len(lengths)
            case "sequence_mean_token_sum_norm":
                return 1 / len(lengths) / constant
            case "prompt_mean":
                tokens: dict[int, int] = {}
                for j in range(self.num):
                    if self.effective[j]:
                        tokens[self.x["group"][j]] = tokens.get(self.x["group"][j], 0) + self.length[j]
                return 1 / len(tokens) / tokens[self.x["group"][i]]
            case "delta_l":
                return self.length[i] ** -part.alpha / (constant * sum(n**-part.alpha for n in lengths))
        raise NotImplementedError

    def unit(self, i: int) -> float:
        """The coefficient of the response as one unit."""
        averages = self.a.aggregation.kind in ("token_mean", "sequence_mean_token_mean", "prompt_mean")
        return self.coef[i] * (self.length[i] if averages else 1)

    # loss

    def log_ratio(self, i: int, t: int, top: Rows, bottom: Rows, level: str) -> float:
        logs = [a - b for a, b, m in zip(top[i], bottom[i], self.mask[i], strict=True) if m]
        value = {"none": 0.0, "token": top[i][t] - bottom[i][t]}.get(level, math.fsum(logs))
        return value / len(logs) if level in ("sequence_geometric", "geometric") else value

    def ratio(self, i: int, t: int, new: Rows) -> float:
        bottom = self.old if self.a.ratio.denominator == "old" else self.behaviour
        return clamped_exp(self.log_ratio(i, t, new, bottom, self.a.ratio.level))

    def correction(self, i: int, t: int) -> float:
        part = self.a.correction
        if part.kind == "none":
            return 1.0
        w = clamped_exp(self.log_ratio(i, t, self.old, self.behaviour, part.level))
        low, high = part.low or 0.0, math.inf if part.high is None else part.high
        inside = low <= w <= high
        return {"truncate": min(max(w, low), high), "mask": w if inside else 0.0, "reject": float(inside)}[part.kind]

    def keep(self, i: int, t: int) -> bool:
        part, a, r = self.a.trust_region, self.advantage_of(i, t), self.ratio(i, t, self.new)
        if part.kind == "clip":
            return not (
                (a > 0 and r > 1 + part.high) or (a < 0 and r < 1 - part.low) or (part.dual and a < 0 and r > part.dual)
            )
        if part.kind == "divergence":
            bottom = self.old if self.a.ratio.denominator == "old" else self.behaviour
            mu, pi = math.exp(bottom[i][t]), math.exp(self.new[i][t])
            d = abs(mu - pi)
            if part.form == "topk":
                d = self.top_distance(i, t, mu, pi)
            elif part.measure == "kl":
                d = mu * math.log(mu / pi) + (1 - mu) * math.log((1 - mu) / (1 - pi))
            return not ((a > 0 and pi > mu and d > part.high) or (a < 0 and pi < mu and d > part.low))
        return True

    def top_distance(self, i: int, t: int, mu: float, pi: float) -> float:
        """Over the sampled token, the k likeliest of the generator and one bucket for the rest."""
        part, before, now = self.a.trust_region, [mu], [pi]
        for place, token in enumerate(self.x["topk_ids"][i][t][: part.k]):
            if token != self.x["token_ids"][i][t]:
                before.append(math.exp(self.x["topk_logp_behav"][i][t][place]))
                now.append(math.exp(self.x["topk_logp_new"][i][t][place]))
        before, now = ([*known, max(1 - math.fsum(known), 1e-12)] for known in (before, now))
        if part.measure == "tv":
            return math.fsum(abs(a - b) for a, b in zip(before, now, strict=True)) / 2
        return math.fsum(a * math.log(a / b) for a, b in zip(before, now, strict=True))

    def term(self, i: int, t: int, new: Rows) -> float:
        """The policy's term, to be multiplied by the token's coefficient; only `new` may carry a gradient."""
        part, a, fixed = self.a.trust_region, self.advantage_of(i, t), self.ratio(i, t, self.new)
        product = self.a.ratio.level == "sequence_product"
        lift = self.unit(i) / self.coef[i] if product else 1.0
        if part.kind == "clip":
            r = self.ratio(i, t, new)
            inside = min(max(r, 1 - part.low), 1 + part.high)
            value = min(r * a, inside * a)
            value = max(value, part.dual * a) if part.dual and a < 0 else value
            return -value * (lift / self.length[i] if product else 1.0)
        if part.kind == "truncate":
            fixed = min(max(fixed, part.floor), part.cap)
        if part.kind == "divergence":
            fixed = min(fixed, part.cap or math.inf) * self.keep(i, t)
        return -fixed * lift * a * new[i][t]

    def estimate(self, name: str, d: float, log_ratio: float) -> float:
        k3 = math.exp(-d) - 1 + d
        return {"k1": d, "k2": d * d / 2, "k3": k3, "ratio_k3": math.exp(log_ratio) * k3}[name]

    def kl(self, i: int, t: int, new: Rows) -> float:
        part, ref = self.a.regularizer.kl, self.x.get("logp_ref")
        if part is None or part.where != "loss":
            return 0.0
        bottom = self.old if self.a.ratio.denominator == "old" else self.behaviour
        if part.level == "token":
            return part.coef * self.estimate(part.estimator, new[i][t] - ref[i][t], new[i][t] - bottom[i][t])
        d = self.log_ratio(i, t, new, ref, "sequence")
        value = self.estimate(part.estimator, d, self.log_ratio(i, t, new, bottom, "sequence"))
        return part.coef * value * self.unit(i) / self.coef[i] / self.length[i]

    def loss(self) -> float:
        return math.fsum(self.share(i, self.new) for i in range(self.num))

    def share(self, i: int, new: Rows) -> float:
        """What response i adds to the loss; it depends on no other response's log-probabilities."""
        tokens = [t for j, t in self.trained() if j == i]
        return self.coef[i] * math.fsum(
            self.term(i, t, new) * self.correction(i, t) + self.kl(i, t, new) for t in tokens
        )

    def trained(self) -> list[tuple[int, int]]:
        return [(i, t) for i in range(self.num) for t, m in enumerate(self.mask[i]) if m and self.effective[i]]

    def gradient(self, i: int, t: int) -> float:
        """Central difference; exact for the linear terms, good to about 1e-8 for the others."""
        values = []
        for step in (STEP, -STEP):
            moved = [list(row) for row in self.new]
            moved[i][t] += step
            values.append(self.share(i, moved))
        return (values[0] - values[1]) / (2 * STEP)


def deviation(values: list[float], ddof: int) -> float:
    mean = math.fsum(values) / len(values)
    return math.sqrt(math.fsum((v - mean) ** 2 for v in values) / (len(values) - ddof))


def whiten(values: list[float], value: float) -> float:
    return (value - math.fsum(values) / len(values)) / math.sqrt(deviation(values, 1) ** 2 + 1e-8)


def clamped_exp(value: float) -> float:
    return math.exp(min(max(value, -20.0), 20.0))
