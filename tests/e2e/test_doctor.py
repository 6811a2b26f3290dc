"""`fabric doctor` against a fabric that runs."""


def test_a_fabric_that_is_well_passes_a_checkup_that_leaves_nothing(cli):
    done = cli("doctor", "--json", check=True)
    rows = {item["check"]: item for item in done.json["findings"]}
    (host,) = (node["host"] for node in cli("nodes", "--json", check=True).json)
    for check in ("gateway", f"node {host}", "cluster", f"versions of {host}", f"clock of {host}"):
        assert rows[check]["verdict"] == "ok", rows[check]
    assert "echo" in rows["a session"]["fact"]
    assert done.json["counts"]["fail"] == 0
    (node,) = cli("nodes", "--json", check=True).json
    assert node["sessions"] == 0
