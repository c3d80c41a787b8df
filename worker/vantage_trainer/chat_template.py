"""Chat templates that cannot work: told before a run starts when they do not parse. No torch here."""

from collections.abc import Iterator

from jinja2 import TemplateError, nodes
from jinja2.ext import Extension, loopcontrols
from jinja2.parser import Parser
from jinja2.sandbox import ImmutableSandboxedEnvironment

from vantage_trainer.refusal import Refusal, RunCheck, refuse
from vantage_trainer.spec import RunSpec


class Generation(Extension):
    """Accept the tag that transformers adds to mark what the assistant says."""

    tags = {"generation"}

    def parse(self, parser: Parser) -> list[nodes.Node]:
        next(parser.stream)
        return parser.parse_statements(("name:endgeneration",), drop_needle=True)


def broken_chat_template(spec: RunSpec) -> Iterator[Refusal]:
    if fault := _fault(spec.model.chat_template or ""):
        yield refuse(
            "bad_chat_template",
            "model.chat_template",
            "The chat template is broken: {fault}. Correct it, or leave it empty for the model's own.",
            fault=fault,
        )


def _fault(template: str) -> str:
    """Compile as transformers does; empty when that works."""
    environment = ImmutableSandboxedEnvironment(extensions=[Generation, loopcontrols])
    try:
        environment.compile(template)
    except TemplateError as fault:
        line = getattr(fault, "lineno", None)
        return f"{fault.message}".rstrip(".") + (f" (line {line})" if line else "")
    except RecursionError:
        return "it is nested too deeply"
    return ""


CHECKS: tuple[RunCheck, ...] = (broken_chat_template,)
