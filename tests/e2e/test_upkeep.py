"""Draining a node and renewing everything that runs, under a shell that lives on."""


def test_a_shell_opened_before_an_upgrade_is_used_after_it(fabric):
    fabric("up", "--detach", check=True)
    fabric("open", "shell", "--name", "main", "--mode", "danger-full-access", check=True)
    (info,) = fabric("list", "--json", check=True).json
    fabric("send", "main", "cd /usr; X=42", check=True)
    before = fabric("status", "--json", check=True).json
    done = fabric("upgrade", "--json", check=True).json
    assert "registry" in done["restarted"]
    assert any(name.startswith("node:") for name in done["restarted"])
    assert len(done["sessions"]) == 1
    assert done["busy"] == []
    after = fabric("status", "--json", check=True).json
    assert after["gateway"] == before["gateway"]
    assert after["gateway_pid"] != before["gateway_pid"]
    assert after["pid"] == before["pid"]
    used = fabric("send", "main", "echo $X $PWD $$", check=True)
    assert "42 /usr" in used.out
    assert str(info["pid"]) in used.out
    # A busy session's worker is left alone, and told.
    fabric("send", "main", "sleep 1000", "--background", check=True)
    left = fabric("upgrade", "--limit", "0.5", "--json")
    assert left.code == 9
    assert len(left.json["busy"]) == 1
    fabric("signal", "main", "INT", check=True)
    fabric("close", "--all", check=True)
    assert fabric("list", "--json", check=True).json == []


def test_a_drained_node_takes_nothing_until_told(fabric):
    fabric("up", "--detach", check=True)
    (node,) = fabric("nodes", "--json", check=True).json
    host = node["host"]
    fabric("open", "shell", "--name", "old", "--mode", "danger-full-access", check=True)
    left = fabric("drain", host, "--limit", "0.5", "--json")
    assert left.code == 9
    assert len(left.json["left"]) == 1
    refused = fabric("open", "shell", "--json")
    assert refused.error["reason"] == "DRAINING"
    assert "ok" in fabric("send", "old", "echo ok", check=True).out
    assert (
        fabric("drain", host, "--limit", "0.5", "--close", "--json", check=True).json["left"] == []
    )
    assert fabric("drain", "nowhere").code != 0
    fabric("drain", host, "--undo", check=True)
    fabric("open", "shell", "--name", "new", check=True)
    assert "ok" in fabric("send", "new", "echo ok", check=True).out
