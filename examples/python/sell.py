"""A seller over plain WSGI: `PAY_TO=G… python3 sell.py` answers at /weather, and where the facilitator has upto at /story.

PORT, FACILITATOR_URL, NETWORK, ASSET, AMOUNT and SOLD (a folder that keeps sales) are optional. With `--fastapi` the same is
served by FastAPI and uvicorn, where they are installed.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from socketserver import ThreadingMixIn
from urllib.parse import parse_qs
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

sys.path.insert(0, str(Path(__file__).parent))

from tollkeeper_x402 import Seller, Work, wsgi  # noqa: E402

FOLDER = os.environ.get("SOLD")
TERMS = {
    "pay_to": os.environ["PAY_TO"],
    "asset": os.environ.get("ASSET", "CBIELTK6YBZJU5UP2WWQEUCYKLPU6AUNZ2BQ4WWFEIE3USCIHMXQDAMA"),
    "facilitator": os.environ.get("FACILITATOR_URL", "http://127.0.0.1:4022"),
    "network": os.environ.get("NETWORK", "stellar:testnet"),
    "folder": None if FOLDER is None else Path(FOLDER),
    "max_timeout_seconds": int(os.environ.get("MAX_TIMEOUT", "60")),
}
STORY = "Once a traveller came to a river and asked the ferryman what it costs to cross".split()
PER_WORD = 1_000
made = 0


def query(environ: dict, name: str, default: str) -> str:
    return parse_qs(environ.get("QUERY_STRING", "")).get(name, [default])[0]


def weather(environ: dict) -> Work:
    global made
    made += 1
    return Work({"city": query(environ, "city", "Riga"), "celsius": 17, "made": made})


def story(environ: dict) -> Work:
    words = STORY[: int(query(environ, "words", "5"))]
    return Work({"story": " ".join(words)}, amount=str(len(words) * PER_WORD))


class Server(ThreadingMixIn, WSGIServer):
    daemon_threads = True


class Quiet(WSGIRequestHandler):
    def log_message(self, *_: object) -> None:
        pass


def application(environ: dict, start_response) -> list[bytes]:
    sells = pages.get(environ["PATH_INFO"])
    if sells is None:
        start_response("404 Not Found", [])
        return [b""]
    return sells(environ, start_response)


def fastapi_application(seller: Seller):
    """The same seller as a FastAPI application: its answer is passed on as it is."""
    from fastapi import FastAPI, Request
    from fastapi.responses import Response as Answer

    app = FastAPI()

    @app.get("/weather")
    def page(request: Request) -> Answer:
        header = request.headers.get("payment-signature")
        environ = {"QUERY_STRING": request.url.query}
        answer = seller.handle(str(request.url), header, lambda: weather(environ))
        return Answer(answer.body, answer.status, dict(answer.headers))

    return app


exact = Seller(amount=os.environ.get("AMOUNT", "10000"), description="Weather of a city, once", **TERMS)
pages = {"/weather": wsgi(exact, "/weather", weather)}
if "--exact" not in sys.argv and "--fastapi" not in sys.argv:
    metered = Seller(amount="15000", scheme="upto", description="A story by the word", **TERMS)
    pages["/story"] = wsgi(metered, "/story", story)

if __name__ == "__main__":
    port = int(os.environ.get("PORT", "0"))
    if "--fastapi" in sys.argv:
        import uvicorn

        uvicorn.run(fastapi_application(exact), host="127.0.0.1", port=port, log_level="warning")
    else:
        with make_server("127.0.0.1", port, application, Server, Quiet) as server:
            print(f"Selling http://127.0.0.1:{server.server_port}/weather", flush=True)
            server.serve_forever()
