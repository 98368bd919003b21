"""Requests and headers of x402, by the standard library."""

from __future__ import annotations

import base64
import json
import urllib.error
import urllib.request
from dataclasses import dataclass
from typing import Any, Mapping

from .layout import Terms

CORRECTIVE = ("channelState", "voucherState")


@dataclass(frozen=True)
class Answer:
    status: int
    headers: Mapping[str, str]
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body)


def ask(url: str, body: Any = None, headers: Mapping[str, str] | None = None, timeout: float = 60) -> Answer:
    data = None if body is None else json.dumps(body).encode()
    sent = {**({} if data is None else {"content-type": "application/json"}), **(headers or {})}
    request = urllib.request.Request(url, data=data, headers=sent)
    try:
        with urllib.request.urlopen(request, timeout=timeout) as response:
            return Answer(response.status, _lower(response.headers), response.read())
    except urllib.error.HTTPError as error:
        with error:
            return Answer(error.code, _lower(error.headers), error.read())


def _lower(headers: Any) -> dict[str, str]:
    return {name.lower(): value for name, value in headers.items()}


def encode(value: Any) -> str:
    return base64.b64encode(json.dumps(value, separators=(",", ":")).encode()).decode()


def decode(header: str) -> Any:
    return json.loads(base64.b64decode(header))


def terms_of(answer: Answer) -> Any:
    """What a 402 asks for."""
    header = answer.headers.get("payment-required")
    return answer.json() if header is None else decode(header)


def plain(terms: Terms) -> Terms:
    """The terms that were offered, without what a correction adds."""
    extra = {name: value for name, value in (terms.get("extra") or {}).items() if name not in CORRECTIVE}
    return {**terms, "extra": extra} if "extra" in terms else terms
