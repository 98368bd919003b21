"""A seller: the 402, `/verify`, the work, `/settle`, the receipt. For plain WSGI and, by `handle`, for FastAPI.

A payment's work is computed once, stored before it is settled, and released for every repetition of the same request:
an answer that is lost on the way to the buyer is no lost sale. The steps are `sale.py`: while a payment's end is unknown
the buyer gets 503 with the payment's identity, never a new 402.
"""

from __future__ import annotations

import base64
import io
import json
import sys
import threading
import weakref
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Callable, Iterable, Mapping

from .sale import End, Records, Sale, call, read, settle_until_known
from .wire import ask, encode

MESSAGES = {
    "pending": "The payment may have settled, and its end is not known yet. Send the same request with the same payment "
    "again; do not sign another.",
    "used": "The payment has paid for another request, or this seller has no record that it was for this one. Do not sign "
    "another for the same page before the seller has answered you.",
    "unavailable": "The seller's facilitator gives no verdict. Nothing was settled; send the same payment again.",
}


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


class Flight:
    """The requests of one payment in this process, one at a time; those that waited share an end that is not known."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.unknown: tuple[str, Response] | None = None


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
    service: str = ""
    """Names this service among those of one owner that keep their sales apart; default the description."""
    api_key: str | None = None
    folder: Path | None = None
    """Where sales are kept; None: in memory, for one process."""
    extra: Mapping[str, Any] = field(default_factory=lambda: {"areFeesSponsored": True})
    patience: float = 15
    """Seconds for which an unanswered settle is repeated before the buyer gets 503."""
    log: Callable[[str], None] = field(default_factory=lambda: lambda line: print(line, file=sys.stderr, flush=True))
    """Gets one line when a cause begins for which the facilitator gives no answer."""
    counters: Counter[str] = field(default_factory=Counter)
    """Calls that the facilitator did not answer, by cause."""
    _flights: weakref.WeakValueDictionary[str, Flight] = field(default_factory=weakref.WeakValueDictionary)
    _guard: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        self._records = Records(self.folder)
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

    def handle(
        self, url: str, payment: str | None, work: Callable[[], Work], method: str = "GET", body: bytes = b""
    ) -> Response:
        """The answer to one request: `payment` is its PAYMENT-SIGNATURE header, `body` what it asks with."""
        if payment is None:
            return self._refuse(url, "payment required")
        try:
            raw = base64.b64decode(payment)
            payload = json.loads(raw)
            if not isinstance(payload["payload"], dict):
                raise TypeError
            sale = Sale.of(payload, raw, method, url, body, self.service or self.description)
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            return self._refuse(url, "PAYMENT-SIGNATURE is not base64 of a payment")
        with self._guard:
            flight = self._flights.setdefault(sale.name, Flight())
        before = flight.unknown
        with flight.lock:
            shared = flight.unknown
            if shared is not None and shared is not before and shared[0] == sale.bound:
                return shared[1]
            answer = self._sell(url, sale, work)
            if answer.status >= 502:
                flight.unknown = (sale.bound, answer)
            return answer

    def _sell(self, url: str, sale: Sale, work: Callable[[], Work]) -> Response:
        records, name = self._records, sale.name
        claimed = records.is_claimed(sale)
        if claimed is False:
            return self._withheld(sale, End("used", "payment_already_used"))
        made = records.get(f"{name}.work") if claimed else None
        sold = records.get(f"{name}.receipt")
        if made is None:
            end = self._call("verify", "isValid", sale, sale.key, self.terms)
            if end.state != "valid":
                return self._refuse(url, end.reason) if end.state == "refused" else self._withheld(sale, end)
            if records.claim(sale) is None:
                return self._withheld(sale, End("used", "payment_already_used"))
            done = work()
            made = records.put(f"{name}.work", json.dumps([done.body, done.amount]))
        body, amount = json.loads(made)
        if sold is None:
            key = records.claim(sale) or sale.key
            # Always the terms of the first settle: the seller's may have changed since.
            now = self.terms if amount is None else {**self.terms, "amount": amount}
            terms = json.loads(records.put(f"{name}.terms", json.dumps(now)))
            end = settle_until_known(lambda: self._call("settle", "success", sale, key, terms), self.patience)
            if end.state == "refused":
                return self._refuse(url, end.reason, end.answer)
            if end.state != "settled":
                return self._withheld(sale, end)
            # One transaction of the ledger releases one purchase; a voucher has no transaction.
            transaction = end.answer["transaction"].replace("/", "-")
            if transaction and self.scheme != "batch-settlement" and records.put(f"tx.{transaction}", name) != name:
                return self._withheld(sale, End("used", "payment_already_used", end.answer))
            sold = records.put(f"{name}.receipt", json.dumps(end.answer))
        headers = {
            "content-type": "application/json",
            "cache-control": "private, no-store",
            "payment-response": encode(json.loads(sold)),
        }
        return Response(200, headers, json.dumps(body).encode())

    def _call(self, route: str, member: str, sale: Sale, key: str, terms: Mapping[str, Any]) -> End:
        body = {"x402Version": 2, "paymentPayload": sale.payment, "paymentRequirements": terms}
        end = read(*call(lambda: self._ask(route, body, key)), member)
        if end.fault is not None:
            name = f"{route}_{end.fault.cause}"
            self.counters[name] += 1
            if self.counters[name] == 1 or self.counters[name] % 1_000 == 0:
                told = f"facilitator {self.facilitator} gave no answer to {route}: {end.fault.cause}"
                self.log(f"{told} ({self.counters[name]}); {end.fault.remedy}")
        return end

    def _ask(self, route: str, body: Any, key: str | None = None) -> Any:
        headers = {} if self.api_key is None else {"authorization": f"Bearer {self.api_key}"}
        sent = headers if key is None else {**headers, "idempotency-key": key}
        return ask(f"{self.facilitator}/{route}", body, sent, timeout=40)

    def _withheld(self, sale: Sale, end: End) -> Response:
        """Neither released nor refused, with the payment's identity: 409, 503 or 502."""
        transaction = end.answer.get("transaction") or ""
        wait = {} if end.fault is None else {"retry-after": str(end.fault.retry_after)}
        reason = end.reason if end.fault is None or end.state == "pending" else f"facilitator_{end.fault.cause}"
        payment = {"id": sale.name, "scheme": self.scheme, "network": self.network}
        body = {
            "error": reason,
            "message": MESSAGES[end.state],
            "payment": payment | ({"transaction": transaction} if transaction else {}),
        }
        headers = {"content-type": "application/json", "cache-control": "private, no-store", **wait}
        if end.answer:
            headers["payment-response"] = encode({"network": self.network, **end.answer})
        status = 409 if end.fault is None else 503 if end.state == "pending" else end.fault.status
        return Response(status, headers, json.dumps(body).encode())

    def _refuse(self, url: str, error: str, receipt: Any = None) -> Response:
        resource = {"url": url, "description": self.description, "mimeType": "application/json"}
        body = {"x402Version": 2, "error": error, "resource": resource, "accepts": [self.terms]}
        headers = {"content-type": "application/json", "cache-control": "no-store", "payment-required": encode(body)}
        if receipt is not None:
            headers["payment-response"] = encode(receipt)
        return Response(402, headers, json.dumps(body).encode())


Environ = Mapping[str, Any]
STATUSES = {
    200: "OK",
    400: "Bad Request",
    402: "Payment Required",
    409: "Conflict",
    411: "Length Required",
    413: "Content Too Large",
    502: "Bad Gateway",
    503: "Service Unavailable",
}


BODY_MAX = 8 * 2**20
"""Bytes of a body, which is read before anything is paid."""


def _read_body(environ: Environ) -> bytes | int:
    """The whole body, or the status of a refusal: a sale of a part would charge for a request that was never made."""
    if environ.get("wsgi.input_terminated"):
        whole = bytearray()
        while len(whole) <= BODY_MAX and (part := environ["wsgi.input"].read(BODY_MAX + 1 - len(whole))):
            whole += part
        return bytes(whole) if len(whole) <= BODY_MAX else 413
    # A server that passes a chunked body on by its framing alone does not say where it ends.
    if environ.get("HTTP_TRANSFER_ENCODING"):
        return 411
    length = environ.get("CONTENT_LENGTH") or "0"
    if not (length.isascii() and length.isdigit()):
        return 400
    if len(length) > 15 or int(length) > BODY_MAX:
        return 413
    body = environ["wsgi.input"].read(int(length))
    return body if len(body) == int(length) else 400


def wsgi(
    seller: Seller, path: str, work: Callable[[Environ], Work], method: str = "GET"
) -> Callable[..., Iterable[bytes]]:
    """A WSGI application that sells one path. The body that it was asked with is `wsgi.input` for the work, too."""

    def application(environ: Environ, start_response: Callable[..., Any]) -> Iterable[bytes]:
        if environ["PATH_INFO"] != path or environ["REQUEST_METHOD"] != method:
            start_response("404 Not Found", [])
            return [b""]
        query = f"?{environ['QUERY_STRING']}" if environ.get("QUERY_STRING") else ""
        host = environ.get("HTTP_HOST") or f"{environ['SERVER_NAME']}:{environ['SERVER_PORT']}"
        url = f"{environ['wsgi.url_scheme']}://{host}{path}{query}"
        body = b"" if method == "GET" else _read_body(environ)
        if isinstance(body, int):
            start_response(f"{body} {STATUSES[body]}", [("content-type", "text/plain")])
            return [b"nothing was sold: the body of the request is not whole, has no content-length, or is too long"]
        asked = {**environ, "wsgi.input": io.BytesIO(body)}
        header = environ.get("HTTP_PAYMENT_SIGNATURE")
        answer = seller.handle(url, header, lambda: work(asked), method, body)
        start_response(f"{answer.status} {STATUSES[answer.status]}", list(answer.headers.items()))
        return [answer.body]

    return application
