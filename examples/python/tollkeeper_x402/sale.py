"""A sale, one state machine for every seller in Python.

A payment is bound to the first request that it was valid for (method, URL, body) before anything is settled; its work is
computed once and stored; then it is settled, with a key that binds payment and request, until its end is known. After a
settle was sent, only a known end is final: every other answer leaves the payment pending. "Settled before" releases
nothing by itself: the facilitator repeats a success to this sale's own key alone.
"""

from __future__ import annotations

import hashlib
import http.client
import json
import os
import re
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Callable, Mapping

from .disk import make_folder, sync_folder
from .wire import Answer

UNRECORDED = re.compile(
    r"((ledger|stellar)_unavailable|internal_error|rate_limited|unauthorized"
    r"|settle_(ledger|stellar)_(temporarily_unavailable|sponsor_budget_exceeded)"
    r"|invalid_batch_settlement_[a-z]+_(rpc_read_failed|channel_busy|verification_state_unavailable))"
)
"""The facilitator says that it recorded nothing and cannot say anything about this payment now."""
KNOWN_END = re.compile(
    r"((invalid|unsupported)_[a-z0-9_]+|network_mismatch|requirements_mismatch|insufficient_funds|request_too_large"
    r"|expired|payment_identifier_(required|conflict)"
    r"|settle_([a-z]+_)?(ledger|stellar)_(transaction_failed|transaction_expired|authorization_spent|already_settled"
    r"|signer_selection_failed|transaction_signing_failed|fee_bump_signing_failed))"
)
SETTLED_BEFORE = re.compile(r"settle_(ledger|stellar)_already_settled")
ABOUT_PAYMENT = (200, 400, 409, 413)
"""Statuses of an answer that is about this payment."""
FAULTS = {
    401: ("unauthorized", 502, "set the seller's API key to one that this facilitator lists"),
    403: ("unauthorized", 502, "set the seller's API key to one that this facilitator lists"),
    404: ("not_a_facilitator", 502, "correct the facilitator's URL: no facilitator answers there"),
    429: ("rate_limited", 503, "ask the facilitator's operator for a higher rate"),
    503: ("busy", 503, "wait; if it lasts, read the facilitator's /health/ready"),
    0: ("no_answer", 503, "start the facilitator, or correct its URL"),
}
BROKEN = ("broken_answer", 502, "read the facilitator's log, or what answers in its place")


@dataclass(frozen=True)
class Fault:
    """Why a call gave no answer about the payment."""

    cause: str
    status: int
    remedy: str
    retry_after: int


@dataclass(frozen=True)
class End:
    """`state`: valid, settled, refused, used, pending or unavailable."""

    state: str
    reason: str = ""
    answer: Mapping[str, Any] = field(default_factory=dict)
    fault: Fault | None = None


def call(ask: Callable[[], Answer]) -> tuple[int, Any, Mapping[str, str]]:
    """Status, JSON and headers; status 0 where no answer came, None where it was not JSON."""
    try:
        given = ask()
        return given.status, given.json(), given.headers
    except (OSError, http.client.HTTPException):
        return 0, None, {}
    except (ValueError, RecursionError):
        return given.status, None, given.headers


def read(status: int, answer: Any, headers: Mapping[str, str], member: str) -> End:
    """An answer of /verify (`member` isValid) or /settle (success)."""
    given = answer if isinstance(answer, dict) and isinstance(answer.get(member), bool) else {}
    reason = str(given.get("errorReason") or given.get("invalidReason") or "")
    if status == 200 and given.get("isValid"):
        return End("valid", answer=given)
    if status == 200 and given.get("success") and isinstance(given.get("transaction"), str):
        return End("settled", answer=given)
    if member in given and not given[member] and status in ABOUT_PAYMENT:
        is_pending = re.search("pending$|status_unknown$", reason) or UNRECORDED.fullmatch(reason)
        is_end = KNOWN_END.fullmatch(reason) if member == "success" else reason
        if is_end and not is_pending:
            return End("used" if SETTLED_BEFORE.fullmatch(reason) else "refused", reason, given)
    known = 404 if 300 <= status < 400 else status
    cause, code, remedy = FAULTS.get(known, FAULTS[503] if given and status == 200 else BROKEN)
    wait = headers.get("retry-after", "")
    fault = Fault(cause, code, remedy, min(60, max(1, int(wait))) if wait.isascii() and wait.isdigit() else 1)
    return End("pending" if member == "success" else "unavailable", reason, given, fault)


def digest(value: str | bytes) -> str:
    return hashlib.sha256(value.encode() if isinstance(value, str) else value).hexdigest()


def canonical(value: Any) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"))


def identity(payment: Mapping[str, Any]) -> str:
    """One payment, whatever is sent beside it: a total of a channel, or the signed payload."""
    payload = payment["payload"]
    voucher, accepted = payload.get("voucher"), payment.get("accepted")
    is_channel = isinstance(accepted, dict) and accepted.get("scheme") == "batch-settlement"
    if is_channel and isinstance(voucher, dict):
        total = str(voucher.get("maxClaimableAmount"))
        return digest(f"voucher {str(voucher.get('channelId')).lower()} {total.lstrip('0')}")
    return digest(canonical(payload))


@dataclass(frozen=True)
class Sale:
    """One request with one payment."""

    payment: Mapping[str, Any]
    name: str
    bound: str
    key: str

    @staticmethod
    def of(payment: Mapping[str, Any], raw: bytes, method: str, url: str, body: bytes, service: str = "") -> Sale:
        """`service`: the seller's own name. A caller chooses the host in its URL, so the URL names no service."""
        asked = f"{method}\n{url}\n{digest(body)}"
        named = f"{digest(service)}\n" if service else ""
        key = digest(f"tollkeeper-sale-v1\n{named}{asked}\n{digest(raw)}")
        return Sale(payment, identity(payment), f"{digest(canonical(payment))} {digest(asked)}", key)


@dataclass
class Records:
    """What is stored first stays, whichever process stored it; without a folder, in memory for one process."""

    folder: Path | None
    kept: dict[str, str] = field(default_factory=dict)

    def get(self, name: str) -> str | None:
        if self.folder is None:
            return self.kept.get(name)
        file = self.folder / name
        return file.read_text() if file.exists() else None

    def put(self, name: str, value: str) -> str:
        if self.folder is None:
            return self.kept.setdefault(name, value)
        make_folder(self.folder)
        mine = self.folder / f"{name}.{os.getpid()}.{threading.get_ident()}"
        with mine.open("w") as file:
            file.write(value)
            file.flush()
            os.fsync(file.fileno())
        try:
            os.link(mine, self.folder / name)
        except FileExistsError:
            pass
        finally:
            mine.unlink()
        sync_folder(self.folder)
        return (self.folder / name).read_text()

    def claim(self, sale: Sale) -> str | None:
        """The key of the sale that has the payment, if it is this one."""
        *bound, key = self.put(f"{sale.name}.claim", f"{sale.bound} {sale.key}").split(" ")
        return key if " ".join(bound) == sale.bound else None

    def is_claimed(self, sale: Sale) -> bool | None:
        """None: by none; False: by another request."""
        claim = self.get(f"{sale.name}.claim")
        return None if claim is None else claim.startswith(f"{sale.bound} ")


def settle_until_known(settle: Callable[[], End], patience: float) -> End:
    """The same payment with the same key each time: one authorization is one settlement."""
    until = time.monotonic() + patience
    wait, transaction = 0.25, ""
    while True:
        end = settle()
        if end.state != "pending" or end.fault is None:
            return end
        named = end.answer.get("transaction")
        transaction = named if isinstance(named, str) and named else transaction
        left = until - time.monotonic()
        # A refused key stays refused until its owner acts.
        if left < wait or end.fault.cause == "unauthorized":
            shown = {"success": False, "errorReason": "settlement_pending", "transaction": transaction}
            return End("pending", "settlement_pending", shown, end.fault)
        time.sleep(min(left, max(wait, end.fault.retry_after if end.fault.retry_after > 1 else 0)))
        wait = min(2, 2 * wait)
