"""The turn policies, and the conversation of an episode."""

from __future__ import annotations

from collections.abc import Callable

from fumehood.core.conversation import Conversation, ConversationSpec, TurnPolicy
from fumehood.core.episode_spec import EpisodeSpec
from fumehood.core.errors import SpecError
from fumehood.core.json_values import JsonObject
from fumehood.core.registry import Registry
from fumehood.core.shared_time import SharedTime
from fumehood.core.tools import World
from fumehood.core.virtual_time import KeepsTime
from fumehood.turn_policies.policies import check_names

TurnPolicyFactory = Callable[[JsonObject, tuple[str, ...]], TurnPolicy]
"""Creates a turn policy from its settings and the seat names. Raises SpecError for invalid
settings."""

BY_WORLD = "world"
"""Rule of worlds that are turn policies themselves."""

BY_TIME = "time"
"""Rule of seats that act at the same time in a world with virtual time."""

TURN_POLICIES: Registry[TurnPolicyFactory] = Registry(
    "turn policy",
    {
        "dialogue": "fumehood.turn_policies.policies:Dialogue",
        "graph": "fumehood.turn_policies.policies:Graph",
        "round": "fumehood.turn_policies.policies:Round",
        "supervisor": "fumehood.turn_policies.policies:Supervisor",
        "tree": "fumehood.turn_policies.policies:Tree",
    },
)


def create_conversation(spec: EpisodeSpec, world: World) -> Conversation | None:
    """Return the conversation of an episode; None if each seat works by itself.

    Raises:
        InputError: there is no such turn policy, or it does not fit the episode.
    """
    conversation = spec.conversation
    if conversation is None:
        return None
    if any(seat.further_turns for seat in spec.seats):
        raise SpecError(
            "seats.further_turns",
            "must be absent in a conversation, where other seats write the messages",
        )
    if conversation.rule != BY_TIME:
        return Conversation(_policy(conversation, spec, world))
    check_names(conversation.settings, ())
    if not isinstance(world, KeepsTime):
        raise SpecError("conversation.rule", "time needs a world with virtual time, a scenario")
    return SharedTime(world)


def _policy(conversation: ConversationSpec, spec: EpisodeSpec, world: World) -> TurnPolicy:
    if conversation.rule != BY_WORLD:
        return TURN_POLICIES.load(conversation.rule)(
            conversation.settings, tuple(seat.name for seat in spec.seats)
        )
    if not isinstance(world, TurnPolicy):
        raise SpecError("conversation.rule", f"the world {spec.world!r} is not a turn policy")
    return world
