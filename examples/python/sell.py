"""A seller over plain WSGI: `PAY_TO=G… python3 sell.py` answers at /weather, and where the facilitator has upto at /story.

PORT, FACILITATOR_URL, FACILITATOR_KEY, NETWORK, ASSET, AMOUNT, PATIENCE (seconds) and SOLD (a folder that keeps sales) are
optional. With `--fastapi` the same is served by FastAPI and uvicorn, where they are installed.
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

try:
    # FastAPI finds the types of a route among the module's names.
    from fastapi import FastAPI, Request, Response
except ImportError:
    FastAPI = None

FOLDER = os.environ.get("SOLD")
TERMS = {
    "pay_to": os.environ["PAY_TO"],
    "asset": os.environ.get("ASSET", "CBIELTK6YBZJU5UP2WWQEUCYKLPU6AUNZ2BQ4WWFEIE3USCIHMXQDAMA"),
    "facilitator": os.environ.get("FACILITATOR_URL", "http://127.0.0.1:4022"),
    "network": os.environ.get("NETWORK", "stellar:testnet"),
    "folder": None if FOLDER is None else Path(FOLDER),
    "max_timeout_seconds": int(os.environ.get("MAX_TIMEOUT", "60")),
    "api_key": os.environ.get("FACILITATOR_KEY"),
    "patience": float(os.environ.get("PATIENCE", "15")),
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
    app = FastAPI()

    @app.get("/weather")
    def page(request: Request) -> Response:
        header = request.headers.get("payment-signature")
        environ = {"QUERY_STRING": request.url.query}
        answer = seller.handle(str(request.url), header, lambda: weather(environ))
        return Response(answer.body, answer.status, dict(answer.headers))

    return app


def serve_fastapi(port: int) -> None:
    import socket

    import uvicorn

    with socket.create_server(("127.0.0.1", port)) as listener:
        print(f"Selling http://127.0.0.1:{listener.getsockname()[1]}/weather", flush=True)
        config = uvicorn.Config(fastapi_application(exact), log_level="warning")
        uvicorn.Server(config).run(sockets=[listener])


exact = Seller(amount=os.environ.get("AMOUNT", "10000"), description="Weather of a city, once", **TERMS)
pages = {"/weather": wsgi(exact, "/weather", weather)}
if "--exact" not in sys.argv and "--fastapi" not in sys.argv:
    metered = Seller(amount="15000", scheme="upto", description="A story by the word", **TERMS)
    pages["/story"] = wsgi(metered, "/story", story)

if __name__ == "__main__":
    port = int(os.environ.get("PORT", "0"))
    if "--fastapi" in sys.argv:
        if FastAPI is None:
            sys.exit("--fastapi needs the packages fastapi and uvicorn (Debian: python3-fastapi, python3-uvicorn)")
        serve_fastapi(port)
    else:
        with make_server("127.0.0.1", port, application, Server, Quiet) as server:
            print(f"Selling http://127.0.0.1:{server.server_port}/weather", flush=True)
            server.serve_forever()
