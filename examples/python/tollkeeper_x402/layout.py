"""The bytes that a payer signs, built from the seller's terms: the fixed layout of Tollkeeper's `/prepare`.

XDR is big-endian words, each value padded to four bytes. Nothing here signs, sends or trusts.
"""

from __future__ import annotations

import base64
import hashlib
import struct
from dataclasses import dataclass
from typing import Any, Mapping, Sequence

Terms = Mapping[str, Any]


class SignatureRefused(Exception):
    """What was asked to be signed is not what the terms say; nothing was signed."""


def _checksum(data: bytes) -> bytes:
    crc = 0
    for byte in data:
        crc ^= byte << 8
        for _ in range(8):
            crc = (crc << 1 ^ 0x1021 if crc & 0x8000 else crc << 1) & 0xFFFF
    return struct.pack("<H", crc)


ACCOUNT, CONTRACT, SEED = 6 << 3, 2 << 3, 18 << 3


def strkey(text: str) -> tuple[int, bytes]:
    """Version byte and 32 bytes of an address or a seed."""
    try:
        data = base64.b32decode(text)
    except ValueError as error:
        raise SignatureRefused("an address is not base32") from error
    if len(data) != 35 or _checksum(data[:33]) != data[33:]:
        raise SignatureRefused("an address has a wrong length or checksum")
    return data[0], data[1:33]


def strkey_text(version: int, key: bytes) -> str:
    data = bytes([version]) + key
    return base64.b32encode(data + _checksum(data)).decode()


def u32(value: int) -> bytes:
    return struct.pack(">I", value)


def i64(value: int) -> bytes:
    return struct.pack(">Q", value & (1 << 64) - 1)


def opaque(data: bytes) -> bytes:
    return u32(len(data)) + data + bytes(-len(data) % 4)


def items(values: Sequence[bytes]) -> bytes:
    return u32(len(values)) + b"".join(values)


def address(text: str) -> bytes:
    version, key = strkey(text)
    if version == ACCOUNT:
        return u32(0) + u32(0) + key
    if version == CONTRACT:
        return u32(1) + key
    raise SignatureRefused("an address is neither an account nor a contract")


VOID = u32(1)


def val_address(text: str) -> bytes:
    return u32(18) + address(text)


I128_MAX = (1 << 127) - 1


def val_i128(amount: int) -> bytes:
    if not -I128_MAX <= amount <= I128_MAX:
        # It would have the bytes of a smaller one, and so its signatures.
        raise SignatureRefused("an amount is above the ledger's largest")
    return u32(10) + i64(amount >> 64) + i64(amount)


def val_u32(number: int) -> bytes:
    return u32(3) + u32(number)


def val_u64(number: int) -> bytes:
    return u32(5) + i64(number)


def val_symbol(text: str) -> bytes:
    return u32(15) + opaque(text.encode())


def val_vec(values: Sequence[bytes]) -> bytes:
    return u32(16) + u32(1) + items(values)


def val_bytes(data: bytes) -> bytes:
    return u32(13) + opaque(data)


def account_signature(key: bytes, signature: bytes) -> bytes:
    """The signature value of an account with one key: a vector of one map."""
    fields = u32(15) + opaque(b"public_key") + val_bytes(key) + u32(15) + opaque(b"signature") + val_bytes(signature)
    return u32(16) + u32(1) + u32(1) + u32(17) + u32(1) + u32(2) + fields


def call(contract: str, name: str, args: Sequence[bytes]) -> bytes:
    return address(contract) + opaque(name.encode()) + items(args)


def invocation(called: bytes, below: Sequence[bytes] = ()) -> bytes:
    return u32(0) + called + items(below)


@dataclass(frozen=True)
class Choices:
    """What the facilitator chose; everything else is the terms'."""

    nonce: int
    expires: int
    valid_after: int = 0
    settlement_id: bytes = b""


def _exact(terms: Terms, payer: str) -> tuple[bytes, bytes]:
    args = [val_address(payer), val_address(terms["payTo"]), val_i128(int(terms["amount"]))]
    called = call(terms["asset"], "transfer", args)
    return called, invocation(called)


def _upto(terms: Terms, payer: str, chosen: Choices) -> tuple[bytes, bytes]:
    contract, amount = terms["extra"]["uptoContract"], int(terms["amount"])
    args = [val_address(one) for one in (payer, terms["payTo"], terms["asset"])]
    args += [val_i128(amount), val_u32(chosen.valid_after), val_u32(chosen.expires)]
    args += [val_address(terms["extra"]["facilitatorAddress"]), val_bytes(chosen.settlement_id)]

    def approve(most: int) -> bytes:
        given = [val_address(payer), val_address(contract), val_i128(most), val_u32(chosen.expires)]
        return invocation(call(terms["asset"], "approve", given))

    authorized = invocation(call(contract, "settle", args), [approve(amount), approve(0)])
    return call(contract, "settle", [*args, val_i128(amount)]), authorized


@dataclass(frozen=True)
class Layout:
    """One payment: the 32 bytes to sign, and the envelope around a signature."""

    hash: bytes
    _call: bytes
    _signed_by: bytes
    _authorized: bytes

    def envelope(self, signature: bytes = VOID) -> str:
        entry = u32(1) + self._signed_by + signature + self._authorized
        operation = u32(0) + u32(24) + u32(0) + self._call + items([entry])
        head = u32(2) + u32(0) + bytes(32) + u32(100) + i64(1) + u32(0) + u32(0) + u32(1)
        return base64.b64encode(head + operation + u32(0) + u32(0)).decode()


def layout(terms: Terms, payer: str, chosen: Choices, passphrase: str) -> Layout:
    """The bytes of one payment. Raises `SignatureRefused` for a scheme or an address that it does not know."""
    if terms["scheme"] not in ("exact", "upto"):
        raise SignatureRefused(f"{terms['scheme']} is no scheme of this buyer")
    exact = terms["scheme"] == "exact"
    called, authorized = _exact(terms, payer) if exact else _upto(terms, payer, chosen)
    return sealed(called, authorized, payer, chosen, passphrase)


def sealed(called: bytes, authorized: bytes, payer: str, chosen: Choices, passphrase: str) -> Layout:
    """A call and what is authorized of it, as the hash to sign and the envelope."""
    life = i64(chosen.nonce), u32(chosen.expires)
    network = hashlib.sha256(passphrase.encode()).digest()
    preimage = u32(9) + network + life[0] + life[1] + authorized
    return Layout(hashlib.sha256(preimage).digest(), called, address(payer) + life[0] + life[1], authorized)
