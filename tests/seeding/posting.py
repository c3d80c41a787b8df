"""A form as a browser posts it."""


def filled(page: object) -> dict[str, str]:
    """What a browser would post of the form as it was shown."""
    told = {name: str(page.context[name]) for name in ("token", "run_name", "reference")}
    sent = told | {"seed": page.context["seed"].value}
    if page.context["parent"]:
        sent["from"] = str(page.context["parent"].pk)
    if page.context["step"] is not None:
        sent["step"] = str(page.context["step"])
    for field in page.context["root"].walk():
        if field.widget == "checkbox":
            sent[field.name] = "on" if field.on else "off"
        elif field.widget == "variants":
            sent[f"{field.name}.kind"] = field.value
        elif field.widget == "optional":
            sent[field.name] = "on" if field.on else "off"
        elif field.widget == "list":
            sent[field.name] = "list"
        elif field.widget not in ("group", "row", "variant"):
            sent[field.name] = field.value
    return sent
