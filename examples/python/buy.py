"""A buyer: `BUYER_SECRET=S… python3 buy.py URL` pays for a page and prints it with its receipt as JSON.

    buy.py [-X METHOD] [-d BODY | -d @FILE] [-H 'name: value']… [--out FILE] URL
    buy.py --resume FILE

A page that is JSON is `page`; any page's bytes are `body`, in Base64. `--out FILE` writes the bytes there, and the
receipt to FILE.receipt.json. A payment is kept in PAYMENTS (default ~/.x402-payments) before it is sent; where its
answer is lost, the same call or `--resume` sends it again. FACILITATOR_URL, NETWORK, MAX_AMOUNT (a number, or JSON by
asset), LEDGER_RPC_URL, UPTO_CONTRACT and BATCH_CONTRACT are optional.
"""

from __future__ import annotations

import argparse
import base64
import http.client
import json
import os
import sys
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from tollkeeper_x402 import Batch, Buyer, FilePayments, Kept, Paid, PaymentUnknown, SignatureRefused  # noqa: E402


def write(paid: Paid, out: str | None) -> None:
    try:
        page = json.loads(paid.body)
        json.dumps(page)
    except (ValueError, RecursionError):
        page = None
    answer = {"status": paid.status, "page": page, "receipt": paid.receipt, "payment": paid.payment}
    try:
        if out is None:
            answer["body"] = base64.b64encode(paid.body).decode()
        else:
            Path(out).write_bytes(paid.body)
            Path(f"{out}.receipt.json").write_text(json.dumps(paid.receipt))
        print(json.dumps(answer), flush=True)
    except OSError as error:
        kept = "" if paid.payment is None else "; its payment is kept: the same call gets the page again"
        sys.exit(f"the page cannot be written ({error}){kept}")


def main() -> int:
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words.add_argument("url", nargs="?")
    words.add_argument("payment", nargs="?", help="a payment whose answer was lost, as it was printed")
    words.add_argument("-X", "--method")
    words.add_argument("-d", "--data")
    words.add_argument("-H", "--header", action="append", default=[])
    words.add_argument("--out")
    words.add_argument("--resume", metavar="FILE")
    given = words.parse_args()
    if given.url is None and given.resume is None:
        words.error("name a URL")
    buyer = Buyer(
        secret=os.environ["BUYER_SECRET"],
        max_amount=json.loads(os.environ.get("MAX_AMOUNT", "1000000")),
        facilitator=os.environ.get("FACILITATOR_URL"),
        network=os.environ.get("NETWORK", "stellar:testnet"),
        rpc_url=os.environ.get("LEDGER_RPC_URL"),
        batch=Batch(tuple(filter(None, [os.environ.get("BATCH_CONTRACT")]))),
        upto_contracts=tuple(filter(None, [os.environ.get("UPTO_CONTRACT")])),
        payments=FilePayments(),
        receive=partial(write, out=given.out),
    )
    body = None if given.data is None else given.data.encode()
    if body is not None and body.startswith(b"@"):
        body = Path(given.data[1:]).read_bytes()
    # A page that cannot be written must not be paid.
    for file in () if given.out is None else (given.out, f"{given.out}.receipt.json"):
        open(file, "ab").close()
    lines = (line.partition(":") for line in given.header)
    headers = {name.strip(): value.strip() for name, _, value in lines}
    try:
        if given.resume is not None:
            paid = buyer.resume(Kept.load(Path(given.resume).read_text(), given.resume))
        elif given.payment is not None:
            paid = buyer.send(given.url, given.payment)
        else:
            # Repeated payments use vouchers of one channel; the last page is written.
            times = int(os.environ.get("TIMES", "1"))
            for turn in range(times):
                buyer.receive = partial(write, out=given.out) if turn == times - 1 else None
                paid = buyer.pay(given.url, method=given.method, body=body, headers=headers)
    except SignatureRefused as refused:
        print(json.dumps({"refused": str(refused)}))
        return 1
    except PaymentUnknown as unknown:
        print(json.dumps({"unknown": str(unknown), "payment": unknown.kept.payment, "kept": unknown.kept.file}))
        return 1
    except (OSError, http.client.HTTPException) as error:
        print(json.dumps({"unpaid": str(error)}))
        return 1
    if not paid.delivered or paid.payment is None:
        write(paid, given.out)
    return 0 if paid.delivered else 1


sys.exit(main())
