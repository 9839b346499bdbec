"""What a server makes of protobuf beside what the contract says: the form of answers, kinds that have no message."""

import msgspec

from embedded.protobuf.sending import NAMED, PROTOBUF, body
from embedded.world import World
from kedge.kube.transport import Request

MAPS = "/api/v1/namespaces/default/configmaps"
SENT = body("v1", "ConfigMap", NAMED)


def test_answers_are_json_where_a_client_takes_both() -> None:
    answer = World().server.handle(Request("POST", MAPS, (), SENT, PROTOBUF, f"{PROTOBUF},application/json"))
    assert (answer.status, answer.headers["content-type"]) == (201, "application/json")
    assert msgspec.json.decode(answer.body)["metadata"]["name"] == "abc"


def test_a_client_that_takes_protobuf_only_is_refused_and_nothing_is_made() -> None:
    world = World()
    assert world.server.handle(Request("POST", MAPS, (), SENT, PROTOBUF, PROTOBUF)).status == 406
    assert world.ask("GET", f"{MAPS}/abc").status == 404


def test_a_custom_kind_has_no_message() -> None:
    path = "/apis/t.io/v1/namespaces/default/things"
    answer = World().server.handle(Request("POST", path, (), body("t.io/v1", "Thing", NAMED), PROTOBUF))
    assert answer.status == 400
    assert msgspec.json.decode(answer.body)["message"] == (
        'Thing in version "v1" cannot be handled as a Thing: no kind "Thing" is registered for version "t.io/v1"'
    )


def test_a_media_type_may_have_parameters() -> None:
    answer = World().server.handle(Request("POST", MAPS, (), SENT, f"{PROTOBUF}; charset=x"))
    assert answer.status == 201
