"""What a buyer signs: it asks the facilitator's `/prepare`, compares, and signs.

It builds the same bytes from the seller's terms and its own settings, and signs only when they are equal. It trusts no
part of the answer but the newest ledger's number, and not even that where `rpc_url` names a ledger RPC.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field
from typing import Any, Callable, Mapping

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from .batch import Batch, Channel, Deposit
from .layout import ACCOUNT, SEED, Choices, Layout, SignatureRefused, Terms, account_signature, layout, sealed
from .layout import strkey, strkey_text
from .wire import ask, prepare_at, usual_assets

TESTNET = "Test SDF Network ; September 2015"
SECONDS_PER_LEDGER = 5
LEDGERS_APART = 3
BATCH = "batch-settlement"
SALT = "00" * 32
"""Of the channel of terms without an origin."""


@dataclass
class Signing:
    secret: str
    """Seed of the account that pays, S…"""
    max_amount: int | Mapping[str, int]
    """The most for one request, atomic units, by asset; a plain number is in units of the first of `assets`."""
    facilitator: str | None = None
    """Its /prepare is requested; None: that of the terms (`extra.prepareUrl`, HTTPS), else this machine's."""
    network: str = "stellar:testnet"
    passphrase: str = TESTNET
    assets: tuple[str, ...] | None = None
    """Contracts of the assets to pay in; None: those of `max_amount`, or USDC and XLM of the network."""
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

    def limit(self, asset: str) -> int | None:
        plain_limit = isinstance(self.max_amount, int)
        known = self.assets or (usual_assets(self.network) if plain_limit else tuple(self.max_amount))
        if asset not in known:
            return None
        if plain_limit:
            return self.max_amount if asset == known[0] else None
        return self.max_amount.get(asset)

    def check_terms(self, terms: Terms) -> None:
        if terms["network"] != self.network:
            raise SignatureRefused("the terms are for another network")
        limit = self.limit(terms["asset"])
        if limit is None:
            raise SignatureRefused("the asset is not one that this buyer pays in")
        if not re.fullmatch("[1-9][0-9]{0,38}", terms["amount"]) or int(terms["amount"]) > limit:
            raise SignatureRefused("the price is above the limit")
        time = terms.get("maxTimeoutSeconds")
        if type(time) is not int or not 1 <= time <= self.max_timeout:
            raise SignatureRefused(f"the terms' time is not of 1 to {self.max_timeout} seconds")
        if terms["scheme"] == "upto" and terms.get("extra", {}).get("uptoContract") not in self.upto_contracts:
            raise SignatureRefused("the settlement contract is not one that this buyer knows")
        if terms["scheme"] == BATCH:
            self.batch.check_terms(terms)

    def _choices(self, terms: Terms, given: Mapping[str, Any], after: float = 0) -> Choices:
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
        if after == math.inf:
            raise SignatureRefused("a deposit with this seller has no answer yet; send that one again")
        if newest <= after:
            raise SignatureRefused(f"an earlier payment can land until ledger {after}; send that one again")
        if choices.valid_after > newest + LEDGERS_APART:
            raise SignatureRefused("the signature would begin later")
        if terms["scheme"] == "upto" and len(choices.settlement_id) != 32:
            raise SignatureRefused("the facilitator gives no settlement id")
        return choices

    def sign(self, terms: Terms) -> dict[str, Any]:
        """The signed payload of one payment. Raises `SignatureRefused` before anything is signed."""
        return self.sign_until(terms, 0, self.batch.salt or SALT)[0]

    def sign_until(self, terms: Terms, after: float, salt: str) -> tuple[dict[str, Any], int | None]:
        """The payload, and the last ledger in which it can land; not before `after` has closed."""
        self.check_terms(terms)
        if terms["scheme"] != BATCH:
            built = lambda chosen: layout(terms, self.account, chosen, self.passphrase)  # noqa: E731
            transaction, expires = self._sign_call(terms, {}, built, after)
            return {"transaction": transaction}, expires
        signed: list[int] = []

        def deposit(asked: Deposit) -> str:
            def build(chosen: Choices) -> Layout:
                return sealed(asked.called, asked.authorized, self.account, chosen, self.passphrase)

            more = {"choices": asked.choices}
            transaction, expires = self._sign_call(terms, more, build, after, asked.voucher_hash)
            signed.append(expires)
            return transaction

        limit = self.limit(terms["asset"]) or 0
        payload = self.batch.payload(terms, self.channel_of(terms, salt), self._key, limit, deposit)
        return payload, signed[0] if signed else None

    def channel_of(self, terms: Terms, salt: str) -> Channel:
        return self.batch.channel(terms, self.account, self.passphrase, salt)

    def _sign_call(
        self,
        terms: Terms,
        more: Mapping[str, Any],
        build: Callable[[Choices], Layout],
        after: float,
        beside: bytes | None = None,
    ) -> tuple[str, int]:
        """Asks /prepare, compares, and signs: the envelope with the signature in it, and its last ledger."""
        body = {"x402Version": 2, "paymentRequirements": terms, "payer": self.account, **more}
        knows_ledger = self.rpc_url is not None
        url, headers = prepare_at(terms, self.facilitator, self.api_key, self.allows_plain, knows_ledger)
        answer = ask(url, body, headers)
        if answer.status != 200:
            raise RuntimeError(f"/prepare answers {answer.status}: {answer.body.decode()}")
        given = answer.json()
        try:
            choices = self._choices(terms, given, after)
            built = build(choices)
            same = given["toSign"]["hash"] == built.hash.hex() and given["transaction"] == built.envelope()
            same = same and (beside is None or given["toSign"]["beside"]["voucher"]["hash"] == beside.hex())
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise SignatureRefused("the facilitator's answer is incomplete") from error
        if not same:
            raise SignatureRefused("the facilitator asks for another signature than the terms do")
        return built.envelope(account_signature(self._public, self._key.sign(built.hash))), choices.expires
