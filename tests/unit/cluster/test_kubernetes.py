"""The Kubernetes objects against the schemas of their API versions, and against each other."""

import json
from importlib.metadata import version
from pathlib import Path

import jsonschema
import kubernetes_validate
import pytest
import yaml

from fabric.core.sources import load
from tests.support.paths import ROOT

FOLDER = ROOT / "cluster" / "kubernetes"
KUBERNETES = "1.37"
SCHEMA = Path(__file__).with_name("raycluster-v1.7.0.json")
OBJECTS = [
    pytest.param(row, id=f"{path.stem}-{row['kind']}-{row['metadata']['name']}")
    for path in sorted(FOLDER.glob("*.yaml"))
    for row in yaml.safe_load_all(path.read_text())
]


def all_of(kind):
    return [item.values[0] for item in OBJECTS if item.values[0]["kind"] == kind]


def templates(cluster):
    spec = cluster["spec"]
    return [group["template"] for group in (spec["headGroupSpec"], *spec["workerGroupSpecs"])]


def check(row):
    if row["apiVersion"] != "ray.io/v1":
        kubernetes_validate.validate(row, KUBERNETES, strict=True)
        return
    jsonschema.validate(row, json.loads(SCHEMA.read_text()))
    for template in templates(row):
        pod = {"apiVersion": "v1", "kind": "Pod", **template}
        pod["metadata"] = {**template.get("metadata", {}), "name": "made-by-kuberay"}
        kubernetes_validate.validate(pod, KUBERNETES, strict=True)


@pytest.mark.parametrize("row", OBJECTS)
def test_every_object_fits_its_schema_and_lies_in_the_namespace(row):
    check(row)
    if row["kind"] != "Namespace":
        assert row["metadata"]["namespace"] == all_of("Namespace")[0]["metadata"]["name"]


def test_a_wrong_field_is_found():
    (cluster,) = all_of("RayCluster")
    wrong = json.loads(json.dumps(cluster))
    wrong["spec"]["workerGroupSpecs"][0]["replicass"] = 1
    with pytest.raises(jsonschema.ValidationError):
        check(wrong)
    wrong = json.loads(json.dumps(cluster))
    templates(wrong)[0]["spec"]["containers"][0]["imagee"] = "x"
    with pytest.raises(kubernetes_validate.ValidationError):
        check(wrong)


def test_no_secret_is_written_down_and_none_reaches_the_api():
    assert all_of("Secret") == []
    (cluster,) = all_of("RayCluster")
    for template in templates(cluster):
        spec = template["spec"]
        assert spec["automountServiceAccountToken"] is False
        assert spec["securityContext"]["runAsNonRoot"] is True
        for container in spec["containers"]:
            for item in container["env"]:
                assert "TOKEN" not in item["name"] or item["name"].endswith("_FILE")


def test_settings_are_good_and_their_files_are_mounted(tmp_path):
    (config,) = all_of("ConfigMap")
    file = tmp_path / "settings.toml"
    file.write_text(config["data"]["settings.toml"])
    settings = load(config=str(file), environ={}, flags={}).settings
    (cluster,) = all_of("RayCluster")
    for template in templates(cluster):
        (container,) = template["spec"]["containers"]
        mounts = [item["mountPath"] for item in container["volumeMounts"]]
        gateway = settings.gateway
        for path in (
            gateway.signing_key_file,
            gateway.tls_cert_file,
            gateway.tls_key_file,
            gateway.tls_ca_file,
        ):
            assert any(path.startswith(f"{mount}/") for mount in mounts), path
        environ = {item["name"]: item.get("value") for item in container["env"]}
        assert environ["FABRIC_STATE_DIR"] == settings.cluster.state_dir
        load(config=str(file), environ={k: v or "" for k, v in environ.items()}, flags={})
    (service,) = [row for row in all_of("Service") if "redis" in row["metadata"]["name"]]
    name, port = service["metadata"]["name"], service["spec"]["ports"][0]["port"]
    assert settings.cluster.redis_address == f"{name}:{port}"


def test_versions_are_those_of_this_project():
    (cluster,) = all_of("RayCluster")
    assert cluster["spec"]["rayVersion"] == version("ray")
    images = {c["image"] for t in templates(cluster) for c in t["spec"]["containers"]}
    (image,) = images
    assert image in (ROOT / "cluster" / "image" / "Containerfile").read_text()


def test_policies_and_services_choose_pods_that_exist():
    (cluster,) = all_of("RayCluster")
    (redis,) = all_of("StatefulSet")
    pods = [t["metadata"]["labels"] for t in (*templates(cluster), redis["spec"]["template"])]
    selectors = [
        row["spec"]["podSelector"].get("matchLabels", {}) for row in all_of("NetworkPolicy")
    ]
    selectors += [row["spec"]["selector"] for row in all_of("Service")]
    for selector in selectors:
        assert any(selector.items() <= labels.items() for labels in pods), selector
    assert {} in selectors, "nothing is denied by default"
