"""Buy and sell by x402 on Stellar, without an SDK."""

from .batch import Batch
from .buyer import Buyer, Paid
from .layout import SignatureRefused
from .seller import Seller, Work, wsgi

__all__ = ["Batch", "Buyer", "Paid", "Seller", "SignatureRefused", "Work", "wsgi"]
