"""A buyer: `Buyer(...).pay(url)` reads the 402, compares, signs, sends, and follows a pending payment.

It asks the facilitator's `/prepare` what to sign, builds the same bytes from the seller's terms and its own settings,
and signs only when they are equal. It trusts no part of the answer but the newest ledger's number, and not even that
where `rpc_url` names a ledger RPC.
"""

from __future__ import annotations

import math
import re
import time
from dataclasses import dataclass, field
from typing import Any, Callable, Mapping

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from .batch import Batch, Channel, Deposit
from .layout import ACCOUNT, SEED, Choices, Layout, SignatureRefused, Terms, account_signature, layout, sealed
from .layout import strkey, strkey_text
from .wire import ask, decode, encode, plain, prepare_at, terms_of, usual_assets

TESTNET = "Test SDF Network ; September 2015"
SECONDS_PER_LEDGER = 5
LEDGERS_APART = 3
BATCH = "batch-settlement"


@dataclass(frozen=True)
class Paid:
    """The page, and the receipt of its settlement; `payment` is what was sent, to be sent again after a lost answer."""

    status: int
    body: bytes
    receipt: Mapping[str, Any] | None
    payment: str | None
    required: Mapping[str, Any] | None = None
    """What a 402 to the payment asks for."""


@dataclass
class Buyer:
    secret: str
    """Seed of the account that pays, S…"""
    max_amount: int
    """The most for one request, atomic units."""
    facilitator: str | None = None
    """Its /prepare is requested; None: that of the terms (`extra.prepareUrl`, HTTPS), else this machine's."""
    network: str = "stellar:testnet"
    passphrase: str = TESTNET
    assets: tuple[str, ...] | None = None
    """Contracts of the assets to pay in; None: USDC and XLM of the network."""
    max_timeout: int = 300
    """Seconds, the longest that a signature may live."""
    upto_contracts: tuple[str, ...] = ()
    """Settlement contracts that this buyer knows; `upto` is refused for any other."""
    batch: Batch = field(default_factory=Batch)
    """Channels of `batch-settlement`; refused where it names no contract."""
    rpc_url: str | None = None
    """A ledger RPC, asked for its newest ledger alone."""
    api_key: str | None = None
    """For `facilitator` or this machine's, never for one that a seller names."""
    allows_plain: bool = False
    """Whether one that a seller names may be asked without TLS."""

    def __post_init__(self) -> None:
        version, seed = strkey(self.secret)
        if version != SEED:
            raise ValueError("the secret is no seed (S…)")
        self._key = Ed25519PrivateKey.from_private_bytes(seed)
        self._public = self._key.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)
        self.account = strkey_text(ACCOUNT, self._public)

    def check_terms(self, terms: Terms) -> None:
        if terms["network"] != self.network:
            raise SignatureRefused("the terms are for another network")
        if not re.fullmatch("[1-9][0-9]{0,38}", terms["amount"]) or int(terms["amount"]) > self.max_amount:
            raise SignatureRefused("the price is above the limit")
        if terms["asset"] not in (usual_assets(self.network) if self.assets is None else self.assets):
            raise SignatureRefused("the asset is not one that this buyer pays in")
        time = terms.get("maxTimeoutSeconds")
        if type(time) is not int or not 1 <= time <= self.max_timeout:
            raise SignatureRefused(f"the terms' time is not of 1 to {self.max_timeout} seconds")
        if terms["scheme"] == "upto" and terms.get("extra", {}).get("uptoContract") not in self.upto_contracts:
            raise SignatureRefused("the settlement contract is not one that this buyer knows")
        if terms["scheme"] == BATCH:
            self.batch.check_terms(terms)

    def _choices(self, terms: Terms, given: Mapping[str, Any]) -> Choices:
        newest, apart = given["expires"]["latestLedger"], 0
        if self.rpc_url is not None:
            asked = ask(self.rpc_url, {"jsonrpc": "2.0", "id": 1, "method": "getLatestLedger"})
            newest, apart = asked.json()["result"]["sequence"], LEDGERS_APART
        if type(newest) is not int:
            raise SignatureRefused("the newest ledger is not known")
        chosen = given.get("chosen", {})
        choices = Choices(
            nonce=int(given["nonce"]),
            expires=int(given["expires"]["ledger"]),
            valid_after=int(chosen.get("validAfter", newest)),
            settlement_id=bytes.fromhex(chosen.get("settlementId", "")),
        )
        if choices.expires > newest + math.ceil(terms["maxTimeoutSeconds"] / SECONDS_PER_LEDGER) + apart:
            raise SignatureRefused("the signature would live longer than the terms say")
        if choices.valid_after > newest + LEDGERS_APART:
            raise SignatureRefused("the signature would begin later")
        if terms["scheme"] == "upto" and len(choices.settlement_id) != 32:
            raise SignatureRefused("the facilitator gives no settlement id")
        return choices

    def sign(self, terms: Terms) -> dict[str, Any]:
        """The signed payload of one payment. Raises `SignatureRefused` before anything is signed."""
        self.check_terms(terms)
        if terms["scheme"] != BATCH:
            built = lambda chosen: layout(terms, self.account, chosen, self.passphrase)  # noqa: E731
            return {"transaction": self._sign_call(terms, {}, built)}
        return self.batch.payload(
            terms, self._channel(terms), self._key, self.max_amount, lambda asked: self._sign_deposit(terms, asked)
        )

    def _channel(self, terms: Terms) -> Channel:
        return self.batch.channel(terms, self.account, self.passphrase)

    def _sign_deposit(self, terms: Terms, asked: Deposit) -> str:
        def built(chosen: Choices) -> Layout:
            return sealed(asked.called, asked.authorized, self.account, chosen, self.passphrase)

        return self._sign_call(terms, {"choices": asked.choices}, built, asked.voucher_hash)

    def _sign_call(
        self, terms: Terms, more: Mapping[str, Any], build: Callable[[Choices], Layout], beside: bytes | None = None
    ) -> str:
        """Asks /prepare, compares, and signs: the envelope with the signature in it."""
        body = {"x402Version": 2, "paymentRequirements": terms, "payer": self.account, **more}
        knows_ledger = self.rpc_url is not None
        url, headers = prepare_at(terms, self.facilitator, self.api_key, self.allows_plain, knows_ledger)
        answer = ask(url, body, headers)
        if answer.status != 200:
            raise RuntimeError(f"/prepare answers {answer.status}: {answer.body.decode()}")
        given = answer.json()
        try:
            built = build(self._choices(terms, given))
            same = given["toSign"]["hash"] == built.hash.hex() and given["transaction"] == built.envelope()
            same = same and (beside is None or given["toSign"]["beside"]["voucher"]["hash"] == beside.hex())
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise SignatureRefused("the facilitator's answer is incomplete") from error
        if not same:
            raise SignatureRefused("the facilitator asks for another signature than the terms do")
        return built.envelope(account_signature(self._public, self._key.sign(built.hash)))

    def _pays(self, terms: Terms) -> bool:
        try:
            self.check_terms(terms)
        except SignatureRefused:
            return False
        return True

    def pay(self, url: str, attempts: int = 20) -> Paid:
        """Gets `url` and pays on a 402. A pending payment is sent again, never signed again."""
        unpaid = ask(url)
        if unpaid.status != 402:
            return Paid(unpaid.status, unpaid.body, None, None)
        required = terms_of(unpaid)
        offered = [plain(one) for one in required["accepts"] if one["network"] == self.network]
        if not offered:
            raise SignatureRefused(f"{url} takes nothing on {self.network}")
        accepted = next(filter(self._pays, offered), offered[0])
        self.check_terms(accepted)
        before = self.batch.signed(self._channel(accepted)) if accepted["scheme"] == BATCH else 0
        for corrected in (False, True):
            payload = self.sign(accepted)
            payment = {"x402Version": 2, "payload": payload, "accepted": accepted}
            payment |= {name: required[name] for name in ("resource", "extensions") if name in required}
            paid = self.send(url, encode(payment), attempts)
            if accepted["scheme"] != BATCH:
                return paid
            channel = self._channel(accepted)
            if paid.receipt is not None and paid.receipt.get("success") is True:
                self.batch.note_charged(channel, payload, paid.receipt)
                return paid
            # The seller's total is another: once more, when it shows a voucher of ours.
            sent = int(payload["voucher"]["maxClaimableAmount"])
            if corrected or not self.batch.note_corrected(channel, paid.required or {}, self._key, sent, before):
                return paid
        raise AssertionError("the second turn returns")

    def send(self, url: str, payment: str, attempts: int = 20) -> Paid:
        """Sends a signed payment, also one whose answer was lost."""
        while True:
            attempts -= 1
            answer = ask(url, headers={"payment-signature": payment})
            header = answer.headers.get("payment-response")
            receipt = None if header is None else decode(header)
            reason = "" if receipt is None else receipt.get("errorReason") or ""
            if attempts <= 0 or not re.search("settlement_pending|status_unknown", reason):
                required = terms_of(answer) if answer.status == 402 else None
                return Paid(answer.status, answer.body, receipt, payment, required)
            time.sleep(1)
