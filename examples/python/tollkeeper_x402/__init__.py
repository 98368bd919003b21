"""Buy and sell by x402 on Stellar, without an SDK."""

from .batch import Batch
from .buyer import Buyer, Paid
from .kept import FilePayments, Kept, PaymentUnknown
from .layout import SignatureRefused
from .seller import Seller, Work, wsgi

__all__ = [
    "Batch",
    "Buyer",
    "FilePayments",
    "Kept",
    "Paid",
    "PaymentUnknown",
    "Seller",
    "SignatureRefused",
    "Work",
    "wsgi",
]
