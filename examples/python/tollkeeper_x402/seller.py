"""A seller: the 402, `/verify`, the work, `/settle`, the receipt. For plain WSGI and, by `handle`, for FastAPI.

A payment's work is computed once, stored before it is settled, and released for every repetition of the same request:
an answer that is lost on the way to the buyer is no lost sale. Released on `success: true` alone.
"""

from __future__ import annotations

import hashlib
import json
import os
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Callable, Iterable, Mapping

from .buyer import ask, decode, encode

PENDING = ("settlement_pending",) + tuple(
    f"settle_{dialect}_{reason}"
    for dialect in ("ledger", "stellar")
    for reason in ("transaction_status_unknown", "temporarily_unavailable")
)


@dataclass(frozen=True)
class Work:
    """What is sold: a JSON body, and what it costs where that is less than the maximum (`upto`)."""

    body: Any
    amount: str | None = None


@dataclass(frozen=True)
class Response:
    status: int
    headers: Mapping[str, str]
    body: bytes


@dataclass
class Seller:
    pay_to: str
    asset: str
    amount: str
    """Price, or the maximum of `upto`, in atomic units."""
    facilitator: str = "http://127.0.0.1:4022"
    network: str = "stellar:testnet"
    scheme: str = "exact"
    max_timeout_seconds: int = 60
    description: str = ""
    api_key: str | None = None
    folder: Path | None = None
    """Where sales are kept; None: in memory, for one process."""
    extra: Mapping[str, Any] = field(default_factory=lambda: {"areFeesSponsored": True})
    _kept: dict[str, str] = field(default_factory=dict)
    _locks: dict[str, threading.Lock] = field(default_factory=dict)
    _guard: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        if self.scheme == "upto":
            kinds = self._ask("supported", None).json()["kinds"]
            ours = (kind for kind in kinds if kind["scheme"] == "upto" and kind["network"] == self.network)
            self.extra = next(ours)["extra"]

    @property
    def terms(self) -> dict[str, Any]:
        return {
            "scheme": self.scheme,
            "network": self.network,
            "asset": self.asset,
            "amount": self.amount,
            "payTo": self.pay_to,
            "maxTimeoutSeconds": self.max_timeout_seconds,
            "extra": dict(self.extra),
        }

    def handle(self, url: str, payment: str | None, work: Callable[[], Work]) -> Response:
        """The answer to one request: `payment` is its PAYMENT-SIGNATURE header."""
        if payment is None:
            return self._refuse(url, "payment required")
        try:
            payload = decode(payment)
            transaction = payload["payload"]["transaction"]
        except (ValueError, KeyError, TypeError):
            return self._refuse(url, "PAYMENT-SIGNATURE is not base64 of a payment")
        name = hashlib.sha256(f"{transaction} {url}".encode()).hexdigest()
        with self._guard:
            lock = self._locks.setdefault(name, threading.Lock())
        with lock:
            return self._sell(url, payload, name, work)

    def _sell(self, url: str, payload: Any, name: str, work: Callable[[], Work]) -> Response:
        made, sold = self._get(f"{name}.work"), self._get(f"{name}.receipt")
        if made is None:
            try:
                verified = self._ask("verify", self._body(payload)).json()
            except (OSError, ValueError):
                return Response(503, {"retry-after": "1"}, b"")
            if not verified.get("isValid"):
                return self._refuse(url, verified.get("invalidReason", "invalid payment"))
            done = work()
            made = self._put(f"{name}.work", json.dumps([done.body, done.amount]))
        body, amount = json.loads(made)
        if sold is None:
            receipt = self._settle(payload, amount)
            if not receipt.get("success"):
                return self._refuse(url, receipt.get("errorReason", "not settled"), receipt)
            # One transaction of the ledger releases one thing. What a facilitator names stays in the folder.
            if self._put(f"tx.{receipt['transaction']}".replace("/", "-"), name) != name:
                return self._refuse(url, "this payment was for another request")
            sold = self._put(f"{name}.receipt", json.dumps(receipt))
        headers = {"content-type": "application/json", "payment-response": encode(json.loads(sold))}
        return Response(200, headers, json.dumps(body).encode())

    def _settle(self, payload: Any, amount: str | None) -> Any:
        """Settling the identical payment again is always safe: one authorization is one settlement."""
        answer: Any = {"success": False, "errorReason": PENDING[0], "transaction": ""}
        for attempt in range(20):
            try:
                answer = self._ask("settle", self._body(payload, amount)).json()
                if str(answer.get("errorReason")).endswith("_already_settled"):
                    return self._recorded(answer)
            except (OSError, ValueError):
                pass
            if answer.get("success") or answer.get("errorReason") not in PENDING:
                return answer
            time.sleep(min(1, 0.2 * (attempt + 1)))
        return answer

    def _recorded(self, answer: Any) -> Any:
        """A success whose answer was lost: the facilitator's record of this seller's own settlements proves it."""
        found = self._ask(f"settlements?hash={answer.get('transaction')}", None)
        items = found.json()["items"] if found.status == 200 else []
        ours = [one for one in items if one["payTo"] == self.pay_to and one["asset"] == self.asset]
        if not ours or ours[0]["status"] != "success":
            return answer
        one = ours[0]
        names = ("payer", "amount")
        receipt = {"success": True, "transaction": answer["transaction"], "network": self.network}
        return receipt | {name: one[name] for name in names}

    def _body(self, payload: Any, amount: str | None = None) -> dict[str, Any]:
        required = self.terms if amount is None else {**self.terms, "amount": amount}
        return {"x402Version": 2, "paymentPayload": payload, "paymentRequirements": required}

    def _ask(self, route: str, body: Any) -> Any:
        headers = {} if self.api_key is None else {"authorization": f"Bearer {self.api_key}"}
        return ask(f"{self.facilitator}/{route}", body, headers)

    def _refuse(self, url: str, error: str, receipt: Any = None) -> Response:
        resource = {"url": url, "description": self.description, "mimeType": "application/json"}
        body = {"x402Version": 2, "error": error, "resource": resource, "accepts": [self.terms]}
        headers = {"content-type": "application/json", "payment-required": encode(body)}
        if receipt is not None:
            headers["payment-response"] = encode(receipt)
        return Response(402, headers, json.dumps(body).encode())

    def _get(self, name: str) -> str | None:
        if self.folder is None:
            return self._kept.get(name)
        file = self.folder / name
        return file.read_text() if file.exists() else None

    def _put(self, name: str, value: str) -> str:
        """What is stored first stays, whichever process stored it."""
        if self.folder is None:
            return self._kept.setdefault(name, value)
        self.folder.mkdir(parents=True, exist_ok=True)
        mine = self.folder / f"{name}.{os.getpid()}.{threading.get_ident()}"
        mine.write_text(value)
        try:
            os.link(mine, self.folder / name)
        except FileExistsError:
            pass
        finally:
            mine.unlink()
        return (self.folder / name).read_text()


Environ = Mapping[str, Any]


def wsgi(seller: Seller, path: str, work: Callable[[Environ], Work]) -> Callable[..., Iterable[bytes]]:
    """A WSGI application that sells one path."""

    def application(environ: Environ, start_response: Callable[..., Any]) -> Iterable[bytes]:
        if environ["PATH_INFO"] != path or environ["REQUEST_METHOD"] != "GET":
            start_response("404 Not Found", [])
            return [b""]
        query = f"?{environ['QUERY_STRING']}" if environ.get("QUERY_STRING") else ""
        url = f"{environ['wsgi.url_scheme']}://{environ['HTTP_HOST']}{path}{query}"
        answer = seller.handle(url, environ.get("HTTP_PAYMENT_SIGNATURE"), lambda: work(environ))
        words = {200: "200 OK", 402: "402 Payment Required", 503: "503 Service Unavailable"}
        start_response(words[answer.status], list(answer.headers.items()))
        return [answer.body]

    return application
