"""Admission registration: defaults and validation of webhook configurations, admission policies and API services."""

from __future__ import annotations

from collections.abc import Iterator

from kedge.embedded.builtin import checks
from kedge.embedded.builtin.defaulting import each, struct
from kedge.embedded.builtin.label_selectors import selector_problems
from kedge.embedded.builtin.match_conditions import condition_problems
from kedge.embedded.causes import duplicate_value, invalid_value, must_be_one_of, required_value
from kedge.kube.codec import Untyped
from kedge.kube.errors import Cause

_rules = each(struct({"scope": "*"}))
_service = struct({"port": 443})
_MATCHING = {"matchPolicy": "Equivalent", "namespaceSelector": {}, "objectSelector": {}}
_HOOK = {**_MATCHING, "failurePolicy": "Fail", "timeoutSeconds": 10}
_match = struct(_MATCHING, resourceRules=_rules, excludeResourceRules=_rules)
_client = struct(service=_service)

default_validating_webhooks = struct(webhooks=each(struct(_HOOK, rules=_rules, clientConfig=_client)))
default_mutating_webhooks = struct(
    webhooks=each(struct({**_HOOK, "reinvocationPolicy": "Never"}, rules=_rules, clientConfig=_client))
)
default_policy = struct({"spec": {}, "status": {}}, spec=struct({"failurePolicy": "Fail"}, matchConstraints=_match))
default_policy_binding = struct({"spec": {}}, spec=struct(matchResources=_match))
default_api_service = struct({"spec": {}, "status": {}}, spec=struct(service=_service))

_OPERATIONS = ("*", "CONNECT", "CREATE", "DELETE", "UPDATE")
_URL_FORM = "desired format: https://host[/path]"


def webhook_problems(configuration: Untyped) -> Iterator[Cause]:
    """What is wrong with a webhook configuration."""
    names: set[str] = set()
    for index, hook in enumerate(configuration.get("webhooks", ())):
        at = f"webhooks[{index}]"
        yield from _name(at, hook.get("name", ""), names)
        yield from _webhook(at, hook)


def _name(at: str, name: str, names: set[str]) -> Iterator[Cause]:
    if name.count(".") < 2:
        yield invalid_value(f"{at}.name", name, "should be a domain with at least three segments separated by dots")
    else:
        yield from checks.subdomain(f"{at}.name", name)
    if name in names:
        yield duplicate_value(f"{at}.name", name)
    names.add(name)


def _webhook(at: str, hook: Untyped) -> Iterator[Cause]:
    for index, rule in enumerate(hook.get("rules", ())):
        yield from _rule(f"{at}.rules[{index}]", rule)
    yield from must_be_one_of(f"{at}.failurePolicy", hook["failurePolicy"], ("Fail", "Ignore"))
    yield from must_be_one_of(f"{at}.matchPolicy", hook["matchPolicy"], ("Equivalent", "Exact"))
    if hook.get("sideEffects") is None:
        yield required_value(f"{at}.sideEffects", "must specify one of None, NoneOnDryRun")
    else:
        yield from must_be_one_of(f"{at}.sideEffects", hook["sideEffects"], ("None", "NoneOnDryRun"))
    if not 1 <= hook["timeoutSeconds"] <= 30:
        why = "the timeout value must be between 1 and 30 seconds"
        yield invalid_value(f"{at}.timeoutSeconds", hook["timeoutSeconds"], why)
    for part in ("namespaceSelector", "objectSelector"):
        yield from selector_problems(f"{at}.{part}", hook[part])
    yield from _client_problems(f"{at}.clientConfig", hook.get("clientConfig", {}))
    yield from condition_problems(f"{at}.matchConditions", hook.get("matchConditions") or [])
    if not hook.get("admissionReviewVersions"):
        yield required_value(f"{at}.admissionReviewVersions", "must specify one of v1, v1beta1")


def _rule(at: str, rule: Untyped) -> Iterator[Cause]:
    for part in ("apiGroups", "apiVersions", "operations", "resources"):
        if not rule.get(part):
            yield required_value(f"{at}.{part}")
    for index, operation in enumerate(rule.get("operations") or ()):
        yield from must_be_one_of(f"{at}.operations[{index}]", operation, _OPERATIONS)


def _client_problems(at: str, client: Untyped) -> Iterator[Cause]:
    if ("url" in client) == ("service" in client):
        yield required_value(at, "exactly one of url or service is required")
    elif "url" in client:
        scheme, _, rest = client["url"].partition("://")
        if scheme != "https":
            why = f"'https' is the only allowed URL scheme; {_URL_FORM}"
            yield invalid_value(f"{at}.url", scheme, why)
        if not rest:
            yield invalid_value(f"{at}.url", "", f"host must be specified; {_URL_FORM}")
    else:
        for name in ("name", "namespace"):
            if not client["service"].get(name):
                yield required_value(f"{at}.service.{name}", f"service {name} is required")
        yield from checks.port(f"{at}.service.port", client["service"]["port"])


def api_service_problems(service: Untyped) -> Iterator[Cause]:
    """What is wrong with an APIService: its name must match its group and version."""
    spec, name = service["spec"], service["metadata"].get("name", "")
    wanted = f"{spec.get('version', '')}.{spec.get('group', '')}"
    if name != wanted:
        yield invalid_value("metadata.name", name, f'must be `spec.version+"."+spec.group`: "{wanted}"')
