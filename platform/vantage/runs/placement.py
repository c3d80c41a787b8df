"""Which devices of a node a run gets. A node without GPUs gives its CPU slots, one to a run, a core to each rank."""

from vantage_trainer.spec import Resources

NOT_TOLD = 1024  # cores of a node that does not say
Device = dict[str, str | int | float]


def placed(
    wanted: Resources, devices: list[Device], taken: set[str], *, generates_only: bool = False
) -> list[str] | None:
    """Return ids of free devices for the run, or None while too few are free."""
    free = [str(device["id"]) for device in devices if device["id"] not in taken]
    number = num_needed(wanted, devices, generates_only=generates_only)
    return free[:number] if number and number <= len(free) else None


def num_needed(wanted: Resources, devices: list[Device], *, generates_only: bool = False) -> int:
    """Count the devices the run takes here; 0: this node can never run it. Trainer and generator share if they must."""
    if not any(device.get("kind") == "cuda" for device in devices):
        cores = [int(device.get("cores", NOT_TOLD)) for device in devices]
        return int(wanted.training_devices <= max(cores, default=0))
    if generates_only:
        return wanted.generation_devices if wanted.generation_devices <= len(devices) else 0
    apart = wanted.training_devices + wanted.generation_devices
    together = max(wanted.training_devices, wanted.generation_devices)
    return apart if apart <= len(devices) else together if together <= len(devices) else 0
