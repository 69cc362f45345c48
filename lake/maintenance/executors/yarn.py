"""Plans as Spark applications on YARN: spark-submit hands them over, the ResourceManager's REST tells of them.

https://hadoop.apache.org/docs/stable/hadoop-yarn/hadoop-yarn-site/ResourceManagerRest.html
"""

import getpass
import json
import os
import threading
from collections.abc import Sequence
from typing import Any
from urllib.parse import quote

import urllib3

from lake.maintenance.executors.base import Task, prefix_of
from lake.maintenance.executors.clusters import Ending, RunFailed, Unreachable, plan_key
from lake.maintenance.executors.spark_submit import RUN_PLAN, SparkSubmit, SubmissionFailed, running

CALL_SECONDS = 20.0
"""How long a call of the ResourceManager may take."""

_ENDED = ("FINISHED", "FAILED", "KILLED")


class ResourceManager:
    """The web services of one ResourceManager, or of several of which one is active."""

    def __init__(self, urls: Sequence[str]) -> None:
        """`urls`: such as `http://host:8088`. Calls are in the name of HADOOP_USER_NAME, or of this process's user."""
        self._urls = [each.rstrip("/") for each in urls]
        self._user = os.environ.get("HADOOP_USER_NAME") or getpass.getuser()
        self._http = urllib3.PoolManager(maxsize=10, timeout=CALL_SECONDS, retries=urllib3.Retry(0, redirect=3))

    def applications(self, tag: str) -> list[dict[str, Any]]:
        """All applications with a tag that the ResourceManager remembers. Raises Unreachable."""
        found = self._call("GET", f"apps?applicationTags={quote(tag.lower(), safe='')}")
        return list(((found or {}).get("apps") or {}).get("app") or [])

    def application(self, id: str) -> dict[str, Any] | None:
        """An application; None if the ResourceManager knows none with that id. Raises Unreachable."""
        found = self._call("GET", f"apps/{id}")
        return None if found is None else dict(found["app"])

    def kill(self, id: str) -> None:
        """Has an application end. Raises Unreachable."""
        self._call("PUT", f"apps/{id}/state", {"state": "KILLED"})

    def _call(self, method: str, path: str, body: dict[str, str] | None = None) -> dict[str, Any] | None:
        """The reply to a call; None if it is that there is no such thing."""
        said = []
        for url in self._urls:
            separator = "&" if "?" in path else "?"
            address = f"{url}/ws/v1/cluster/{path}{separator}user.name={quote(self._user)}"
            headers = {"Accept": "application/json", "Content-Type": "application/json"}
            try:
                reply = self._http.request(method, address, headers=headers, body=json.dumps(body) if body else None)
                if reply.status == 404:
                    return None
                if reply.status in (200, 202):
                    return dict(reply.json())
                said.append(f"{url}: {reply.status} {reply.data[:300].decode(errors='replace')}")
            except (urllib3.exceptions.HTTPError, ValueError) as error:
                said.append(f"{url}: {error}")
        raise Unreachable("; ".join(said))


class YarnCluster:
    """Spark applications in YARN's cluster mode, each with the tags of its attempt and of its plan."""

    def __init__(self, manager: ResourceManager, options: Sequence[str] = (), *, command: Sequence[str] | None = None):
        """`options`: further ones of spark-submit's. `command`: instead of PySpark's own.

        Raises UserError if there is no spark-submit.
        """
        self._manager = manager
        self._options = list(options)
        self._command = command
        SparkSubmit(command=command)

    def runs(self, task: Task) -> list[str]:
        found = self._manager.applications(plan_key(task))
        return sorted(each["id"] for each in found if each["state"] not in _ENDED)

    def submit(self, task: Task, arguments: Sequence[str], stop: threading.Event) -> str:
        # An attempt of an earlier job with the same tag may have ended long ago.
        before = {each["id"] for each in self._manager.applications(plan_key(task))}
        own = {
            "spark.yarn.tags": f"{task.tag},{plan_key(task)}",
            "spark.yarn.maxAppAttempts": "1",  # attempts are ours to count
            "spark.yarn.submit.waitAppCompletion": "false",
        }
        options = [*self._options, "--master", "yarn", "--deploy-mode", "cluster"]
        options += [word for name, value in own.items() for word in ("--conf", f"{name}={value}")]
        submit = SparkSubmit(options, command=self._command)
        prefix, having = prefix_of(task.instant), task.table_arguments
        while True:
            # A killed service's spark-submit may be about to hand its attempt over: then its end is waited for.
            left = running(prefix, having)
            try:
                said = submit.run(RUN_PLAN, arguments, task.tag, prefix, stop, having=having)
            except SubmissionFailed as failure:
                raise RunFailed(str(failure)) from None
            if new := {str(each["id"]) for each in self._manager.applications(plan_key(task))} - before:
                return max(new)
            if not left:
                raise RunFailed(f"YARN knows no application with the tag {task.tag}:\n{said}")

    def ending(self, run: str) -> Ending | None:
        found = self._manager.application(run)
        if found is None:
            return Ending(False, f"the ResourceManager has forgotten {run}")
        if found["state"] not in _ENDED:
            return None
        names = ("state", "finalStatus", "diagnostics", "trackingUrl")
        said = "\n".join(f"{each}: {found[each]}" for each in names if found.get(each))
        return Ending(found.get("finalStatus") == "SUCCEEDED", said)

    def stop(self, run: str) -> None:
        self._manager.kill(run)

    def forget(self, run: str) -> None:
        pass  # the ResourceManager does by itself
