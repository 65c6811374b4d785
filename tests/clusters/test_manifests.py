"""The recipes of cluster/kubernetes and cluster/compose: by the schemas of the Dask operator, and by what the commands accept."""

from __future__ import annotations

import copy
import shlex
from importlib.util import find_spec
from pathlib import Path

import pytest
from distributed.cli.dask_scheduler import main as scheduler
from distributed.cli.dask_worker import main as worker

from distboost.cli import main

yaml = pytest.importorskip("yaml")

RECIPES = Path(__file__).parents[2] / "cluster"
CRDS = "helm/dask-kubernetes-operator/crds"
COMMANDS = {"dask scheduler": scheduler, "dask worker": worker, "distboost train": main.commands["train"]}


def manifest(name: str) -> dict:
    return yaml.safe_load((RECIPES / name).read_text())


def words(text: str) -> list[str]:
    return shlex.split(text.replace("\\\n", " "))


def commands() -> dict[str, list[str]]:
    """The words of all commands in the recipes."""
    cluster, compose = (
        manifest("kubernetes/cluster.yaml")["spec"],
        manifest("compose/compose.yaml")["services"],
    )
    [script] = manifest("kubernetes/train.yaml")["spec"]["template"]["spec"]["containers"][0]["args"]
    found = {
        f"kubernetes {part}": cluster[part]["spec"]["containers"][0]["args"]
        for part in ("scheduler", "worker")
    }
    found["kubernetes train"] = [
        word for word in words(script[script.index("distboost train") :]) if word != "${again[@]}"
    ]
    found |= {f"compose {part}": words(compose[part]["command"]) for part in ("scheduler", "worker")}
    rows = ["--algorithm", "gamble", "--x", "x", "--y", "y", "--model", "m"]
    return found | {"compose train": [*compose["train"]["entrypoint"], *rows]}


@pytest.mark.parametrize("name", commands())
def test_commands_accept_their_options(name, tmp_path):
    first, second, *options = commands()[name]
    options = [str(tmp_path) if word == "/tls" else word for word in options]
    for at, word in enumerate(options):
        if word.startswith("/tls/"):
            (tmp_path / word[5:]).touch()
            options[at] = str(tmp_path / word[5:])
        elif word == "/local":
            options[at] = str(tmp_path)
    command, given = COMMANDS[f"{first} {second}"], [str(word) for word in options]
    context = command.make_context(second, given, **main.context_settings)
    assert "tls" in str(context.params.get("protocol") or context.params["scheduler"])


@pytest.mark.parametrize("name", ["compose scheduler", "compose worker"])
def test_pages_are_for_the_machine_itself(name):
    options = commands()[name]
    assert options[options.index("--dashboard-address") + 1] == "127.0.0.1:0"


def test_all_run_one_image():
    compose = manifest("compose/compose.yaml")["services"].values()
    cluster = manifest("kubernetes/cluster.yaml")["spec"]
    job = manifest("kubernetes/train.yaml")["spec"]["template"]
    pods = [cluster["scheduler"]["spec"], cluster["worker"]["spec"], job["spec"]]
    images = {c["image"] for pod in pods for c in pod["containers"]} | {
        service["image"] for service in compose
    }
    assert images == {"distboost:latest"}


def test_workers_keep_below_the_memory_of_their_pods():
    cluster = manifest("kubernetes/cluster.yaml")["spec"]["worker"]["spec"]["containers"][0]
    compose = manifest("compose/compose.yaml")["services"]["worker"]
    limits = [
        (cluster["args"], cluster["resources"]["limits"]["memory"]),
        (words(compose["command"]), compose["mem_limit"]),
    ]
    for options, whole in limits:
        own = options[options.index("--memory-limit") + 1]
        assert float(own.removesuffix("GiB")) < float(whole.rstrip("Gig"))


def schema() -> dict:
    """The operator's schema of a DaskCluster. What it does not name is an error, as a misspelt name would be."""
    folder = Path(find_spec("dask_kubernetes").submodule_search_locations[0]) / "operator" / "deployment"
    [version] = yaml.safe_load((folder / CRDS / "daskcluster.yaml").read_text())["spec"]["versions"]
    return closed(version["schema"]["openAPIV3Schema"])


def closed(node: object) -> object:
    """A schema that allows no other names, except where Kubernetes does."""
    if isinstance(node, list):
        return [closed(item) for item in node]
    if not isinstance(node, dict):
        return node
    found = {name: closed(item) for name, item in node.items()}
    if isinstance(found.get("properties"), dict) and not found.get("x-kubernetes-preserve-unknown-fields"):
        found.setdefault("additionalProperties", False)
    if found.get("x-kubernetes-int-or-string"):
        found.pop("type", None)
    return found


@pytest.fixture(scope="module")
def validator():
    if find_spec("dask_kubernetes") is None:
        pytest.skip("dask-kubernetes is not installed: make recipes")
    jsonschema = pytest.importorskip("jsonschema")
    whole = schema()
    whole["properties"] |= {"apiVersion": {}, "kind": {}, "metadata": {}}
    pod = whole["properties"]["spec"]["properties"]["worker"]["properties"]["spec"]
    return {name: jsonschema.Draft202012Validator(part) for name, part in (("cluster", whole), ("pod", pod))}


def said(errors: object) -> list[str]:
    return [f"{error.json_path}: {error.message[:300]}" for error in errors]


def test_the_operator_accepts_the_cluster(validator):
    assert not said(validator["cluster"].iter_errors(manifest("kubernetes/cluster.yaml")))


def test_the_pod_of_the_training_is_one(validator):
    assert not said(
        validator["pod"].iter_errors(manifest("kubernetes/train.yaml")["spec"]["template"]["spec"])
    )


@pytest.mark.parametrize("where", ["worker", "scheduler"])
def test_a_misspelt_name_is_seen(where, validator):
    wrong = copy.deepcopy(manifest("kubernetes/cluster.yaml"))
    [container] = wrong["spec"][where]["spec"]["containers"]
    container["volumeMount"] = container.pop("volumeMounts")
    assert any("volumeMount" in error for error in said(validator["cluster"].iter_errors(wrong)))
