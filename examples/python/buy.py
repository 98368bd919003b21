"""A buyer: `BUYER_SECRET=S… python3 buy.py URL` pays for a page and prints it with its receipt as JSON.

FACILITATOR_URL, NETWORK, MAX_AMOUNT, LEDGER_RPC_URL, UPTO_CONTRACT and BATCH_CONTRACT are optional.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from tollkeeper_x402 import Batch, Buyer, SignatureRefused  # noqa: E402

buyer = Buyer(
    secret=os.environ["BUYER_SECRET"],
    max_amount=int(os.environ.get("MAX_AMOUNT", "1000000")),
    facilitator=os.environ.get("FACILITATOR_URL"),
    network=os.environ.get("NETWORK", "stellar:testnet"),
    rpc_url=os.environ.get("LEDGER_RPC_URL"),
    batch=Batch(tuple(filter(None, [os.environ.get("BATCH_CONTRACT")]))),
    upto_contracts=tuple(filter(None, [os.environ.get("UPTO_CONTRACT")])),
)
try:
    if len(sys.argv) > 2:  # a payment whose answer was lost
        paid = buyer.send(sys.argv[1], sys.argv[2])
    else:
        # Several times: of one channel, by vouchers.
        for _ in range(int(os.environ.get("TIMES", "1"))):
            paid = buyer.pay(sys.argv[1])
except SignatureRefused as refused:
    print(json.dumps({"refused": str(refused)}))
    sys.exit(1)
page = json.loads(paid.body) if paid.body else None
print(json.dumps({"status": paid.status, "page": page, "receipt": paid.receipt, "payment": paid.payment}))
