"""Names that the tasks, the world and the processes of ToolSandbox share."""

AGENT, USER = "agent", "user"
END_TOOL = "end_conversation"
"""The user's only tool, which ends the conversation."""
PACKAGES = "packages"
"""Folder of a checkout with the packages that it needs."""
PARTS = {
    "base": "",
    **{name: f"_{name}" for name in ("3_distraction_tools", "10_distraction_tools", "all_tools")},
    **{
        f"{name}_scrambled": f"_3_distraction_tools_{name}_scrambled"
        for name in ("tool_description", "arg_type", "arg_description", "tool_name")
    },
}
"""Part of the suite → end of the names of its scenarios. Parts differ in the offered tools."""
METRICS = ("similarity", "milestone_similarity", "minefield_similarity", "turn_count")
