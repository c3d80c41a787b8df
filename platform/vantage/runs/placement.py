"""Which devices of a node a run gets. A node without GPUs gives its CPU slots, one to a run, a core to each rank."""

from vantage_trainer.spec import Resources

NOT_TOLD = 1024  # cores of a node that does not say
Device = dict[str, str | int | float | list[int]]


def placed(
    wanted: Resources, devices: list[Device], taken: set[str], *, generates_only: bool = False
) -> list[str] | None:
    """Return ids of free devices for the run, or None while too few are free."""
    free = [str(device["id"]) for device in devices if device["id"] not in taken and _is_large_enough(device, wanted)]
    number = num_needed(wanted, devices, generates_only=generates_only)
    return free[:number] if number and number <= len(free) else None


def num_needed(wanted: Resources, devices: list[Device], *, generates_only: bool = False) -> int:
    """Count the devices the run takes here; 0: this node can never run it. Trainer and generator share if they must."""
    if not any(device.get("kind") == "cuda" for device in devices):
        return int(any(_is_large_enough(device, wanted) for device in devices))
    if generates_only:
        return wanted.generation_devices if wanted.generation_devices <= len(devices) else 0
    apart = wanted.training_devices + wanted.generation_devices
    together = max(wanted.training_devices, wanted.generation_devices)
    return apart if apart <= len(devices) else together if together <= len(devices) else 0


def cores_of(given: list[str], devices: list[Device]) -> set[int]:
    """Return the processor's cores that a run on these devices is kept to; none: it may use all."""
    kept = [device.get("cpus", []) for device in devices if device["id"] in given]
    return {core for cores in kept if isinstance(cores, list) for core in cores}


def _is_large_enough(device: Device, wanted: Resources) -> bool:
    """Whether a CPU slot has a core for each rank."""
    cores = device.get("cores", NOT_TOLD)
    return device.get("kind") == "cuda" or (isinstance(cores, int) and wanted.training_devices <= cores)
