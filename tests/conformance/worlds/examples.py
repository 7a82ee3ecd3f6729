"""What each simulator can be asked. A world without an example fails the suite."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from runner.core.tools import ToolCall


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """A state to live in, and calls that fit the tools."""

    state: Mapping[str, Any]
    documents: tuple[Mapping[str, str], ...] = ()
    """What lies around the world, as a snapshot; nothing does where there is none."""
    reading: tuple[ToolCall, ...]
    """Answered, and nothing changes."""
    changing: tuple[ToolCall, ...] = ()
    """Answered, and something changes, one after the other."""
    refused: tuple[ToolCall, ...]
    """The world says no, and nothing changes."""
    unlivable: tuple[Mapping[str, Any], ...]
    """States that the world says it cannot live in."""
    needs: tuple[str, ...] = ()
    """Packages of others that it lives on."""
    on_mariadb: bool = False
    """Whether it lives on a server, too."""


def _call(tool: str, /, **arguments: Any) -> ToolCall:
    return ToolCall(tool, arguments)


_LOOKING = (
    "check_status_bar",
    "check_network_status",
    "check_network_mode_preference",
    "run_speed_test",
    "check_sim_status",
    "check_data_restriction_status",
    "check_apn_settings",
    "check_wifi_status",
    "check_wifi_calling_status",
    "check_vpn_status",
    "check_installed_apps",
    "can_send_mms",
    "check_payment_request",
    "make_payment",
)
_SWITCHING = (
    "reseat_sim_card",
    "toggle_data",
    "toggle_roaming",
    "toggle_data_saver_mode",
    "toggle_wifi",
    "toggle_wifi_calling",
    "connect_vpn",
    "disconnect_vpn",
    "reset_apn_settings",
    "reboot_device",
    "toggle_airplane_mode",
)
_OF_LINES = ("resume_line", "get_data_usage", "enable_roaming", "disable_roaming")

EXAMPLES: Mapping[str, Example] = {
    "bargaining": Example(
        state={
            "parties": [{"name": "a", "side": "seller"}, {"name": "b", "side": "buyer"}],
            "speaker": "b",
            "log": [{"by": "b", "act": "offer_price", "what": {"price": 9, "reason": ""}}],
        },
        reading=(),
        changing=(
            _call("provide_information", info_type="age", details="old"),
            _call("inquire_intentions", question="Why?"),
            _call("offer_price", price=8.5, reason="less"),
            _call("end_negotiation"),
        ),
        refused=(
            _call("accept_offer"),
            _call("reject_and_counter", counter_price=8, reason="less"),
            _call("offer_price", price=0, reason=""),
            _call("offer_price", price=-(10**30), reason=""),
        ),
        unlivable=({"parties": {}}, {"turns_max": 0}),
    ),
    "crud": Example(
        state={"accounts": {"a1": {"id": "a1", "tier": "basic", "tags": ["x"]}}, "kept": [1, 1.0]},
        reading=(_call("get_account", id="a1"),),
        changing=(
            _call("update_account", id="a1", patch={"tier": "pro", "deep": {"list": [1]}}),
            _call("create_account", fields={"id": "a2"}),
            _call("create_account", fields={}),
            _call("create_account", fields={"id": 7}),
            _call("close_account", id="a1", reason="asked"),
        ),
        refused=(
            _call("get_account", id="nobody"),
            _call("update_account", id="nobody", patch={}),
            _call("close_account", id="nobody", reason=""),
            _call("create_account", fields={"id": "a1"}),
        ),
        unlivable=({"accounts": []}, {"accounts": None}),
    ),
    "files": Example(
        state={"files": {"/a.txt": "one", "/b/c.txt": "two"}},
        reading=(
            _call("read_file", path="/a.txt"),
            _call("list_dir", path="/"),
            _call("list_dir", path="/none"),
        ),
        changing=(
            _call("write_file", path="/a.txt", content="é\0"),
            _call("write_file", path="", content=""),
        ),
        refused=(_call("read_file", path="/b"),),
        unlivable=({"files": ["/a.txt"]}, {"files": 1}),
    ),
    "postgres_sketch": Example(
        state={
            "init_sql": "CREATE TABLE t (id SERIAL PRIMARY KEY, at TIMESTAMP DEFAULT NOW());\n"
            "-- one; two\nINSERT INTO t (id) VALUES (1);\nCREATE TYPE mood AS ENUM ('sad');"
        },
        reading=(
            _call("query_db", sql="SELECT * FROM t"),
            _call("query_db", sql="DELETE FROM t"),
            _call("query_db", sql=""),
        ),
        refused=(
            _call("query_db", sql="SELECT * FROM pg_stat_statements"),
            _call("query_db", sql="SELECT mood"),
            _call("query_db", sql="COMMIT"),
        ),
        unlivable=({"init_sql": 1}, {"init_sql": ["CREATE TABLE t (id INT)"]}),
    ),
    "retrieval": Example(
        state={"docs": [{"id": "d1", "title": "Pump", "text": "pump noise"}, {"id": "d2", "title": None}]},
        reading=(
            _call("get_doc", doc_id="d1"),
            _call("search_docs", query="pump", top_k=1),
            _call("search_docs", query="none", top_k=3.0),
            _call("search_docs", query="", top_k=10**30),
            _call("search_docs", query="pump", top_k=-5),
        ),
        refused=(_call("get_doc", doc_id="d9"),),
        unlivable=({"docs": {}}, {"docs": ["d1"]}),
    ),
    "scheduling": Example(
        state={"jobs": [{"name": "m", "cron": "* * * * *", "command": "x"}]},
        reading=(
            _call("list_jobs"),
            _call("validate_cron", cron="0 59 * * 007"),
            _call("validate_cron", cron="² * * * *"),
            _call("validate_cron", cron=f"{'9' * 5000} * * * *"),
        ),
        changing=(
            _call("create_job", name="z", cron="1 2 3 4 5", command="run"),
            _call("create_job", name="a", cron="٣ * * * *", command="run"),
        ),
        refused=(
            _call("create_job", name="m", cron="* * * * *", command="x"),
            _call("create_job", name="n", cron="60 * * * *", command="x"),
        ),
        unlivable=({"jobs": {}}, {"jobs": ["m"]}),
    ),
    "search": Example(
        state={"snapshot": {"name": "animals"}, "k": 3, "snippet_chars": 40, "answer_bytes_max": 600},
        documents=(
            {"id": "owl", "url": "https://e.example/owl", "title": "Owls", "text": "Owls hunt mice. " * 99},
            {"id": "cat", "title": "Cats", "text": "Cats purr and hunt mice, \0 é"},
        ),
        reading=(
            _call("search", query="mice"),
            _call("search", query="of the", k=50.0),
            _call("search", query="mice", k=1, filter={"host": "e.example"}),
            _call("open_page", page="owl", offset=0),
            _call("open_page", page="HTTPS://E.example:443/owl"),
            _call("open_page", page="owl", offset=40.0),
        ),
        refused=(
            _call("open_page", page="cow"),
            _call("open_page", page="https://elsewhere.example/"),
            _call("open_page", page="cat", offset=10**30),
            _call("search", query="mice", filter={"colour": "red"}),
        ),
        unlivable=({"snapshot": "animals"}, {"k": 0}),
    ),
    "sql": Example(
        state={
            "tables": [
                {"name": "Two words", "columns": ["Name", "Note"], "rows": [["Ann", None], ["Bé", "x"]]}
            ]
        },
        reading=(
            _call("execute_sql", query="SELECT Name FROM `Two words` WHERE Name = 'be'"),
            _call("execute_sql", query="SHOW TABLES"),
            _call("execute_sql", query="DESCRIBE `Two words`"),
            _call("execute_sql", query="COMMIT;"),
        ),
        changing=(
            _call("execute_sql", query="INSERT INTO `Two words` VALUES ('It\\'s', NULL)"),
            _call("execute_sql", query='UPDATE `Two words` SET Note = "y" WHERE Name = "ann"'),
            _call("execute_sql", query="CREATE TABLE other (a INT)"),
            _call("execute_sql", query="INSERT INTO other VALUES (9e999)"),
            _call("execute_sql", query="DROP TABLE other"),
        ),
        refused=(
            _call("execute_sql", query="SELECT"),
            _call("execute_sql", query="ATTACH DATABASE '/tmp/x' AS x"),
            _call("execute_sql", query="SELECT datetime('now')"),
            _call("execute_sql", query="DESCRIBE nothing"),
            _call("execute_sql", query="SELECT 'open"),
            _call("execute_sql", query="SELECT 1; SELECT 2"),
        ),
        unlivable=({"tables": {}}, {"tables": [{"name": "a", "columns": ["b"], "rows": [[1]]}]}),
    ),
    "sql_mariadb": Example(
        on_mariadb=True,
        state={
            "tables": [
                {"name": "Two words", "columns": ["Name", "Note"], "rows": [["Ann", None], ["Bé", "x"]]}
            ]
        },
        reading=(
            _call("execute_sql", query="SELECT Name FROM `Two words` WHERE Name REGEXP 'b'"),
            _call("execute_sql", query="SHOW CREATE TABLE `Two words`"),
            _call("execute_sql", query="SELECT NOW(), RAND()"),
            _call("execute_sql", query="COMMIT;"),
        ),
        changing=(
            _call("execute_sql", query="INSERT IGNORE INTO `Two words` VALUES ('It\\'s', NULL)"),
            _call("execute_sql", query='UPDATE `Two words` SET Note = "y" WHERE Name = "ann"'),
            _call("execute_sql", query="CREATE TABLE other (a INT)"),
            _call("execute_sql", query="INSERT INTO other VALUES (9), (NULL)"),
            _call("execute_sql", query="DROP TABLE other"),
        ),
        refused=(
            _call("execute_sql", query="SELECT"),
            _call("execute_sql", query="DROP DATABASE mysql"),
            _call("execute_sql", query="DESCRIBE nothing"),
            _call("execute_sql", query="SELECT 'open"),
            _call("execute_sql", query="SELECT 1; SELECT 2"),
        ),
        unlivable=({"tables": {}}, {"tables": [{"name": "a", "columns": ["b"], "rows": [[1]]}]}),
    ),
    "tau2_telecom": Example(
        needs=("inspect_evals",),
        state={"agent": {}, "user": {}, "kept": 1},
        reading=(
            *(_call(name) for name in _LOOKING),
            _call("check_app_status", app_name="messaging"),
            _call("check_app_permissions", app_name="messaging"),
            _call("transfer_to_human_agents", summary="a"),
            _call("get_customer_by_name", full_name="Nobody", dob="1990-01-01"),
        ),
        changing=(
            *(_call(name) for name in _SWITCHING),
            _call("set_apn_settings", apn_settings={"apn_name": "broken"}),
            _call("set_network_mode_preference", mode="2g_only"),
            _call("grant_app_permission", app_name="messaging", permission="network"),
        ),
        refused=(
            _call("get_customer_by_phone", phone_number="1"),
            _call("get_customer_by_id", customer_id="C1"),
            _call("get_details_by_id", id="L1"),
            *(_call(name, customer_id="C1", line_id="L1") for name in _OF_LINES),
            _call("suspend_line", customer_id="C1", line_id="L1", reason="asked"),
            _call("refuel_data", customer_id="C1", line_id="L1", gb_amount=1.5),
            _call("get_bills_for_customer", customer_id="C1", limit=3),
            _call("send_payment_request", customer_id="C1", bill_id="B1"),
        ),
        unlivable=({"agent": {"customers": 1}}, {"user": {"device": "none"}}),
    ),
    "werewolf": Example(
        state={
            "players": [
                {"name": "a", "role": "wolf"},
                {"name": "b", "role": "villager"},
                {"name": "c", "role": "witch"},
            ],
            "game": {
                **{"day": 1, "phase": "witch", "queue": [], "alive": ["a", "b", "c"], "speaker": "c"},
                **{"night": {"kill": {"a": "b"}}, "votes": {}, "used": [], "guarded": None, "deaths": []},
                **{"winner": None, "news": {"a": [], "b": [], "c": []}},
            },
        },
        reading=(),
        changing=(_call("save"), _call("poison", player="a")),
        refused=(
            _call("poison", player="nobody"),
            *(_call(tool, player="b") for tool in ("protect", "kill", "check", "vote")),
        ),
        unlivable=({"players": {}}, {"days_max": 0}),
    ),
}
