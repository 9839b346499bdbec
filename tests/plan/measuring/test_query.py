"""The query of a MetricTemplate for one rollout, and what is refused."""

import msgspec
import pytest

from kedge.api.metric_template import MetricTemplate
from kedge.plan.measuring.query import MetricSubject, QueryRefused, provider_problem, query_of
from plan.measuring.making import metric

SUBJECT = MetricSubject("web", "shop", "web-v2")
KNOWN = "only {{ name }}, {{ namespace }}, {{ target }} and {{ interval }} are known here"


def template(query: str = "up", **provider: object) -> MetricTemplate:
    given = {"type": "prometheus", "address": "http://prometheus:9090", **provider}
    return msgspec.convert({"spec": {"provider": given, "query": query}}, MetricTemplate)


@pytest.mark.parametrize(
    ("query", "filled"),
    [
        ("vector(1)", "vector(1)"),
        ("  up\n", "up"),
        ('up{job="{{ name }}", ns="{{namespace}}"}', 'up{job="web", ns="shop"}'),
        ('rate(x{pod=~"{{ target }}-.*"}[{{ interval }}])', 'rate(x{pod=~"web-v2-.*"}[5m])'),
        ("{{ name }}{{name}}", "webweb"),
        ("{{\n name\t}}", "web"),
        ("sum( {{- name -}} )", "sum(web)"),
        ("sum( {{- name }} )", "sum(web )"),
        ("sum( {{ name -}} )", "sum( web)"),
        ('{a="}}"}', '{a="}}"}'),
    ],
)
def test_a_query_is_filled_in(query: str, filled: str) -> None:
    assert query_of(template(query), metric(interval="5m"), SUBJECT) == filled


def test_the_interval_is_a_minute_if_not_set() -> None:
    assert query_of(template("{{ interval }}"), metric(), SUBJECT) == "1m"


@pytest.mark.parametrize(
    ("query", "why"),
    [
        ("{{ service }}", f"spec.query has {{{{ service }}}}: {KNOWN}"),
        ("{{ .Name }}", f"spec.query has {{{{ .Name }}}}: {KNOWN}"),
        ("{{ if name }}x{{ end }}", f"spec.query has {{{{ if name }}}}: {KNOWN}"),
        ("{{ name | quote }}", f"spec.query has {{{{ name | quote }}}}: {KNOWN}"),
        ("{{/* name */}}", f"spec.query has {{{{ /* name */ }}}}: {KNOWN}"),
        ("{{}}", f"spec.query has {{{{  }}}}: {KNOWN}"),
        ("{{ " + "x" * 99 + " }}", f"spec.query has {{{{ {'x' * 39}… }}}}: {KNOWN}"),
        ("up{{ name", "spec.query has {{ without }}"),
        ("", "spec.query is empty"),
        (" \n", "spec.query is empty"),
    ],
)
def test_any_other_template_is_refused(query: str, why: str) -> None:
    with pytest.raises(QueryRefused) as caught:
        query_of(template(query), metric(), SUBJECT)
    assert str(caught.value) == why


@pytest.mark.parametrize("value", ['x"} or vector(1) #', "a b", "a\\", "é"])
def test_a_value_that_would_change_the_query_is_refused(value: str) -> None:
    with pytest.raises(QueryRefused, match="whose value cannot be part of a query"):
        query_of(template("{{ target }}"), metric(), MetricSubject("web", "shop", value))
    assert query_of(template("{{ name }}"), metric(), MetricSubject("web", "shop", value)) == "web"


@pytest.mark.parametrize(
    ("provider", "problem"),
    [
        ({}, ""),
        ({"address": "https://me:pw@prometheus/path/"}, ""),
        ({"insecureSkipVerify": True}, ""),
        ({"type": "datadog"}, "spec.provider.type is datadog: only prometheus is known here"),
        ({"address": ""}, "spec.provider.address is no http:// or https:// URL"),
        ({"address": "prometheus:9090"}, "spec.provider.address is no http:// or https:// URL"),
        ({"address": "ftp://prometheus"}, "spec.provider.address is no http:// or https:// URL"),
        ({"address": "http://"}, "spec.provider.address is no http:// or https:// URL"),
        ({"address": "http://me:pw@host:port"}, "spec.provider.address is no http:// or https:// URL"),
        (
            {"address": "https://prometheus", "insecureSkipVerify": True},
            "spec.provider.insecureSkipVerify is not supported: give the CA as ca.crt in the Secret of secretRef",
        ),
    ],
)
def test_what_is_wrong_with_a_provider(provider: dict[str, object], problem: str) -> None:
    assert provider_problem(template(**provider)) == problem  # type: ignore[arg-type]
    if problem:
        with pytest.raises(QueryRefused) as caught:
            query_of(template(**provider), metric(), SUBJECT)  # type: ignore[arg-type]
        assert str(caught.value) == problem
