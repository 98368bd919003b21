"""Buy and sell by x402 on Stellar, without an SDK."""

from .buyer import Buyer, Paid
from .layout import SignatureRefused
from .seller import Seller, Work, wsgi

__all__ = ["Buyer", "Paid", "Seller", "SignatureRefused", "Work", "wsgi"]
