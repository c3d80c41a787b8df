"""`python -m vantage.runs.supervise ATTEMPT`: stand by one attempt until it has ended."""

import logging
import sys

import django


def main() -> None:
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
    django.setup()
    from vantage.runs.supervisor import supervise  # models exist only now

    supervise(int(sys.argv[1]))


if __name__ == "__main__":
    main()
