"""What Hudi's writers post when they have committed (`hoodie.write.commit.callback.*`).

The message names the table and the files of one commit, but not what kind of a commit it was, nor what it replaced; and
compactions, cleans and rollbacks send none. So it only says that
something is new: a worker reads what is new in the folder of that table, if it is a registered one.
"""

import hmac
import json

from thrift.Thrift import TException

from lake.protocol.errors import PERMISSION_DENIED
from lake.protocol.hive import InvalidOperationException, MetaException, NoSuchObjectException
from metastore.server.login.passing_on import PassedOn
from metastore.server.web.worker_client import worker_client
from metastore.settings import Settings

PATH = "/hudi/commits"
KEY_HEADER = "HUDI-CALLBACK-KEY"

MAX_BYTES = 64 << 20
"""The longest message that is read: a commit's has a kilobyte for each file."""

_SECONDS = 600.0


def is_key(given: str | None, key: str) -> bool:
    """Whether a writer has given the key, compared in a time that doesn't depend on either."""
    return given is not None and hmac.compare_digest(given.encode(), key.encode())


def answer(body: bytes, settings: Settings, caller: PassedOn) -> tuple[int, str]:
    """Has a worker of the server look at the table that a message is of, with the rights of who sent it.

    Returns the HTTP status and a line of text.
    """
    try:
        message = json.loads(body)
        place, name = message["basePath"], message["tableName"]
        if not isinstance(place, str) or not isinstance(name, str):
            raise TypeError
        f"{place}{name}".encode()  # JSON can say what no UTF-8 can
    except (ValueError, LookupError, TypeError, RecursionError):
        return 400, "that is no message of Hudi's: it has a basePath and a tableName"
    try:
        with worker_client(settings, timeout=_SECONDS, on_behalf_of=caller) as client:
            answer = client.lake_refresh_hudi(place, name)
    except NoSuchObjectException as error:
        return 404, str(error.message)
    except InvalidOperationException as error:
        return 409, str(error.message)
    except MetaException as error:
        refused = str(error.message).startswith(PERMISSION_DENIED)
        return 403 if refused else 503, str(error.message)
    except (OSError, TException) as error:
        return 503, str(error)
    fresh = sum(bool(each.fresh) for each in answer.instants)
    return 200, f"{fresh} instants were new, position {answer.position}"
