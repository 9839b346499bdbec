"""Routes of the three providers, whole, and what is changed in them."""

from __future__ import annotations

import copy
from typing import Any

import yaml

from kedge.plan.traffic.split import Pair

PAIR = Pair("web-v1", "web-v2")

HTTP_ROUTE = """
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: web, namespace: shop, uid: u-1, resourceVersion: "7", generation: 3, labels: {team: shop}}
spec:
  hostnames: [shop.example.com]
  parentRefs: [{name: front}]
  rules:
  - matches: [{path: {type: PathPrefix, value: /}}]
    filters: [{type: RequestHeaderModifier, requestHeaderModifier: {set: [{name: x-shop, value: "1"}]}}]
    backendRefs:
    - {name: web-v1, port: 80, weight: 1}
    - {name: web-v2, port: 80, weight: 0}
  - matches: [{path: {type: PathPrefix, value: /search}}]
    backendRefs:
    - {name: search, port: 9200, weight: 40}
    - {name: web-v1, port: 80, weight: 200}
    - {name: web-v2, port: 80, weight: 0, filters: [{type: RequestMirror, requestMirror: {backendRef: {name: spy}}}]}
  - matches: [{path: {type: PathPrefix, value: /old}}]
    backendRefs: [{name: web-v1, port: 80}]
  - matches: [{path: {type: PathPrefix, value: /docs}}]
    backendRefs: [{name: docs, port: 80}]
status:
  parents:
  - parentRef: {group: gateway.networking.k8s.io, kind: Gateway, name: front}
    controllerName: example.com/gateway
    conditions:
    - {type: Accepted, status: "True", observedGeneration: 3, reason: Accepted, message: ""}
    - {type: ResolvedRefs, status: "True", observedGeneration: 3, reason: ResolvedRefs, message: ""}
"""

VIRTUAL_SERVICE = """
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: web, namespace: shop, uid: u-2, resourceVersion: "8"}
spec:
  hosts: [shop.example.com]
  gateways: [istio-system/front]
  http:
  - name: primary
    timeout: 5s
    route:
    - destination: {host: web-v1, port: {number: 80}}
      weight: 100
    - destination: {host: web-v2.shop.svc.cluster.local, port: {number: 80}}
  - match: [{headers: {beta: {exact: "yes"}}}]
    route:
    - {destination: {host: beta}, weight: 50}
    - {destination: {host: web-v1.shop}, weight: 50}
    - {destination: {host: web-v2.shop.svc}, weight: 0, headers: {request: {set: {v: "2"}}}}
  - match: [{uri: {prefix: /gone}}]
    redirect: {uri: /}
  tcp:
  - route: [{destination: {host: web-v1}, weight: 100}]
"""

CANARY = """
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata:
  name: web-canary
  namespace: shop
  uid: u-3
  resourceVersion: "9"
  annotations:
    nginx.ingress.kubernetes.io/canary: "true"
    nginx.ingress.kubernetes.io/canary-by-header: x-canary
    nginx.ingress.kubernetes.io/canary-weight: "0"
    team: shop
spec:
  ingressClassName: nginx
  rules:
  - host: shop.example.com
    http:
      paths:
      - {path: /, pathType: Prefix, backend: {service: {name: web-v2, port: {number: 80}}}}
"""


def route(text: str, **changes: Any) -> dict[str, Any]:
    """The manifest, with other values at paths: `spec__rules__0__backendRefs__1__weight=None` removes one."""
    found: dict[str, Any] = yaml.safe_load(text)
    for path, value in changes.items():
        *parents, last = (int(part) if part.isdecimal() else part for part in path.split("__"))
        place: Any = found
        for part in parents:
            place = place[part]
        if value is None:
            del place[last]
        else:
            place[last] = value
    return found


def patched(obj: dict[str, Any], patch: dict[str, Any]) -> dict[str, Any]:
    """What a merge patch (RFC 7386) makes of it."""
    result = copy.deepcopy(obj)
    for name, value in patch.items():
        if value is None:
            result.pop(name, None)
        elif isinstance(value, dict):
            result[name] = patched(result.get(name) or {}, value)
        else:
            result[name] = value
    return result
