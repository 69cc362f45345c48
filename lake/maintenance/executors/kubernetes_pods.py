"""Plans as pods on Kubernetes, one for each attempt. Needs the extra `kubernetes`, the project's own client.

A pod's name is made of the attempt's tag, so that no attempt is submitted twice. https://kubernetes.io/docs/concepts/
workloads/pods/
"""

import hashlib
import json
import os
import re
import shlex
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from lake.maintenance.executors.base import Stopped, Task
from lake.maintenance.executors.clusters import Ending, RunFailed, Unreachable, plan_key
from lake.protocol.errors import UserError

PLAN_LABEL = "table-services/plan"
TAG_ANNOTATION = "table-services/tag"
TABLE_ANNOTATION = "table-services/table"

CALL_SECONDS = 20.0
"""How long a call of the API may take."""

GONE_SECONDS = 60
"""How long it is waited until the pod of an ended attempt with the same name is gone."""

_LOG_LINES = 200
_PROGRAM = ["python3", "-m", "lake.maintenance.executors.programs.run_plan"]

Answer = TypeVar("Answer")


class PodCluster:
    """Pods of one namespace, made of a template whose first container has Spark and this package."""

    def __init__(self, api: Any, namespace: str, template: Mapping[str, Any], options: Sequence[str] = ()) -> None:
        """`api`: a CoreV1Api. `template`: a pod, as in its YAML. `options`: of spark-submit, for the driver's session.

        Raises UserError for a template without a container.
        """
        if not (template.get("spec") or {}).get("containers"):
            raise UserError("the pod's template has no container: it needs spec.containers with an image")
        self._api = api
        self._namespace = namespace
        self._template = json.dumps(template)
        self._options = list(options)

    def runs(self, task: Task) -> list[str]:
        selector = f"{PLAN_LABEL}={plan_key(task)}"
        found = self._call(lambda: self._api.list_namespaced_pod(self._namespace, label_selector=selector, **_TIME))
        # A node that isn't heard of any more may still run its pods.
        return sorted(each.metadata.name for each in found.items if each.status.phase not in ("Succeeded", "Failed"))

    def submit(self, task: Task, arguments: Sequence[str], stop: threading.Event) -> str:
        pod = self.pod(task, arguments)
        name = str(pod["metadata"]["name"])
        for _ in range(GONE_SECONDS):
            if stop.is_set():
                raise Stopped
            if self._created(pod):
                return name
            known = self._read(name)
            if known is not None and known.status.phase not in ("Succeeded", "Failed"):
                return name  # an earlier call has made it, whose answer was lost
            if known is not None:  # of an earlier job for the same plan
                self.forget(name)
            if stop.wait(1):
                raise Stopped
        raise RunFailed(f"the pod {name} of an earlier attempt has ended, and can't be deleted")

    def pod(self, task: Task, arguments: Sequence[str]) -> dict[str, Any]:
        """The pod of an attempt."""
        pod: dict[str, Any] = json.loads(self._template)
        metadata = pod.setdefault("metadata", {})
        metadata["name"] = pod_name(task)
        metadata["labels"] = {**metadata.get("labels", {}), PLAN_LABEL: plan_key(task)}
        own = {TAG_ANNOTATION: task.tag, TABLE_ANNOTATION: task.name}
        metadata["annotations"] = {**metadata.get("annotations", {}), **own}
        pod["spec"]["restartPolicy"] = "Never"  # attempts are ours to count
        container = pod["spec"]["containers"][0]
        container["command"] = _PROGRAM
        container["args"] = [*arguments, "--tag", task.tag]
        if self._options:
            submit = {"name": "PYSPARK_SUBMIT_ARGS", "value": shlex.join([*self._options, "pyspark-shell"])}
            container["env"] = [*container.get("env", ()), submit]
        return {"apiVersion": "v1", "kind": "Pod", **pod}

    def ending(self, run: str) -> Ending | None:
        pod = self._read(run)
        if pod is None:
            return Ending(False, f"the pod {run} is gone")
        if pod.status.phase not in ("Succeeded", "Failed"):
            return None
        return Ending(pod.status.phase == "Succeeded", f"pod {run}: {pod.status.phase}\n{self._log(run)}")

    def stop(self, run: str) -> None:
        self.forget(run)  # the kubelet sends SIGTERM first

    def forget(self, run: str) -> None:
        self._call(lambda: self._api.delete_namespaced_pod(run, self._namespace, **_TIME), missing=None)

    def _created(self, pod: Mapping[str, Any]) -> bool:
        """Creates a pod; False if there is one of that name. Raises Unreachable, RunFailed for one that is refused."""
        from kubernetes.client import ApiException

        try:
            self._call(lambda: self._api.create_namespaced_pod(self._namespace, pod, **_TIME))
        except Unreachable as error:
            cause = error.__cause__
            if isinstance(cause, ApiException) and cause.status == 409:
                return False
            if isinstance(cause, ApiException) and cause.status in (400, 403, 422):
                raise RunFailed(f"Kubernetes refuses the pod: {cause.body}") from None
            raise
        return True

    def _read(self, name: str) -> Any:
        return self._call(lambda: self._api.read_namespaced_pod(name, self._namespace, **_TIME), missing=None)

    def _log(self, name: str) -> str:
        try:
            read = self._api.read_namespaced_pod_log
            return str(self._call(lambda: read(name, self._namespace, tail_lines=_LOG_LINES, **_TIME), missing=""))
        except Unreachable as error:
            return f"no log: {error}"

    @staticmethod
    def _call(call: Callable[[], Answer], **missing: Answer) -> Answer:
        """What a call answers; with `missing`, that if there is no such thing. Raises Unreachable."""
        import urllib3
        from kubernetes.client import ApiException

        try:
            return call()
        except ApiException as error:
            if error.status == 404 and missing:
                return missing["missing"]
            raise Unreachable(f"Kubernetes answers {error.status} {error.reason}") from error
        except (urllib3.exceptions.HTTPError, OSError) as error:
            raise Unreachable(f"Kubernetes doesn't answer: {error}") from error


_TIME = {"_request_timeout": CALL_SECONDS}


def pod_name(task: Task) -> str:
    """The name of an attempt's pod. Attempts of two tables may have the same tag, and tags more kinds of characters."""
    digest = hashlib.sha256(f"{task.key} {task.tag}".encode()).hexdigest()[:10]
    return f"{re.sub('[^a-z0-9]+', '-', task.tag.lower())}-{digest}"


def connected(namespace: str, template: Path, options: Sequence[str] = ()) -> PodCluster:
    """The cluster that this pod runs in, or that the file KUBECONFIG names.

    Raises UserError without the client or its configuration, and for a template that can't be read.
    """
    try:
        import yaml
        from kubernetes import client, config
    except ImportError:
        raise UserError("this executor needs a client: pip install 'lake-metastore-client[kubernetes]'") from None
    try:
        named = os.environ.get("KUBECONFIG")  # the client itself reads it once, when it is imported
        config.load_config(**({"config_file": named} if named else {}))
    except config.ConfigException as error:
        raise UserError(f"which Kubernetes? Run in a pod, or set KUBECONFIG: {error}") from None
    try:
        pod = yaml.safe_load(template.read_text())
    except (OSError, yaml.YAMLError) as error:
        raise UserError(f"the pod's template {template} can't be read: {error}") from None
    if not isinstance(pod, dict):
        raise UserError(f"the pod's template {template} is no pod")
    return PodCluster(client.CoreV1Api(), namespace, pod, options)
