"""Signed payments, kept before they are sent: one whose answer was lost is sent again, never signed again.

A kept payment is the only one for its request while it may still land. It ends when its page arrives, or when its last
ledger has closed and the seller still refuses it. Files have one form for JavaScript, Python and bash.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import http.client
import json
import os
import re
import tempfile
import time
import uuid
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Mapping, Protocol
from urllib.parse import urlsplit

from .disk import make_folder, sync_folder
from .wire import Answer, ask, decoded, terms_of

CUTS_MAX = 3
"""Cut answers in a row that stop a buyer."""
PAUSE_MAX = 30.0
PENDING = re.compile("settlement_pending|status_unknown|temporarily_unavailable")


@dataclass(frozen=True)
class Request:
    method: str
    url: str
    body: bytes | None = None
    headers: Mapping[str, str] = field(default_factory=dict)

    def key(self, payer: str, name: str = "") -> str:
        """The same for an identical call."""
        body = hashlib.sha256(self.body or b"").hexdigest()
        return hashlib.sha256("\n".join((payer, self.method, self.url, body, name)).encode()).hexdigest()

    @property
    def origin(self) -> str:
        at = urlsplit(self.url)
        return f"{at.scheme}://{at.netloc}".lower()

    def deposit_key(self, payer: str) -> str:
        """Of one buyer and one seller: a deposit that has no answer yet."""
        return hashlib.sha256(f"deposit\n{payer}\n{self.origin}".encode()).hexdigest()

    def ask(self, payment: str | None = None) -> Answer:
        signed = {} if payment is None else {"payment-signature": payment}
        return ask(self.url, self.body, {**self.headers, **signed}, method=self.method)


@dataclass(frozen=True)
class Kept:
    request: Request
    payment: str
    """The value of PAYMENT-SIGNATURE."""
    expires: int | None = None
    """The last ledger in which it can land; a voucher has none."""
    before: int | None = None
    """Of a channel: the most that was signed before this voucher."""
    name: str = ""
    file: str | None = None

    def dump(self) -> str:
        at = self.request
        body = None if at.body is None else base64.b64encode(at.body).decode()
        before = None if self.before is None else str(self.before)
        fields = {"method": at.method, "url": at.url, "headers": dict(at.headers), "body": body}
        fields |= {"payment": self.payment, "expires": self.expires, "before": before, "name": self.name or None}
        return json.dumps({name: value for name, value in fields.items() if value is not None})

    @staticmethod
    def load(text: str, file: str | None = None) -> "Kept":
        given = json.loads(text)
        body = None if given.get("body") is None else base64.b64decode(given["body"])
        request = Request(given["method"], given["url"], body, given.get("headers") or {})
        before = None if given.get("before") is None else int(given["before"])
        return Kept(request, given["payment"], given.get("expires"), before, given.get("name", ""), file)


class PaymentUnknown(Exception):
    """The answer was lost or is pending: the payment may have landed, and no other one is signed for its request."""

    def __init__(self, kept: Kept, why: str, cuts: int = 0) -> None:
        super().__init__(f"{why}; the payment may have landed and is kept: send the same one again")
        self.kept, self.cuts = kept, cuts


class Payments(Protocol):
    def get(self, key: str) -> Kept | None: ...

    def put_if_absent(self, key: str, kept: Kept) -> Kept:
        """What is kept: the argument, or the payment that another call kept first."""

    def remove(self, key: str, kept: Kept) -> None:
        """Leaves another payment that has taken the place of this one."""


class MemoryPayments:
    """Lost with the process."""

    def __init__(self) -> None:
        self._kept: dict[str, Kept] = {}

    def get(self, key: str) -> Kept | None:
        return self._kept.get(key)

    def put_if_absent(self, key: str, kept: Kept) -> Kept:
        return self._kept.setdefault(key, kept)

    def remove(self, key: str, kept: Kept) -> None:
        if key in self._kept and self._kept[key].payment == kept.payment:
            del self._kept[key]


class FilePayments:
    """One file a payment, on the disk before the payment is sent."""

    def __init__(self, folder: str | Path | None = None) -> None:
        self.folder = Path(folder or os.environ.get("PAYMENTS") or Path.home() / ".x402-payments")

    def _file(self, key: str) -> Path:
        return self.folder / f"{key}.json"

    def get(self, key: str) -> Kept | None:
        try:
            return Kept.load(self._file(key).read_text(), str(self._file(key).absolute()))
        except FileNotFoundError:
            return None

    def put_if_absent(self, key: str, kept: Kept) -> Kept:
        make_folder(self.folder, 0o700)
        draft = tempfile.NamedTemporaryFile("w", dir=self.folder, suffix=".draft", delete=False)
        with draft:
            draft.write(kept.dump())
            draft.flush()
            os.fsync(draft.fileno())
        try:
            # Creating a link is atomic, and never replaces an existing one.
            with contextlib.suppress(FileExistsError):
                os.link(draft.name, self._file(key))
        finally:
            os.unlink(draft.name)
        sync_folder(self.folder)
        return self.get(key) or kept

    def remove(self, key: str, kept: Kept) -> None:
        stored = self.get(key)
        if stored is not None and stored.payment == kept.payment:
            self._file(key).unlink(missing_ok=True)


def reason_of(receipt: Any, answer: Answer) -> str:
    """Why a payment was refused: by its receipt, by a 402, by the 409 of a used payment, or by a redirect."""
    refused = terms_of(answer)
    if answer.status == 409:
        with contextlib.suppress(ValueError, RecursionError):
            refused = answer.json()
    texts = (one.get(name) for one, name in ((receipt, "errorReason"), (refused, "error")) if isinstance(one, dict))
    elsewhere = answer.headers.get("location") if 300 <= answer.status < 400 else None
    return next((str(text) for text in texts if text), "" if elsewhere is None else f"redirects to {elsewhere}")


def send(kept: Kept, attempts: int = 20) -> tuple[Answer, Any, Any]:
    """The answer to a kept payment, its receipt and the terms of a refusal; raises `PaymentUnknown`."""
    cuts = 0
    for attempt in range(1, attempts + 1):
        wait = 1.0
        try:
            answer = kept.request.ask(kept.payment)
        except (OSError, http.client.HTTPException) as error:
            cuts, why = cuts + 1, f"the answer was lost ({error})"
        else:
            receipt, required = decoded(answer.headers.get("payment-response")), terms_of(answer)
            reason = reason_of(receipt, answer)
            late = answer.status >= 500 or answer.status in (408, 425, 429) or PENDING.search(reason)
            if 200 <= answer.status < 300 or not late:
                return answer, receipt, required
            # 503 comes from a seller that waits for the ledger; others from a gateway or seller that lost its answer.
            cuts = cuts + 1 if answer.status >= 500 and answer.status != 503 else 0
            why = f"the seller answers {answer.status} {reason}".strip()
            after = answer.headers.get("retry-after", "")
            wait = min(float(after), PAUSE_MAX) if re.fullmatch("[0-9]{1,6}", after) else wait
        if cuts >= CUTS_MAX or attempt == attempts:
            raise PaymentUnknown(kept, why, cuts)
        time.sleep(wait)
    raise AssertionError("the last turn raises")


def echoed(extensions: Any) -> Any:
    """The extensions of a 402 as a payment echoes them, with an identifier where one is required."""
    declared = extensions.get("payment-identifier") if isinstance(extensions, dict) else None
    info = declared.get("info", declared) if isinstance(declared, dict) else None
    if not isinstance(info, dict) or info.get("required") is not True or "id" in info:
        return extensions
    named = {**info, "id": uuid.uuid4().hex}
    return {**extensions, "payment-identifier": {**declared, "info": named} if "info" in declared else named}
