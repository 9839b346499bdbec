"""Options: the options of a request: ListOptions, PatchOptions, DeleteOptions and the like.

Reads query strings and `DeleteOptions`, and refuses combinations that kube-apiserver refuses, in its words.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import Struct, field

from kedge.embedded import request_body, selectors
from kedge.embedded.causes import forbidden, invalid_value, required_value, unsupported_value
from kedge.embedded.kind import Kind
from kedge.embedded.schema.strict_decoding import FieldValidation, field_validation
from kedge.embedded.selectors import Selection
from kedge.embedded.statuses import (
    bad_request,
    internal_error,
    invalid_options,
)
from kedge.kube.errors import Cause
from kedge.kube.transport import JSON, Request

_LONGEST_MANAGER = 128
POLICIES = ("Foreground", "Background", "Orphan")


class ListOptions(Struct, frozen=True):
    """Options of a list or watch."""

    selection: Selection
    limit: int = 0
    more: str = ""  # the continue token
    version: str = ""
    match: str = ""
    initial_events: bool | None = None
    bookmarks: bool = False
    seconds: int = 0


class WriteOptions(Struct, frozen=True):
    """Options of a create, update or patch."""

    dry_run: bool = False
    manager: str = ""
    validation: FieldValidation = "Warn"
    force: bool = False


class Preconditions(Struct, frozen=True, rename="camel"):
    """Preconditions of a delete."""

    uid: str | None = None
    resource_version: str | None = None


class DeleteOptions(Struct, frozen=True, rename="camel"):
    """Options of a delete."""

    dry_run: tuple[str, ...] | None = None
    grace_period_seconds: int | None = None
    preconditions: Preconditions | None = field(default_factory=Preconditions)
    propagation_policy: str | None = None
    orphan_dependents: bool | None = None

    @property
    def checked_preconditions(self) -> Preconditions:
        return self.preconditions or Preconditions()


def is_watch(request: Request) -> bool:
    """Whether the request of a collection is a watch."""
    return request.method == "GET" and _flag(dict(request.query), "watch")


def for_list(request: Request, kind: Kind, namespace: str) -> ListOptions:
    """The options of a list."""
    options = _collection(dict(request.query), kind, namespace)
    _check(_list_problems(options))
    return options


def for_watch(request: Request, kind: Kind, namespace: str) -> ListOptions:
    """The options of a watch."""
    options = _collection(dict(request.query), kind, namespace)
    _check(_watch_problems(options))
    return options


def for_write(request: Request, options: str) -> WriteOptions:
    """The options of a create, update or patch; `options` is their type in Kubernetes."""
    query = dict(request.query)
    dry_run = (query["dryRun"],) if query.get("dryRun") else ()
    _check([*_dry_run_problems(dry_run), *_manager_problems(query.get("fieldManager", ""))], options)
    validation = field_validation(query, options)
    return WriteOptions(dry_run == ("All",), query.get("fieldManager", ""), validation, _flag(query, "force"))


def for_apply(request: Request) -> WriteOptions:
    """The options of an apply, which must have a fieldManager."""
    options = for_write(request, "PatchOptions")
    if not options.manager:
        _check([required_value("fieldManager", "is required for apply patch")], "PatchOptions")
    return options


def _manager_problems(manager: str) -> list[Cause]:
    if len(manager) <= _LONGEST_MANAGER:
        return []
    return [Cause("fieldManager", f"Too long: may not be more than {_LONGEST_MANAGER} bytes", "FieldValueTooLong")]


def for_delete(request: Request) -> DeleteOptions:
    """The options of a delete: from its body, or from its query if there is none."""
    options = _delete_from_body(request) if request.body else _delete_from_query(dict(request.query))
    _check(_delete_problems(options), "DeleteOptions")
    return options


def parse_resource_version(text: str) -> int:
    """A resourceVersion as a number; refused as kube-apiserver does for an object or a watch."""
    if not text.isascii() or not text.isdigit():
        raise internal_error(f'resourceVersion: Invalid value: "{text}": must be an unsigned integer')
    return int(text)


def _collection(query: Mapping[str, str], kind: Kind, namespace: str) -> ListOptions:
    wanted = Selection(
        namespace,
        selectors.parse_label_selector(query.get("labelSelector", "")),
        selectors.parse_field_selector(query.get("fieldSelector", ""), kind.fields),
    )
    return ListOptions(
        wanted,
        limit=_integer(query, "limit"),
        more=query.get("continue", ""),
        version=query.get("resourceVersion", ""),
        match=query.get("resourceVersionMatch", ""),
        initial_events=_flag(query, "sendInitialEvents") if "sendInitialEvents" in query else None,
        bookmarks=_flag(query, "allowWatchBookmarks"),
        seconds=_integer(query, "timeoutSeconds"),
    )


def _list_problems(options: ListOptions) -> list[Cause]:
    problems: list[Cause] = []
    if options.initial_events is not None:
        problems.append(forbidden("sendInitialEvents", "sendInitialEvents is forbidden for list"))
    if not options.match:
        return problems
    name = "resourceVersionMatch"
    if not options.version:
        problems.append(forbidden(name, f"{name} is forbidden unless resourceVersion is provided"))
    if options.more:
        problems.append(forbidden(name, f"{name} is forbidden when continue is provided"))
    if options.match not in ("Exact", "NotOlderThan"):
        problems.append(unsupported_value(name, options.match, ("Exact", "NotOlderThan", "")))
    if options.match == "Exact" and options.version == "0":
        problems.append(forbidden(name, f'{name} "exact" is forbidden for resourceVersion "0"'))
    return problems


def _watch_problems(options: ListOptions) -> list[Cause]:
    name = "resourceVersionMatch"
    if options.initial_events is None:
        why = f"{name} is forbidden for watch unless sendInitialEvents is provided"
        return [forbidden(name, why)] if options.match else []
    if options.match == "NotOlderThan":
        return []
    problems = [forbidden(name, f"sendInitialEvents requires setting {name} to NotOlderThan")]
    return [*problems, unsupported_value(name, options.match, ("NotOlderThan",))] if options.match else problems


def _delete_from_body(request: Request) -> DeleteOptions:
    try:
        if request_body.media_type(request) == JSON:
            return msgspec.json.decode(request.body, type=DeleteOptions)
        return msgspec.convert(request_body.delete_options_in(request), DeleteOptions)
    except (ValueError, RecursionError) as error:
        raise bad_request(f"the body is no DeleteOptions: {error}") from None


def _delete_from_query(query: Mapping[str, str]) -> DeleteOptions:
    grace = query.get("gracePeriodSeconds")
    return DeleteOptions(
        dry_run=(query["dryRun"],) if query.get("dryRun") else None,
        grace_period_seconds=None if grace is None else _integer(query, "gracePeriodSeconds"),
        propagation_policy=query.get("propagationPolicy"),
        orphan_dependents=_flag(query, "orphanDependents") if "orphanDependents" in query else None,
    )


def _delete_problems(options: DeleteOptions) -> list[Cause]:
    problems = _dry_run_problems(options.dry_run or ())
    policy = options.propagation_policy
    if policy is not None and options.orphan_dependents is not None:
        why = "orphanDependents and deletionPropagation cannot be both set"
        problems.append(invalid_value("propagationPolicy", policy, why))
    elif policy is not None and policy not in POLICIES:
        problems.append(unsupported_value("propagationPolicy", policy, (*POLICIES, "nil")))
    return problems


def _dry_run_problems(asked: tuple[str, ...]) -> list[Cause]:
    if all(one == "All" for one in asked):
        return []
    return [unsupported_value("dryRun", asked, ("All",))]


def _check(problems: list[Cause], options: str = "ListOptions") -> None:
    if problems:
        raise invalid_options(options, *problems)


def _flag(query: Mapping[str, Any], name: str) -> bool:
    return name in query and query[name].lower() not in ("false", "0")


def _integer(query: Mapping[str, str], name: str) -> int:
    text = query.get(name) or "0"
    try:
        return int(text)
    except ValueError:
        raise bad_request(f'{name}: "{text}" is no integer') from None
