"""The command `vantage`."""

import argparse
import errno
import sys
from collections.abc import Callable

import django
from django.core.management import execute_from_command_line

from vantage import environment, first_start
from vantage.recipe_files import add_recipe_arguments, files_of
from vantage.running import Running
from vantage.up import Options, up


def main() -> None:
    """Run one command; what went wrong is told in a sentence, without a stack trace."""
    arguments = _parser().parse_args()
    try:
        code = arguments.run(arguments)
    except ValueError as error:
        code = _tell(str(error))
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        code = _tell(f"No disk left: {error.filename or 'a file'} could not be written. Free some and start again.")
    except KeyboardInterrupt:
        code = 130
    sys.exit(code)


def _tell(sentence: str) -> int:
    print(sentence, file=sys.stderr)
    return 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="vantage", description="Train reasoning models from a browser.")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    start = _command(commands, "up", "start everything on this machine", _up)
    start.add_argument("--host", default="127.0.0.1", help="address to listen on (default: only this machine)")
    start.add_argument("--port", type=int, default=8000)
    start.add_argument("--demo", action="store_true", help="queue the demo run if there is no run yet")
    start.add_argument("--no-node", action="store_true", help="train no runs on this machine")
    site = _command(commands, "web", "serve the site alone, with servers and nodes elsewhere", _web)
    site.add_argument("--host", default="127.0.0.1", help="address to listen on (default: only this machine)")
    site.add_argument("--port", type=int, default=8000)
    node = _command(commands, "node", "take runs from the queue and train them here", _node)
    node.add_argument("--name", help="what the site calls this machine (default: its host name)")
    node.add_argument("--devices", default="", help="the GPUs that it gives out, as in cuda:0,cuda:1 (default: all)")
    node.add_argument("--slots", type=int, help="give out the processor in so many slots, a run in each")
    node.add_argument("--cores", default="", help="keep its runs to these cores, as in 0-3,6 (default: all)")
    link = _command(commands, "login-link", "make a one-time login link for the first admin", _login_link)
    link.add_argument("--user", help="make it for this user")
    recipe = _command(commands, "recipe", "queue a ready-made run on problem sets that you have", _recipe)
    recipe.add_argument("name", choices=["smollm2"], help="smollm2: SmolLM2-135M-Instruct on word problems")
    add_recipe_arguments(recipe)
    manage = _command(commands, "manage", "run a Django management command", _manage)
    manage.add_argument("rest", nargs=argparse.REMAINDER)
    return parser


def _command(
    commands: "argparse._SubParsersAction[argparse.ArgumentParser]",
    name: str,
    words: str,
    run: Callable[[argparse.Namespace], int],
) -> argparse.ArgumentParser:
    parser = commands.add_parser(name, help=words, description=words)
    parser.set_defaults(run=run)
    return parser


def _up(arguments: argparse.Namespace) -> int:
    return up(Options(arguments.host, arguments.port, arguments.demo, not arguments.no_node))


def _web(arguments: argparse.Namespace) -> int:
    from vantage.web import web  # uvicorn is of no use to the other commands

    return web(arguments.host, arguments.port)


def _node(arguments: argparse.Namespace) -> int:
    environment.enter(environment.home())
    django.setup()
    from vantage.nodes.devices import Choice
    from vantage.runs.agent import main as agent  # its models exist only now

    return int(agent(arguments.name, Choice(arguments.devices, arguments.slots, arguments.cores)))


def _login_link(arguments: argparse.Namespace) -> int:
    home = environment.home()
    environment.enter(home)
    running = Running.read(home)
    if running is None or not running.address or not running.owner.alive():
        raise ValueError(
            f"Vantage does not run in {home}: start it with `vantage up`, which prints a login link itself."
        )
    print(running.address + first_start.login_path(arguments.user))
    return 0


def _recipe(arguments: argparse.Namespace) -> int:
    files = files_of(arguments)
    home = environment.home()
    environment.enter(home)
    running = Running.read(home)
    address = (running.address or "") if running and running.owner.alive() else ""
    page, shared = first_start.queue_smollm2(files)
    print(*shared, f"Queued: {address}{page}", sep="\n")
    return 0


def _manage(arguments: argparse.Namespace) -> int:
    environment.enter(environment.home())
    execute_from_command_line(["vantage manage", *arguments.rest])
    return 0


if __name__ == "__main__":
    main()
