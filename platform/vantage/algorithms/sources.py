"""Where each choice of a part comes from: by class, or by class and value where one option decides."""

GRPO, DAPO = "Shao 2024 (arXiv:2402.03300)", "Yu 2025 (arXiv:2503.14476)"
PPO, GAE = "Schulman 2017 (arXiv:1707.06347)", "Schulman 2015 (arXiv:1506.02438)"
SCALERL, GSPO = "Khatri 2025 (arXiv:2510.13786)", "Zheng 2025 (arXiv:2507.18071)"
SOURCES = {
    "BatchMean": "Williams 1992",
    "Ema": "Williams 1992",
    "CriticGae": GAE,
    "GroupMean": GRPO,
    "GroupLeaveOneOut": "Kool 2019; Ahmadian 2024 (arXiv:2402.14740)",
    "NoScale": "Liu 2025 (arXiv:2503.20783)",
    "GroupStd": GRPO,
    "BatchStd": SCALERL,
    "BatchWhiten": "BroRL 2025 (arXiv:2510.01180)",
    "TokenWhiten": "Ouyang 2022 (arXiv:2203.02155)",
    "GroupMeanReward": "Tajwar 2026",
    "Ratio.level=token": PPO,
    "Ratio.level=sequence_geometric": GSPO,
    "Ratio.level=sequence_product": "Ahmadian 2024 (arXiv:2402.14740), as TRL computes it",
    "Ratio.denominator=behaviour": SCALERL,
    "Clip": f"{PPO}; wider above: {DAPO}; dual: Ye 2019 (arXiv:1912.09729)",
    "Truncate": "MiniMax-M1 2025 (arXiv:2506.13585)",
    "Divergence": "Qi 2026",
    "TokenMean": f"{DAPO}, as verl and TRL implement it",
    "SequenceMeanTokenMean": GRPO,
    "SequenceMeanTokenSum": "Williams 1992",
    "SequenceMeanTokenSumNorm": "Liu 2025 (arXiv:2503.20783)",
    "PromptMean": f"{DAPO}, as printed",
    "DeltaL": "Delta-L normalisation 2025",
    "TruncateCorrection": "Hilton 2021 (arXiv:2110.00641); AReaL 2025 (arXiv:2505.24298)",
    "Regularizer.kl": f"Ouyang 2022 (arXiv:2203.02155); in the loss: {GRPO}",
    "Sampling.zero_variance_filter": SCALERL,
    "Sampling.dynamic_sampling": DAPO,
    "Sampling.no_positive_resampling": SCALERL,
    "Sampling.overlong": DAPO,
    "Sampling.interruption": SCALERL,
    "Sampling.truncated=mask": f"{DAPO}, overlong filtering",
    "Sampling.truncated=zero_reward": "Liu 2025 (arXiv:2503.20783), the authors' code",
}


def sources_of(part: object) -> list[str]:
    """What is known of a part as it is set: of its choice, then of the options that are on or decide."""
    name = type(part).__name__
    values = vars(part)
    keys = [name, *(f"{name}.{option}" for option, value in values.items() if value)]
    keys += [f"{name}.{option}={value}" for option, value in values.items()]
    return list(dict.fromkeys(SOURCES[key] for key in keys if key in SOURCES))
