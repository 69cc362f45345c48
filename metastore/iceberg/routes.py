"""The routes of Iceberg's REST catalog. Routes and the answer of `config` follow from one table, `ENDPOINTS`.

Handlers run in threads: they wait for workers and for the storage.
"""

import hashlib
import json
import math
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any
from urllib.parse import quote

import structlog
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from lake.protocol.connection.thrift_client import ThriftClient
from lake.protocol.lake import RequestOutcome
from metastore.iceberg import credentials, repeats, reports, tokens
from metastore.iceberg.bounds import Bounds
from metastore.iceberg.catalog import DEFAULT_CATALOG, TABLE, VIEW, Catalog, Change, Found, Kind, Name
from metastore.iceberg.credentials import Place, Vending
from metastore.iceberg.errors import WORKER_ERRORS, RestError, bad_request, done_before, of_status, unavailable
from metastore.iceberg.files import LARGE, MetadataFiles
from metastore.iceberg.metadata import Json, well_formed, with_refs_only
from metastore.iceberg.paging import page
from metastore.iceberg.repeats import Once
from metastore.iceberg.shown.exposed import NothingShown, ShownTables, reader_of
from metastore.iceberg.shown.footer_cache import Footers
from metastore.iceberg.shown.writing import Memory
from metastore.iceberg.tokens import NoToken
from metastore.warehouse import Warehouse

BASE = "/iceberg"

MAX_BODY = 16 << 20
"""The longest body of a request, in bytes."""

log = structlog.get_logger(__name__)


@dataclass(frozen=True)
class Port:
    """What the HTTP port gives to the catalog.

    `caller`: who sends a request; raises `refused`. `connect`: a connection to a worker on behalf of a caller, for one
    request; raises OSError, TException when it is entered.
    `body`: a request's body of at most a number of bytes; raises `refused`. `refused`: has `status` and `headers`.
    """

    caller: Callable[[Request], Any]
    connect: Callable[[Any], AbstractContextManager[ThriftClient]]
    body: Callable[[Request, int], bytes]
    refused: type[Exception]


@dataclass(frozen=True)
class Front:
    """What is different where the tables are those of other metastores. `roots`: below which directories metadata files
    are read and written.

    `enter`: chooses a warehouse for a connection, by default one; its name, and the catalog of its tables. Raises
    RestError.
    """

    roots: Callable[[], Sequence[str]]
    enter: Callable[[ThriftClient, str | None], tuple[str, str]]


@dataclass(frozen=True)
class _Call:
    """One request under way. `warehouse`: its name. `front`: whether the tables are other metastores'.

    `path`: as the specification writes it. `once`: if it may be sent again.

    `vending`: what gives credentials, if the server can. `user`: the caller's, "" for nobody.
    """

    request: Request
    warehouse: str
    front: bool
    path: str
    catalog: Catalog
    files: MetadataFiles
    content: bytes
    once: Once | None
    vending: Vending | None
    user: str

    @property
    def wants_credentials(self) -> bool:
        """Whether the client wants credentials, and the server can give some."""
        return self.vending is not None and credentials.wanted(self.request.headers.get(credentials.HEADER, ""))

    @property
    def query(self) -> Mapping[str, str]:
        return self.request.query_params

    @property
    def namespace(self) -> str:
        return str(self.request.path_params["namespace"]).lower()

    @property
    def name(self) -> Name:
        return Name.of(self.request.path_params["namespace"], self.request.path_params["name"])

    def body(self) -> Json:
        """The body's object. Raises RestError (400)."""
        try:
            found = json.loads(self.content or b"{}", parse_constant=_no_number, parse_float=_number)
        except (ValueError, RecursionError) as error:
            raise bad_request(f"the body is no JSON: {str(error)[:200]}") from None
        if not isinstance(found, dict):
            raise bad_request("the body is no JSON object")
        return found


Handler = Callable[[_Call], Response]


def _no_number(text: str) -> None:
    """JSON has no such number, and Python would write it as it came."""
    raise ValueError(f"{text} is no number")


def _number(text: str) -> float:
    """A number that is too large for a float would become infinity, which JSON has not."""
    found = float(text)
    if math.isinf(found):
        _no_number(text[:40])
    return found


_quoted = json.encoder.encode_basestring_ascii
"""A text as JSON writes it."""


def _json(value: Any, status: int = 200) -> Response:
    return Response(json.dumps(value, separators=(",", ":")), status, media_type="application/json")


def _nothing() -> Response:
    return Response(status_code=204)


# -- config and namespaces -------------------------------------------------------------------------------------


def _config(call: _Call) -> Response:
    found = {"defaults": {}, "overrides": {"prefix": call.warehouse}, "endpoints": listed(front=call.front)}
    if not call.front:
        call.catalog.check()
        found["idempotency-key-lifetime"] = repeats.LIFETIME
    return _json(found)


def _list_namespaces(call: _Call) -> Response:
    if parent := call.query.get("parent"):
        call.catalog.namespace(parent.lower())  # there is one level
        return _json({"namespaces": []})
    names, token = page(call.catalog.namespaces(), call.query)
    return _json({"namespaces": [[each] for each in names]} | _token(token))


def _token(token: str | None) -> Json:
    return {} if token is None else {"next-page-token": token}


def _create_namespace(call: _Call) -> Response:
    body = call.body()
    with well_formed("the namespace"):
        levels, properties = body["namespace"], body.get("properties") or {}
        if len(levels) != 1:
            raise bad_request(f"a namespace has one level here, not {len(levels)}")
        name = levels[0].lower()
    return _json({"namespace": [name], "properties": call.catalog.create_namespace(name, _texts(properties))})


def _load_namespace(call: _Call) -> Response:
    return _json({"namespace": [call.namespace], "properties": call.catalog.namespace(call.namespace)})


def _namespace_exists(call: _Call) -> Response:
    call.catalog.namespace(call.namespace)
    return _nothing()


def _drop_namespace(call: _Call) -> Response:
    call.catalog.drop_namespace(call.namespace)
    return _nothing()


def _update_namespace(call: _Call) -> Response:
    body = call.body()
    removals, updates = body.get("removals") or [], _texts(body.get("updates") or {})
    if not isinstance(removals, list) or not all(isinstance(each, str) for each in removals):
        raise bad_request("removals are a list of texts")
    return _json(call.catalog.update_namespace(call.namespace, removals, updates))


def _texts(properties: Any) -> dict[str, str]:
    if not isinstance(properties, dict) or not all(isinstance(each, str) for each in properties.values()):
        raise bad_request("properties are an object of texts")
    return properties


# -- tables ----------------------------------------------------------------------------------------------------


def _list(kind: Kind, call: _Call) -> Response:
    names, token = page(call.catalog.names(call.namespace, kind), call.query)
    # Put together by hand: for a thousand names, a list of objects takes three times as long.
    begin = f'{{"namespace":[{_quoted(call.namespace)}],"name":'
    listed = ",".join([f"{begin}{_quoted(each)}}}" for each in names])
    more = "" if token is None else f',"next-page-token":{_quoted(token)}'
    return Response(f'{{"identifiers":[{listed}]{more}}}', media_type="application/json")


def _create_table(call: _Call) -> Response:
    body = call.body()
    _check_name(body)
    made = call.catalog.create_table(call.namespace, body)
    if made.location:
        given = _given(call, call.catalog.data_place(made.name, None, shown=False)) if call.wants_credentials else {}
        return _loaded(call, TABLE, made.location, _now(made), given)
    assert made.new is not None
    own = call.wants_credentials and call.catalog.is_alone(made)
    return _json({"metadata": made.new, "config": {}} | (_given(call, (made.new["location"], True)) if own else {}))


def _check_name(body: Json) -> None:
    if not isinstance(body.get("name"), str):
        raise bad_request("the name is missing")


def _load_table(call: _Call) -> Response:
    snapshots = call.query.get("snapshots", "all").lower()
    if snapshots not in ("all", "refs"):
        raise bad_request(f"snapshots is all or refs, not {snapshots[:40]!r}")
    stored = call.catalog.find(call.name, TABLE)
    found = call.catalog.show(stored)
    tag = _tag(found.location, snapshots)
    if not call.wants_credentials and tag in [
        each.strip() for each in call.request.headers.get("if-none-match", "").split(",")
    ]:
        return Response(status_code=304, headers={"ETag": tag})
    given = _given(call, _place_of(call, stored)) if call.wants_credentials else {}
    return _stored(found.location, _content(call, found, TABLE, snapshots), tag, given)


def _place_of(call: _Call, found: Found) -> tuple[str, bool] | None:
    """`found`: as it is stored."""
    return call.catalog.data_place(call.name, found.table.id, shown=found.is_shown)


def _given(call: _Call, found: tuple[str, bool] | None) -> Json:
    """The fields of an answer with credentials for a directory, writing ones or not; none if they can't be had."""
    try:
        place, properties = _vended(call, found)
    except RestError as error:  # a client may have its own
        log.warning("a table is shown without credentials", reason=str(error))
        return {}
    if place is None:
        return {}
    return {"config": properties, "storage-credentials": credentials.listed(place, properties)}


def _vended(call: _Call, found: tuple[str, bool] | None) -> tuple[Place | None, Json]:
    """Credentials, and the directory that they are for; None for none. Raises RestError."""
    if call.vending is None or found is None:
        return None, {}
    location, write = found
    place = Place.of(location)
    if place is None:
        return None, {}
    properties = call.vending.credentials(place, call.user, write=write)
    if "name" in call.request.path_params:
        parts = (call.request.path_params[each] for each in ("prefix", "namespace", "name"))
        again = "v1/{}/namespaces/{}/tables/{}/credentials".format(*(quote(each, safe="") for each in parts))
        properties["client.refresh-credentials-endpoint"] = again
    return place, properties


def _content(call: _Call, found: Found, kind: Kind, snapshots: str = "all") -> bytes:
    """The stored bytes of a table's metadata. They are parsed only where snapshots are left out, and once."""
    if snapshots == "all":
        return call.files.read(found.location, kind.uuid_key)
    content = call.files.kept(found.location, snapshots)
    if content is None:
        content = json.dumps(with_refs_only(call.catalog.metadata(found, kind)), separators=(",", ":")).encode()
        call.files.keep(found.location, snapshots, content)
    return content


def _tag(location: str, snapshots: str = "all") -> str:
    return f'"{hashlib.sha256(f"{snapshots} {location}".encode()).hexdigest()[:32]}"'


def _stored(location: str, content: bytes, tag: str | None = None, given: Json | None = None) -> Response:
    """`given`: fields of the answer beside the metadata."""
    more = json.dumps({"config": {}} | (given or {}), separators=(",", ":"))[1:].encode()
    body = b'{"metadata-location":' + json.dumps(location).encode() + b',"metadata":' + content + b"," + more
    return Response(body, headers={"ETag": tag} if tag else None, media_type="application/json")


def _loaded(call: _Call, kind: Kind, location: str, metadata: Json, given: Json | None = None) -> Response:
    """What was just written: its bytes are mostly still kept."""
    content = call.files.kept(location, kind.uuid_key) or json.dumps(metadata, separators=(",", ":")).encode()
    return _stored(location, content, _tag(location), given)


def _exists(kind: Kind, call: _Call) -> Response:
    call.catalog.find(call.name, kind)
    return _nothing()


def _commit_table(call: _Call) -> Response:
    body = call.body()
    [change] = call.catalog.commit([(call.name, _objects(body, "requirements"), _objects(body, "updates"))])
    return _loaded(call, TABLE, change.location, _now(change))


def _now(change: Change) -> Json:
    found = change.base if change.new is None else change.new
    assert found is not None
    return found


def _objects(body: Json, key: str) -> list[Json]:
    found = body.get(key) or []
    if not isinstance(found, list) or not all(isinstance(each, dict) for each in found):
        raise bad_request(f"{key} are a list of objects")
    return found


def _drop_table(call: _Call) -> Response:
    call.catalog.drop(call.name, TABLE, purge=call.query.get("purgeRequested", "").lower() == "true")
    return _nothing()


def _register(kind: Kind, call: _Call) -> Response:
    body = call.body()
    _check_name(body)
    metadata, location = call.catalog.register(call.namespace, body, kind)
    return _loaded(call, kind, location, metadata)


def _rename(kind: Kind, call: _Call) -> Response:
    body = call.body()
    call.catalog.rename(_identifier(body.get("source")), _identifier(body.get("destination")), kind)
    return _nothing()


def _identifier(value: Any) -> Name:
    with well_formed("an identifier"):
        [namespace], name = value["namespace"], value["name"]
        return Name.of(namespace, name)


def _commit_transaction(call: _Call) -> Response:
    changes = _objects(call.body(), "table-changes")
    call.catalog.commit(
        [
            (_identifier(each.get("identifier")), _objects(each, "requirements"), _objects(each, "updates"))
            for each in changes
        ]
    )
    return _nothing()


def _report_metrics(call: _Call) -> Response:
    found = call.catalog.find(call.name, TABLE)
    figures = reports.figures(call.body())
    if figures is not None:
        call.catalog.report(call.name, found, figures)
    return _nothing()


def _credentials(call: _Call) -> Response:
    found = call.catalog.find(call.name, TABLE)
    place, properties = (None, {}) if call.vending is None else _vended(call, _place_of(call, found))
    return _json({"storage-credentials": [] if place is None else credentials.listed(place, properties)})


# -- views -----------------------------------------------------------------------------------------------------


def _create_view(call: _Call) -> Response:
    body = call.body()
    _check_name(body)
    metadata, location = call.catalog.create_view(call.namespace, body)
    return _loaded(call, VIEW, location, metadata)


def _load_view(call: _Call) -> Response:
    found = call.catalog.find(call.name, VIEW)
    return _stored(found.location, _content(call, found, VIEW))


def _replace_view(call: _Call) -> Response:
    body = call.body()
    change = call.catalog.replace_view(call.name, _objects(body, "requirements"), _objects(body, "updates"))
    return _loaded(call, VIEW, change.location, _now(change))


def _drop_view(call: _Call) -> Response:
    call.catalog.drop(call.name, VIEW)
    return _nothing()


# -- the table -------------------------------------------------------------------------------------------------

_CONFIG = "/v1/config"
_N = "/v1/{prefix}/namespaces"
_T = f"{_N}/{{namespace}}/tables"
_V = f"{_N}/{{namespace}}/views"

ENDPOINTS: tuple[tuple[str, str, Handler], ...] = (
    ("HEAD", f"{_T}/{{table}}", partial(_exists, TABLE)),
    ("GET", f"{_T}/{{table}}", _load_table),
    ("POST", f"{_T}/{{table}}", _commit_table),
    ("GET", _T, partial(_list, TABLE)),
    ("GET", _N, _list_namespaces),
    ("POST", _N, _create_namespace),
    ("HEAD", f"{_N}/{{namespace}}", _namespace_exists),
    ("GET", f"{_N}/{{namespace}}", _load_namespace),
    ("DELETE", f"{_N}/{{namespace}}", _drop_namespace),
    ("POST", f"{_N}/{{namespace}}/properties", _update_namespace),
    ("POST", _T, _create_table),
    ("DELETE", f"{_T}/{{table}}", _drop_table),
    ("POST", f"{_N}/{{namespace}}/register", partial(_register, TABLE)),
    ("POST", "/v1/{prefix}/tables/rename", partial(_rename, TABLE)),
    ("POST", "/v1/{prefix}/transactions/commit", _commit_transaction),
    ("POST", f"{_T}/{{table}}/metrics", _report_metrics),
    ("GET", f"{_T}/{{table}}/credentials", _credentials),
    ("GET", _V, partial(_list, VIEW)),
    ("POST", _V, _create_view),
    ("HEAD", f"{_V}/{{view}}", partial(_exists, VIEW)),
    ("GET", f"{_V}/{{view}}", _load_view),
    ("POST", f"{_V}/{{view}}", _replace_view),
    ("DELETE", f"{_V}/{{view}}", _drop_view),
    ("POST", f"{_N}/{{namespace}}/register-view", partial(_register, VIEW)),
    ("POST", "/v1/{prefix}/views/rename", partial(_rename, VIEW)),
)
"""Method, path as the specification writes it, and who answers. HEAD stands before GET, which would answer it too.

Routes are tried in this order: those come first that are requested most.
"""


_NOT_OF_FRONTS = frozenset({_commit_transaction, _report_metrics, _credentials})
"""Metastores don't change several tables in one transaction; reports and credentials are those of lake metastores."""


def listed(*, front: bool = False) -> list[str]:
    """What `config` says of the endpoints."""
    return [f"{method} {path}" for method, path, _ in _endpoints(front=front)]


def _endpoints(*, front: bool) -> Iterator[tuple[str, str, Handler]]:
    return (each for each in ENDPOINTS if not (front and each[2] in _NOT_OF_FRONTS))


class _Bodies:
    """Bounds the long bodies that are received at once. Thread-safe."""

    def __init__(self) -> None:
        self._places = threading.BoundedSemaphore(_LONG_BODIES)

    @contextmanager
    def place(self, request: Request) -> Iterator[None]:
        """Waits for a place, if a request's body may be long. Raises RestError (503)."""
        length = request.headers.get("content-length", "")
        if length.isdecimal() and int(length[:9]) <= LARGE:
            yield
            return
        if not self._places.acquire(timeout=_BODY_SECONDS):
            raise unavailable("the server is receiving other large requests: try again")
        try:
            yield
        finally:
            self._places.release()


_LONG_BODIES, _BODY_SECONDS = 16, 30.0


@dataclass(frozen=True)
class _Server:
    """What requests have in common. `expose`: whether tables of other formats are shown by default."""

    port: Port
    warehouse: Warehouse
    vending: Vending | None
    files: MetadataFiles
    bodies: _Bodies
    memory: Memory
    expose: bool
    front: Front | None
    bounds: Bounds | None


def iceberg_routes(
    port: Port, warehouse: Warehouse, vending: Vending | None = None, *, expose: bool, front: Front | None = None
) -> list[Route]:
    """The routes below `BASE`. `warehouse`: what reads and writes metadata files. `vending`: gives credentials.

    `expose`: whether tables of other formats are shown that don't say it themselves, nor do their databases.
    """
    memory = Memory(Footers(warehouse))
    bounds = None if front is None else Bounds(warehouse, front.roots)
    files = MetadataFiles(warehouse)
    server = _Server(port, warehouse, vending, files, _Bodies(), memory, expose, front, bounds)

    def route(method: str, path: str, handler: Handler) -> Route:
        def answer(request: Request) -> Response:
            try:
                with server.files.request():
                    return _answer(server, path, handler, request)
            except RestError as error:
                response = _json(error.body(), error.status)
                for name, value in error.headers:
                    response.headers.append(name, value)
                return response

        own = path.replace("{table}", "{name}").replace("{view}", "{name}")
        return Route(BASE + own, answer, methods=[method], name=f"{method} {path}")

    return [
        route("GET", _CONFIG, _config),
        *(route(*each) for each in _endpoints(front=front is not None)),
        Route(BASE + "/v1/oauth/tokens", lambda request: _token_for(port, request), methods=["POST"]),
        Route(BASE + "/{rest:path}", _no_endpoint, methods=["GET", "HEAD", "POST", "PUT", "DELETE"]),
    ]


def _token_for(port: Port, request: Request) -> Response:
    try:
        known, user = tokens.with_credentials(request, port.body(request, tokens.MAX_FORM))
        with port.connect(port.caller(known)) as client:
            return tokens.issue(client, user)
    except port.refused as refused:
        return tokens.failure(tokens.of_status(refused.status, str(refused)))  # type: ignore[attr-defined]
    except NoToken as error:
        return tokens.failure(error)
    except WORKER_ERRORS as error:
        return tokens.failure(tokens.of_status(503, str(error)))


def _no_endpoint(request: Request) -> Response:
    text = f"there is no endpoint {request.method} {request.url.path[:200]}: GET {BASE}/v1/config lists them"
    return _json(RestError(404, "NotFoundException", text).body(), 404)


def _answer(server: _Server, path: str, handler: Handler, request: Request) -> Response:
    port, files = server.port, server.files
    try:
        caller = port.caller(request)
        content = b""
        if request.method == "POST":
            with server.bodies.place(request):
                content = port.body(request, MAX_BODY)
                files.take_turn(len(content))  # while it waits, its body takes a place
    except port.refused as refused:
        raise of_status(refused.status, str(refused), refused.headers) from None  # type: ignore[attr-defined]
    if path == _CONFIG:
        name = request.query_params.get("warehouse") or ("" if server.front else DEFAULT_CATALOG)
    else:
        name = request.path_params["prefix"]
    if any(each in name for each in "@#\0"):
        raise RestError(404, "NotFoundException", f"Warehouse does not exist: {name[:100]}")
    key = repeats.key_of(request, content)
    with ExitStack() as until:
        try:
            client = until.enter_context(port.connect(caller))
        except WORKER_ERRORS as error:
            raise unavailable(f"no worker answers: {error}") from error
        name = catalog_name = name.lower()
        once = None if key is None or server.front is not None else Once(client, key)
        shown: ShownTables | NothingShown = NothingShown()
        if server.front is not None:
            name, catalog_name = server.front.enter(client, name or None)
        else:
            reader = reader_of(caller.identity)
            shown = ShownTables(client, server.warehouse, server.memory, reader, by_default=server.expose)
        catalog = Catalog(client, catalog_name, files, server.warehouse, shown, once, server.bounds)
        user = "" if caller.identity is None else caller.identity.user
        fronted = server.front is not None
        call = _Call(request, name, fronted, path, catalog, files, content, once, server.vending, user)
        return _answered_once(handler, call)


def _answered_once(handler: Handler, call: _Call) -> Response:
    """The answer to a request, or for one that was sent before what that one got."""
    if call.once is None:
        return _handled(handler, call)
    try:
        before = call.once.begin()
        if before.done or before.other:
            return _again(call, before)
        try:
            return _handled(handler, call)
        except RestError as error:
            kept = call.once.refused(error)
            if kept.done or kept.other:
                return _again(call, kept)
            raise
    finally:
        call.once.close()


def _handled(handler: Handler, call: _Call) -> Response:
    try:
        return handler(call)
    except UnicodeEncodeError:  # the first call of a worker that names it, before anything is written
        raise bad_request("a text has half of a surrogate pair, which is no character") from None


def _again(call: _Call, outcome: RequestOutcome) -> Response:
    """What a request is answered that was done or refused before. A table is shown as it is now."""
    repeats.check(outcome)
    if outcome.answer is not None:
        return Response(outcome.answer, media_type="application/json")
    if outcome.table is None or "namespace" not in call.request.path_params:  # it is in a transaction's body
        return _nothing()
    kind = VIEW if "view" in call.path else TABLE
    name = call.name if "name" in call.request.path_params else Name.of(call.namespace, str(call.body()["name"]))
    found = None
    try:
        found = call.catalog.find(name, kind)
    except RestError as error:
        if error.status != 404:
            raise
    if found is None or found.table.id != outcome.table or found.is_shown:
        raise done_before(f"{name} was dropped or renamed since")
    given: Json = {}
    if call.path == _T and call.wants_credentials:  # a new table; others get none the first time either
        given = _given(call, call.catalog.data_place(name, found.table.id, shown=False))
    return _stored(found.location, _content(call, found, kind), _tag(found.location), given)
