"""Paying by `batch-settlement`: one deposit, compared like every payment, then one voucher a request.

A channel is that of the seller's terms; the buyer bounds the deposit and the delay after which it gets its money back
without the seller. A seller's total is taken only with a voucher that this buyer's own key signed for at least as much,
and not by the one that it has just been sent: a second one would pay twice for one request.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass, field, replace
from typing import Any, Callable, Mapping

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from .kept import CUTS_MAX
from .layout import (
    I128_MAX,
    SignatureRefused,
    Terms,
    call,
    invocation,
    strkey,
    val_address,
    val_bytes,
    val_i128,
    val_symbol,
    val_u64,
    val_vec,
)

DIGITS = re.compile("0|[1-9][0-9]{0,38}")
DELAY_MIN = 900
LEAST_TIMES = 10
"""A seller's least deposit is at most this many times what the buyer would deposit by itself."""


def is_amount(text: str) -> bool:
    """At most the ledger's largest: the bytes of a larger one, and so its signature, are those of a smaller one."""
    return DIGITS.fullmatch(text) is not None and int(text) <= I128_MAX


@dataclass
class Known:
    """What a buyer knows of a channel, atomic units: charged in all, deposited, and the most that it signed for."""

    charged: int = 0
    balance: int = 0
    signed: int = 0
    unanswered: int = 0
    """Answers in a row that were cut."""
    disputed: str = ""
    """Why the seller's last answer contradicts the voucher; while it is set, nothing is signed in this channel."""


@dataclass(frozen=True)
class Deposit:
    """What /prepare is asked for, and the bytes that its answer must equal."""

    choices: dict[str, str]
    called: bytes
    authorized: bytes
    voucher_hash: bytes


def salt_of(origin: str) -> str:
    """The salt of channels with the sellers of one origin.

    An origin that copies a seller's terms could otherwise stop that seller's channel, by an answer that contradicts the
    voucher or by none."""
    return hashlib.sha256(f"tollkeeper channel\n{origin}".encode()).hexdigest()


@dataclass
class Batch:
    contracts: tuple[str, ...] = ()
    """Contracts that this buyer deposits into; without any, the scheme is refused."""
    deposit_times: int = 100
    """Prices that a deposit is for; a seller's announced least is followed up to ten times that many."""
    deposit_max: int | None = None
    """The most for one deposit, atomic units; None: that many times the buyer's `max_amount`."""
    withdraw_delay_max: int = 86_400
    """Seconds until a buyer has its money back without the seller, at most."""
    salt: str | None = None
    """32 bytes as hex, which separate channels with one seller; None: one channel for each origin."""
    channels: dict[str, Known] = field(default_factory=dict)
    """Channels by their ids; a subclass of dict may keep them."""

    def check_terms(self, terms: Terms) -> None:
        extra = terms.get("extra") or {}
        if extra.get("batchContract") not in self.contracts:
            raise SignatureRefused("the batch contract is not one that this buyer knows")
        delay = extra.get("withdrawDelay")
        if type(delay) is not int or not DELAY_MIN <= delay <= self.withdraw_delay_max:
            raise SignatureRefused("the channel's withdraw delay is longer than this buyer waits")
        strkey(extra.get("receiverAuthorizer", ""))

    def channel(self, terms: Terms, account: str, passphrase: str, salt: str) -> "Channel":
        extra = terms["extra"]
        config = {
            "payer": account,
            "payerAuthorizer": account,
            "receiver": terms["payTo"],
            "receiverAuthorizer": extra["receiverAuthorizer"],
            "token": terms["asset"],
            "withdrawDelay": extra["withdrawDelay"],
            "salt": salt,
        }
        return Channel(config, extra["batchContract"], hashlib.sha256(passphrase.encode()).digest())

    def deposit(self, terms: Terms, channel: "Channel", missing: int, max_amount: int) -> Deposit:
        most = max_amount * self.deposit_times if self.deposit_max is None else self.deposit_max
        announced = str(terms["extra"].get("minDeposit", "0"))
        asked = int(announced) if DIGITS.fullmatch(announced) else 0
        least = max(missing, asked)
        if least > most or asked > int(terms["amount"]) * self.deposit_times * LEAST_TIMES:
            raise SignatureRefused(f"a deposit of {least} is above this buyer's limit")
        amount = max(least, min(int(terms["amount"]) * self.deposit_times, most))
        known = self.channels.get(channel.id.hex(), Known())
        payer, value = val_address(channel.config["payer"]), val_i128(amount)
        called = call(channel.contract, "deposit", [payer, channel.vector, value])
        below = invocation(call(terms["asset"], "transfer", [payer, val_address(channel.contract), value]))
        choices = {"amount": str(amount), "charged": str(known.charged)}
        choices |= {"payerAuthorizer": channel.config["payerAuthorizer"], "salt": channel.config["salt"]}
        voucher_hash = channel.voucher_hash(known.charged + int(terms["amount"]))
        return Deposit(choices, called, invocation(called, [below]), voucher_hash)

    def payload(
        self, terms: Terms, channel: "Channel", key: Ed25519PrivateKey, max_amount: int, sign: Callable[[Deposit], str]
    ) -> dict[str, Any]:
        """A voucher where the deposit is enough, else a deposit with its voucher; `sign` compares before it signs."""
        known = self.channels.get(channel.id.hex(), Known())
        if known.disputed:
            raise SignatureRefused(f"the seller's answer contradicts the voucher: {known.disputed}")
        if known.unanswered >= CUTS_MAX:
            unknown = f"{known.charged} charged by its answers, at most {self.signed(channel)} by what was signed"
            lost = f"{known.unanswered} answers of this channel in a row were lost"
            raise SignatureRefused(f"{lost}: {unknown}; send them again")
        most = known.charged + int(terms["amount"])
        if most <= known.balance:
            return {"type": "voucher", "channelConfig": channel.config, "voucher": self._voucher(channel, key, most)}
        asked = self.deposit(terms, channel, most - known.balance, max_amount)
        deposit = {"amount": asked.choices["amount"], "authorization": {"transaction": sign(asked)}}
        voucher = self._voucher(channel, key, most)
        return {"type": "deposit", "channelConfig": channel.config, "voucher": voucher, "deposit": deposit}

    def _voucher(self, channel: "Channel", key: Ed25519PrivateKey, most: int) -> dict[str, str]:
        known = self.channels.get(channel.id.hex(), Known())
        self.channels[channel.id.hex()] = replace(known, signed=max(most, known.signed, known.charged))
        return channel.voucher(key, most)

    def signed(self, channel: "Channel") -> int:
        """The most that vouchers of a channel were signed for."""
        known = self.channels.get(channel.id.hex(), Known())
        return max(known.signed, known.charged)

    def note_cuts(self, channel: "Channel", cuts: int) -> None:
        """Counts answers that were cut; 0 for one that came, whatever it says."""
        known = self.channels.get(channel.id.hex())
        if known is not None:
            self.channels[channel.id.hex()] = replace(known, unanswered=known.unanswered + cuts if cuts else 0)

    def note_charged(
        self, channel: "Channel", terms: Terms, payload: Mapping[str, Any], receipt: Mapping[str, Any]
    ) -> None:
        """Keeps the total after a paid request, never below the one before.

        An answer that contradicts its voucher changes neither total nor balance, and stops the channel."""
        before = self.channels.get(channel.id.hex(), Known())
        most = int(payload["voucher"]["maxClaimableAmount"])
        price = 0 if payload["type"] == "refund" else int(terms["amount"])
        extra = receipt.get("extra") or {}
        charged = answered_total(channel.id.hex(), most, price, extra)
        signed = max(most, before.signed)
        if isinstance(charged, str):
            self.channels[channel.id.hex()] = replace(before, signed=signed, disputed=charged)
            return
        balance = str((extra.get("channelState") or {}).get("balance", ""))
        held = before.balance + int(payload.get("deposit", {}).get("amount", "0"))
        refunded = payload["type"] == "refund" and DIGITS.fullmatch(balance)
        left = max(charged, before.charged)
        held = max(int(balance), left) if refunded else held
        self.channels[channel.id.hex()] = Known(left, held, signed)

    def note_corrected(
        self, channel: "Channel", required: Mapping[str, Any], key: Ed25519PrivateKey, sent: int, before: int
    ) -> bool:
        """Takes the total of a corrective 402, where a voucher of our own key is for at least as much.

        `sent`: what the refused request was signed for; `before`: the most that was signed before it."""
        for terms in required.get("accepts", []):
            extra = terms.get("extra") or {}
            state, proof = extra.get("channelState") or {}, extra.get("voucherState") or {}
            charged, balance = str(state.get("chargedCumulativeAmount", "")), str(state.get("balance", ""))
            most = str(proof.get("signedMaxClaimable", ""))
            if state.get("channelId") != channel.id.hex() or not all(map(is_amount, (charged, balance, most))):
                continue
            try:
                signature = bytes.fromhex(str(proof.get("signature", "")))
            except ValueError:
                continue
            # Compare with our own signature: some libraries accept others, and only this one is ours.
            if key.sign(channel.voucher_hash(int(most))) != signature:
                continue
            if int(charged) <= int(most) and not before < int(most) <= sent:
                # Reject a total below our record, and ignore a lower balance: we have our own record of both.
                known = self.channels.get(channel.id.hex(), Known())
                if int(charged) < known.charged:
                    continue
                held = max(int(balance), known.balance)
                self.channels[channel.id.hex()] = Known(int(charged), held, max(int(most), before, sent))
                return True
        return False


def answered_total(channel_id: str, most: int, price: int, extra: Mapping[str, Any]) -> int | str:
    """The total after the answer to a voucher for `most`, or a sentence if the answer contradicts the voucher.

    The price is the most that was charged, and the voucher's base is the total before. An answer without a total
    counts as the whole voucher."""
    state = extra.get("channelState") or {}
    if state.get("channelId", channel_id) != channel_id:
        return "it is about another channel"
    stated, total, base = extra.get("chargedAmount"), state.get("chargedCumulativeAmount"), most - price
    charge = str(price if stated is None else stated)
    if not DIGITS.fullmatch(charge) or int(charge) > price:
        return f"it charges {charge} for a price of {price}"
    if total is None:
        return base + int(charge)
    if not DIGITS.fullmatch(str(total)):
        return f"its total is {total}"
    fits = base <= int(total) <= most if stated is None else int(total) == base + int(charge)
    return int(total) if fits else f"its total is {total}, after {base} and a charge of {charge}"


class Channel:
    """A channel with a seller: its terms, its id, and what is signed of it."""

    def __init__(self, config: dict[str, Any], contract: str, network: bytes) -> None:
        self.config, self.contract, self._network = config, contract, network
        self.vector = val_vec([
            val_address(config["payer"]),
            val_bytes(strkey(config["payerAuthorizer"])[1]),
            val_address(config["receiver"]),
            val_bytes(strkey(config["receiverAuthorizer"])[1]),
            val_address(config["token"]),
            val_u64(config["withdrawDelay"]),
            val_bytes(bytes.fromhex(config["salt"])),
        ])
        self.id = self._digest("x402_batch_channel", self.vector)

    def _digest(self, domain: str, *rest: bytes) -> bytes:
        place = [val_symbol(domain), val_bytes(self._network), val_address(self.contract)]
        return hashlib.sha256(val_vec([*place, *rest])).digest()

    def voucher_hash(self, most: int) -> bytes:
        return self._digest("x402_batch_voucher", val_bytes(self.id), val_i128(most))

    def voucher(self, key: Ed25519PrivateKey, most: int) -> dict[str, str]:
        signature = key.sign(self.voucher_hash(most)).hex()
        return {"channelId": self.id.hex(), "maxClaimableAmount": str(most), "signature": signature}
