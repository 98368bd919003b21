"""A buyer: `Buyer(...).pay(url)` reads the 402, signs, keeps, sends, and follows a pending payment.

`signing.py` compares before it signs; `kept.py` keeps what was signed: a payment whose answer was lost is sent again,
never signed again while it may land.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field
from typing import Any, Callable, Mapping

from .batch import salt_of
from .kept import Kept, MemoryPayments, Payments, PaymentUnknown, Request, echoed, reason_of, send
from .layout import SignatureRefused, Terms
from .signing import BATCH, Signing
from .wire import ask as ask
from .wire import decode, encode, plain, terms_of

SPENT = re.compile("already_settled|authorization_spent|payment_already_used")
"""The money moved, or paid for another request by the seller's record; the page did not come."""


@dataclass(frozen=True)
class Paid:
    """The page, and the receipt of its settlement; `payment` is what was sent."""

    status: int
    body: bytes
    receipt: Mapping[str, Any] | None
    payment: str | None
    required: Mapping[str, Any] | None = None
    """What a 402 to the payment asks for."""
    reason: str = ""
    """Why it was refused."""

    @property
    def delivered(self) -> bool:
        return 200 <= self.status < 300


@dataclass
class Buyer(Signing):
    payments: Payments = field(default_factory=MemoryPayments)
    """Where signed payments are kept before they are sent; `FilePayments` outlives the process."""
    receive: Callable[[Paid], object] | None = None
    """Gets the page before its payment is forgotten; where it raises, the same call gets the page again."""

    def pay(
        self,
        url: str,
        attempts: int = 20,
        *,
        method: str | None = None,
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        name: str = "",
    ) -> Paid:
        """Requests `url` and pays on a 402. The payment is kept before it is sent; the next identical call sends it again.

        A new one is signed when none is kept, or when the kept one was refused and its last ledger has closed. `name`
        separates purchases of one request that are meant to be several. Raises `PaymentUnknown`, with the payment,
        where its answer stays unknown."""
        request = Request((method or ("GET" if body is None else "POST")).upper(), url, body, headers or {})
        key = request.key(self.account, name)
        kept = self.payments.get(key)
        paid = None if kept is None else self._deliver(key, kept, attempts)
        if paid is not None and (paid.delivered or SPENT.search(paid.reason)):
            return paid
        if paid is not None and paid.status == 402:
            required = paid.required
        else:
            unpaid = request.ask()
            if unpaid.status != 402:
                return paid or Paid(unpaid.status, unpaid.body, None, None, reason=reason_of(None, unpaid))
            required = terms_of(unpaid)
        accepted = self._choose(url, required)
        if kept is not None and paid is not None:
            self._corrected(paid, kept, accepted)
        before = self._signed(request, accepted) if kept is None or kept.before is None else kept.before
        for turn in (1, 2):
            kept = self._sign_and_keep(key, request, required, accepted, kept, before, name)
            paid = self._deliver(key, kept, attempts)
            if paid.delivered or turn == 2 or not self._corrected(paid, kept, accepted):
                return paid
            before = self._signed(request, accepted)
        raise AssertionError("the second turn returns")

    def resume(self, kept: Kept, attempts: int = 20) -> Paid:
        """Sends a kept payment again."""
        return self._deliver(kept.request.key(self.account, kept.name), kept, attempts)

    def send(self, url: str, payment: str, attempts: int = 20) -> Paid:
        """Sends a signed payment, also one whose answer was lost."""
        return self.resume(Kept(Request("GET", url), payment), attempts)

    def _choose(self, url: str, required: Any) -> Terms:
        if not isinstance(required, dict) or not isinstance(required.get("accepts"), list):
            raise SignatureRefused(f"{url} answers 402 without terms")
        named = (one for one in required["accepts"] if isinstance(one, dict))
        offered = [one for one in named if one.get("network") == self.network]
        if not offered:
            raise SignatureRefused(f"{url} takes nothing on {self.network}")
        first = None
        for one in offered:
            try:
                accepted = plain(one)
                self.check_terms(accepted)
                return accepted
            except SignatureRefused as refused:
                first = first or refused
            except (AttributeError, KeyError, TypeError, ValueError):
                first = first or SignatureRefused(f"{url} offers malformed terms")
        assert first is not None
        raise first

    def _salt(self, request: Request) -> str:
        return self.batch.salt or salt_of(request.origin)

    def _signed(self, request: Request, terms: Terms) -> int:
        return self.batch.signed(self.channel_of(terms, self._salt(request))) if terms["scheme"] == BATCH else 0

    def _corrected(self, paid: Paid, kept: Kept, accepted: Terms) -> bool:
        """Whether the seller's total was taken: it has to show a voucher of ours."""
        payload = decode(kept.payment)["payload"]
        voucher = payload.get("voucher")
        if voucher is None or accepted["scheme"] != BATCH:
            return False
        sent, before = int(voucher["maxClaimableAmount"]), kept.before or 0
        channel = self.channel_of(accepted, payload["channelConfig"]["salt"])
        return self.batch.note_corrected(channel, paid.required or {}, self._key, sent, before)

    def _sign_and_keep(
        self, key: str, request: Request, required: Any, accepted: Terms, earlier: Kept | None, before: int, name: str
    ) -> Kept:
        """Signs and keeps. `earlier`: the payment of the same request that was refused, and is replaced."""
        open_key = request.deposit_key(self.account)
        other = self.payments.get(open_key) if accepted["scheme"] == BATCH else None
        open_elsewhere = other is not None and (earlier is None or other.payment != earlier.payment)
        after = math.inf if open_elsewhere else (earlier and earlier.expires) or 0
        payload, expires = self.sign_until(accepted, after, self._salt(request))
        payment = {"x402Version": 2, "payload": payload, "accepted": accepted}
        payment |= {one: required[one] for one in ("resource", "extensions") if one in required}
        payment |= {"extensions": echoed(payment["extensions"])} if "extensions" in payment else {}
        kept = Kept(request, encode(payment), expires, before, name=name)
        if earlier is not None:
            self.payments.remove(key, earlier)
        if payload.get("type") == "deposit":
            if other is not None:
                self.payments.remove(open_key, other)
            self.payments.put_if_absent(open_key, kept)
        return self.payments.put_if_absent(key, kept)

    def _deliver(self, key: str, kept: Kept, attempts: int) -> Paid:
        """Sends what is kept, and notes how it ends."""
        sent = decode(kept.payment)
        is_channel = sent["accepted"]["scheme"] == BATCH
        channel = self.channel_of(sent["accepted"], sent["payload"]["channelConfig"]["salt"]) if is_channel else None
        try:
            answer, receipt, required = send(kept, attempts)
        except PaymentUnknown as unknown:
            if channel is not None:
                self.batch.note_cuts(channel, unknown.cuts)
            raise
        paid = Paid(answer.status, answer.body, receipt, kept.payment, required, reason_of(receipt, answer))
        settled = isinstance(receipt, dict) and receipt.get("success") is True
        if channel is not None:
            self.batch.note_cuts(channel, 0)
            if settled:
                self.batch.note_charged(channel, sent["accepted"], sent["payload"], receipt)
        if sent["payload"].get("type") == "deposit":
            self.payments.remove(kept.request.deposit_key(self.account), kept)
        if paid.delivered:
            if self.receive is not None:
                self.receive(paid)
            self.payments.remove(key, kept)
        return paid
