"""The model-facing surface as a file, so that every change of it shows in review."""

import json
from pathlib import Path

from fabric.tools.table import TOOLS, Surface, describe
from fabric.tools.values import VALUES

GOLDEN = Path(__file__).with_name("golden_tools.json")


def test_the_surface_is_the_one_in_the_golden_file():
    found = json.loads(json.dumps(describe(frozenset(Surface), background=True)))
    assert found == json.loads(GOLDEN.read_text()), "meant? then run: make golden"


def test_every_tool_states_its_value_in_values_py():
    assert set(VALUES) >= {tool.name for tool in TOOLS}


def test_without_background_nothing_mentions_it():
    text = json.dumps(describe(frozenset(Surface), background=False))
    for word in ("run_in_background", "task_output", "task_kill", "in the background"):
        assert word not in text.replace(json.dumps(VALUES["terminal_send"]), "")
