"""Requests and headers of x402, by the standard library."""

from __future__ import annotations

import base64
import http.client
import json
import re
import urllib.error
import urllib.request
from dataclasses import dataclass
from typing import Any, Mapping
from urllib.parse import urljoin, urlsplit

from .layout import SignatureRefused, Terms

CORRECTIVE = ("channelState", "voucherState")

USUAL_ASSETS = {
    "testnet": (
        "CBIELTK6YBZJU5UP2WWQEUCYKLPU6AUNZ2BQ4WWFEIE3USCIHMXQDAMA",
        "CDLZFC3SYJYDZT7K67VZ75HPJVIEUVNIXF47ZG2FB2RMQQVU2HHGCYSC",
    ),
    "pubnet": (
        "CCW67TSZV3SSS2HXMBQ5JFGCKJNXKZM7UQUWUZPUTHXSTZLEO7SJMI75",
        "CAS3J7GYLGXMF6TDJBBYYSE3HQ6BBSMLNUQ34T6TZMYMW2EVH34XOWMA",
    ),
}


def usual_assets(network: str) -> tuple[str, ...]:
    """USDC and XLM of a known network: a limit is in units of these, and one unit of another may be worth anything."""
    name = re.fullmatch("(?:stellar|ledger):(testnet|pubnet)", network)
    return () if name is None else USUAL_ASSETS[name[1]]


@dataclass(frozen=True)
class Answer:
    status: int
    headers: Mapping[str, str]
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body)


class _Unfollowed(urllib.request.HTTPRedirectHandler):
    """Returns a redirect as an answer: the standard library would send every header along to any origin."""

    def redirect_request(self, *_: Any) -> None:
        return None


_OPENER = urllib.request.build_opener(_Unfollowed)
REDIRECTS_MAX = 10


def ask(
    url: str, body: Any = None, headers: Mapping[str, str] | None = None, timeout: float = 60, method: str | None = None
) -> Answer:
    """The whole answer. `body`: bytes as they are, anything else as JSON.

    A redirect to another origin is followed without headers and body: a key or a payment stays at the origin that it
    is for. If the redirect would repeat a body there, or if that origin asks for a payment, it is the answer."""
    data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
    sent = {**({} if data is None or data is body else {"content-type": "application/json"}), **(headers or {})}
    verb, at, left = method or ("GET" if data is None else "POST"), url, None
    for _ in range(REDIRECTS_MAX):
        answer = _ask_once(verb, at, data, sent, timeout)
        location = answer.headers.get("location")
        if answer.status == 402 and left is not None:
            return left
        if answer.status not in (301, 302, 303, 307, 308) or location is None:
            return answer
        to = urljoin(at, location)
        if answer.status == 303 or (answer.status < 303 and verb == "POST"):
            verb, data = "HEAD" if verb == "HEAD" else "GET", None
            sent = {name: value for name, value in sent.items() if not name.lower().startswith("content-")}
        if origin_of(to) != origin_of(at):
            if data is not None or verb not in ("GET", "HEAD") or not to.startswith(("http://", "https://")):
                return answer
            sent, left = {}, left or answer
        at = to
    return left or answer


def origin_of(url: str) -> tuple[str, str | None, int | None]:
    at = urlsplit(url)
    return at.scheme, at.hostname, at.port or {"http": 80, "https": 443}.get(at.scheme)


def _ask_once(verb: str, url: str, data: bytes | None, headers: Mapping[str, str], timeout: float) -> Answer:
    request = urllib.request.Request(url, data=data, headers=dict(headers), method=verb)
    try:
        with _OPENER.open(request, timeout=timeout) as response:
            return _whole(request, Answer(response.status, _lower(response.headers), response.read()))
    except urllib.error.HTTPError as error:
        with error:
            return _whole(request, Answer(error.code, _lower(error.headers), error.read()))


def _whole(request: urllib.request.Request, answer: Answer) -> Answer:
    """The standard library takes headers that a cut ended for complete: then the answer has no length and no body."""
    has_length = "content-length" in answer.headers or "transfer-encoding" in answer.headers
    if not (has_length or answer.body or answer.status in (204, 304) or request.get_method() == "HEAD"):
        raise http.client.IncompleteRead(b"")
    return answer


def _lower(headers: Any) -> dict[str, str]:
    return {name.lower(): value for name, value in headers.items()}


def encode(value: Any) -> str:
    return base64.b64encode(json.dumps(value, separators=(",", ":")).encode()).decode()


def decode(header: str) -> Any:
    return json.loads(base64.b64decode(header))


def decoded(header: str | None) -> Any:
    """A header's JSON; None where it is no such thing."""
    try:
        return None if header is None else decode(header)
    except (ValueError, RecursionError):
        return None


def terms_of(answer: Answer) -> Any:
    """What a 402 asks for, by its header or else its body; None where it has neither."""
    if answer.status != 402:
        return None
    header = decoded(answer.headers.get("payment-required"))
    if header is not None:
        return header
    try:
        return answer.json()
    except (ValueError, RecursionError):
        return None


def plain(terms: Terms) -> Terms:
    """The terms that were offered, without what a correction adds."""
    extra = {name: value for name, value in (terms.get("extra") or {}).items() if name not in CORRECTIVE}
    return {**terms, "extra": extra} if "extra" in terms else terms


def prepare_at(
    terms: Terms, facilitator: str | None, api_key: str | None, allows_plain: bool, knows_ledger: bool
) -> tuple[str, Mapping[str, str]]:
    """The facilitator whose /prepare is requested, and the API key for it: a URL that the seller names gets no key.

    Its word for the newest ledger is not taken either: the buyer has to know that by an RPC of its own."""
    named = None if facilitator is not None else (terms.get("extra") or {}).get("prepareUrl")
    if named is None:
        key = {} if api_key is None else {"authorization": f"Bearer {api_key}"}
        return f"{facilitator or 'http://127.0.0.1:4022'}/prepare", key
    if not str(named).startswith(("https://", "http://") if allows_plain else "https://"):
        raise SignatureRefused("the seller names a /prepare that is not asked over HTTPS")
    if not knows_ledger:
        raise SignatureRefused("the newest ledger would be the word of one that the seller names")
    return str(named), {}
