"""Changing the queue and the nodes with the mouse: each change is asked for in a dialog, and the page tells it."""

from collections.abc import Callable

import pytest
from playwright.sync_api import expect
from seed import seed
from vantage.nodes.models import Node
from vantage.runs.models import Run

pytestmark = pytest.mark.browser


def test_an_admin_orders_the_queue_and_pauses_a_node(visit: Callable) -> None:
    seed(lengths=(6, 6))
    last = Run.objects.filter(status="queued", created_by__username="maya").order_by("-pk")[0]
    visitor = visit("maya", width=400)
    page = visitor.go("/nodes/")
    row = page.locator("table.queue tr", has_text=last.name[:30])
    row.get_by_role("button", name="Order").click()
    page.get_by_label("Priority").and_(page.locator(":visible")).select_option("High")
    page.get_by_role("button", name="Set").and_(page.locator(":visible")).click()
    expect(page.get_by_role("status")).to_contain_text("priority high")
    expect(page.locator("table.queue tbody tr").first).to_contain_text(last.name[:30])
    page.locator("table.nodes").get_by_role("button", name="Pause").click()
    page.get_by_role("button", name="Pause, runs go back").click()
    expect(page.get_by_role("status")).to_contain_text("write a checkpoint and go back into the queue")
    expect(page.locator("table.nodes").get_by_role("button", name="Resume")).to_be_visible()
    node, changed = Node.objects.get(name="lab-1"), Run.objects.get(pk=last.pk)
    assert (node.paused, node.sends_back, changed.priority) == (True, True, 10)
    assert visitor.complaints == []
