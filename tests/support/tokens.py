"""Service-account tokens that expire when a test wants them to, signed with the cluster's own key."""

import base64
import json
from datetime import UTC, datetime, timedelta
from typing import Any

from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, utils

from controlplane.cluster import Cluster

ISSUER = "https://kubernetes.default.svc"


async def token(cluster: Cluster, namespace: str, account: str, lifetime: timedelta) -> str:
    """A token of an existing service account."""
    found = (await cluster.request("GET", f"/api/v1/namespaces/{namespace}/serviceaccounts/{account}")).json()
    now = datetime.now(UTC)
    claims = {
        "iss": ISSUER,
        "aud": [ISSUER],
        "sub": f"system:serviceaccount:{namespace}:{account}",
        "iat": int((now - timedelta(minutes=1)).timestamp()),
        "nbf": int((now - timedelta(minutes=1)).timestamp()),
        "exp": int((now + lifetime).timestamp()),
        "kubernetes.io": {
            "namespace": namespace,
            "serviceaccount": {"name": account, "uid": found["metadata"]["uid"]},
        },
    }
    return _sign(claims, (cluster.folder / "service-accounts.key").read_bytes())


def _sign(claims: dict[str, Any], pem: bytes) -> str:
    key = serialization.load_pem_private_key(pem, None)
    assert isinstance(key, ec.EllipticCurvePrivateKey)
    head = {"alg": "ES256", "typ": "JWT"}
    unsigned = b".".join(_base64(json.dumps(part).encode()) for part in (head, claims))
    r, s = utils.decode_dss_signature(key.sign(unsigned, ec.ECDSA(hashes.SHA256())))
    return (unsigned + b"." + _base64(r.to_bytes(32, "big") + s.to_bytes(32, "big"))).decode()


def _base64(data: bytes) -> bytes:
    return base64.urlsafe_b64encode(data).rstrip(b"=")
